"""What members may not do in their namespace whatever their role gives, on the cluster under test."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from connectors.kubernetes import Cluster
from provisioning.desired.manifests import TEAM_ROLE, Manifest, tenancy_objects
from provisioning.desired.rights import RBAC
from tests.contract.raw import Raw, eventually
from tests.provisioning.specs import sample

GROUP = "00000000-0000-4000-9000-00000000fffe"
EXTERNAL = {"ports": [{"port": 80}], "externalIPs": ["10.0.0.10"]}
DASHBOARD = {"grafana_dashboard": "1"}
MINE = {"app.kubernetes.io/managed-by": "quartermaster"}


@pytest.fixture
def space(installed: None, admin: Cluster, prefix: str) -> Iterator[str]:
    """A namespace as the portal makes it, with the claim `datasets` and the team's binding."""
    # No installation has a tenancy of this number, so that no portal takes it for its own.
    spec = sample(
        entra_group=GROUP,
        tenancy=random.SystemRandom().randrange(10**12, 10**15),
        storage_class="",
    )
    wanted = {
        "Namespace",
        "PersistentVolumeClaim",
        "RoleBinding",
        "ConfigMap",
        "ServiceAccount",
    }
    for manifest in tenancy_objects(spec):
        if manifest["kind"] in wanted:
            admin.apply(placed(manifest, prefix))
    yield prefix
    admin.delete(("v1", "Namespace"), prefix)


def placed(manifest: Manifest, namespace: str) -> Manifest:
    metadata: dict[str, Any] = manifest["metadata"]
    if manifest["kind"] == "Namespace":
        return {**manifest, "metadata": {**metadata, "name": namespace}}
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}


@pytest.fixture
def member(raw: Raw, space: str) -> Raw:
    """A member of the team's group; returns when its binding is in force."""
    acting = raw.acting_as("member@example.com", GROUP)
    eventually(lambda: acting.send("GET", f"/api/v1/namespaces/{space}/pods")[0] == 200)
    return acting


def thing(
    name: str, labels: dict[str, str] | None = None, **rest: Any
) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels or {}}, **rest}


@pytest.mark.parametrize(
    ("plural", "body", "words"),
    [
        (
            "services",
            thing("taken", spec=EXTERNAL),
            "externalIPs would take over other teams' traffic",
        ),
        (
            "configmaps",
            thing("board", DASHBOARD),
            "would put this into everybody's Grafana",
        ),
        ("configmaps", thing("mine", MINE), "is for the portal's objects"),
        (
            "persistentvolumeclaims",
            thing(
                "datasets",
                spec={
                    "accessModes": ["ReadWriteMany"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            ),
            "this name is the portal's",
        ),
        (
            "persistentvolumeclaims",
            thing(
                "volume-corpus",
                spec={
                    "accessModes": ["ReadWriteMany"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            ),
            "this name is the portal's",
        ),
    ],
)
def test_a_member_makes_nothing_that_reaches_beyond_the_team(
    member: Raw, space: str, plural: str, body: dict[str, Any], words: str
) -> None:
    status, said = member.send("POST", f"/api/v1/namespaces/{space}/{plural}", body)
    assert status == 403, said
    assert words in said["message"]


def test_what_a_member_may_make_is_made_and_taken_away(member: Raw, space: str) -> None:
    plain = thing("web", spec={"ports": [{"port": 80}]})
    for plural, body in (
        ("services", plain),
        ("configmaps", thing("settings", {"app": "x"})),
    ):
        where = f"/api/v1/namespaces/{space}/{plural}"
        assert member.send("POST", where, body)[0] == 201
        assert member.send("DELETE", f"{where}/{body['metadata']['name']}")[0] == 200


def test_a_member_does_not_delete_the_shared_disk_and_an_administrator_does(
    member: Raw, raw: Raw, space: str
) -> None:
    claims = f"/api/v1/namespaces/{space}/persistentvolumeclaims"
    status, said = member.send("DELETE", f"{claims}/datasets")
    assert status == 403, said
    assert "this object is kept by the portal" in said["message"]
    assert member.send("DELETE", claims)[0] == 403
    assert raw.send("GET", f"{claims}/datasets")[0] == 200
    assert raw.send("DELETE", f"{claims}/datasets")[0] == 200


def test_the_guards_hold_in_teams_namespaces_alone(
    installed: None, raw: Raw, namespace: str
) -> None:
    where = f"/api/v1/namespaces/{namespace}"
    assert raw.send("POST", f"{where}/configmaps", thing("board", DASHBOARD))[0] == 201
    assert (
        raw.send("POST", f"{where}/services", thing("taken", spec=EXTERNAL))[0] == 201
    )


def test_a_pod_that_would_evict_others_is_refused_whoever_made_its_class(
    member: Raw, raw: Raw, space: str, prefix: str
) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    body = {
        "metadata": {"name": f"{prefix}-high"},
        "value": 5000,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert raw.send("POST", classes, body)[0] == 201
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10"}
    pod = thing(
        "greedy",
        spec={"priorityClassName": f"{prefix}-high", "containers": [container]},
    )
    status, said = member.send("POST", f"/api/v1/namespaces/{space}/pods", pod)
    raw.send("DELETE", f"{classes}/{prefix}-high")
    assert status == 403, said
    assert "would push other teams' pods from their nodes" in said["message"]


@pytest.mark.parametrize(
    ("unsafe", "words"),
    [
        ({"hostNetwork": True}, "host namespaces (hostNetwork=true)"),
        (
            {"volumes": [{"name": "node", "hostPath": {"path": "/"}}]},
            'hostPath volumes (volume "node")',
        ),
    ],
)
def test_a_pod_that_reaches_its_node_is_refused(
    member: Raw, space: str, unsafe: dict[str, Any], words: str
) -> None:
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10"}
    status, said = member.send(
        "POST",
        f"/api/v1/namespaces/{space}/pods",
        thing("unsafe", spec={"containers": [container], **unsafe}),
    )
    assert status == 403, said
    assert said["message"].endswith(
        f'is forbidden: violates PodSecurity "baseline:latest": {words}'
    )


def test_the_team_is_bound_to_the_role_that_is_shipped(
    admin: Cluster, space: str
) -> None:
    found = admin.get((f"{RBAC}/v1", "RoleBinding"), "team-users", space) or {}
    assert found["roleRef"]["name"] == TEAM_ROLE


def test_a_secret_of_the_teams_own_is_made_and_none_that_holds_a_token_of_an_account(
    member: Raw, space: str
) -> None:
    where = f"/api/v1/namespaces/{space}/secrets"
    assert member.send("POST", where, thing("pull", stringData={"key": "x"}))[0] == 201
    assert member.send("DELETE", f"{where}/pull")[0] == 200
    token = thing("token", type="kubernetes.io/service-account-token")
    token["metadata"]["annotations"] = {
        "kubernetes.io/service-account.name": "workload"
    }
    status, said = member.send("POST", where, token)
    assert status == 403, said
    assert "tokens of accounts are not made in teams' namespaces" in said["message"]


def test_a_member_changes_a_job_and_lifts_no_gate(
    member: Raw, raw: Raw, space: str
) -> None:
    where = f"/apis/batch/v1/namespaces/{space}/jobs"
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10"}
    job = thing(
        "held",
        spec={
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    )
    gate = "kueue.x-k8s.io/admission-gated-by"
    job["metadata"]["annotations"] = {gate: "portal.example.com/approval"}
    assert raw.send("POST", where, job)[0] == 201

    def change(metadata: dict[str, Any]) -> tuple[int, Any]:
        merge = "application/merge-patch+json"
        return member.send(
            "PATCH", f"{where}/held", {"metadata": metadata}, content_type=merge
        )

    assert change({"labels": {"mine": "yes"}})[0] == 200
    status, said = change({"annotations": {gate: None}})
    assert status == 403, said
    assert "whoever set the gate takes it away" in said["message"]
    raw.send("DELETE", f"{where}/held")


@pytest.mark.parametrize(
    ("verb", "group", "resource", "part", "answer"),
    [
        ("create", "apps", "deployments", "", True),
        ("create", "batch", "cronjobs", "", True),
        ("create", "", "pods", "exec", True),
        ("create", "", "pods", "portforward", True),
        ("create", "jobset.x-k8s.io", "jobsets", "", True),
        ("create", "rbac.authorization.k8s.io", "rolebindings", "", False),
        ("create", "", "serviceaccounts", "token", False),
        ("patch", "", "pods", "ephemeralcontainers", False),
        ("patch", "", "resourcequotas", "", False),
    ],
)
def test_the_cluster_says_what_a_member_may(
    member: Raw,
    space: str,
    verb: str,
    group: str,
    resource: str,
    part: str,
    answer: bool,
) -> None:
    asked = {
        "namespace": space,
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": part,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    status, said = member.send(
        "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body
    )
    assert (status, bool(said["status"].get("allowed"))) == (201, answer)
