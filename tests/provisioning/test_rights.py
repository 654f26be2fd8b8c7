"""What the portal's service account may do on a cluster: all that it does, and nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from connectors.errors import PermanentError
from connectors.kubernetes import KINDS, Cluster, Ref, ref_of
from fleet.egress import EgressRule
from fleet.services import SharedService
from provisioning.desired.manifests import (
    NAMED,
    TEAM_ROLE,
    Manifest,
    fleet_objects,
    tenancy_objects,
)
from provisioning.desired.rights import RUN_ROLE
from provisioning.desired.spec import Volume
from provisioning.desired.volcano import QUEUE
from tests.provisioning.kubernetes import DEPLOY, Kubernetes
from tests.provisioning.specs import SAMPLE, sample

RBAC = "rbac.authorization.k8s.io/v1"
SECRET: Ref = ("v1", "Secret")
SERVICE = SharedService(
    name="mlflow", namespace="mlflow", labels=(("app", "mlflow"),), port=5000
)
# Everything that a tenancy can have at once.
OUTSIDE = EgressRule(name="internet", cidrs=("0.0.0.0/0",), ports=(443,))
NAMES = EgressRule(name="hub", names=("huggingface.co",))
WHOLE = sample(
    jupyterhub_namespace="jupyterhub",
    services=(SERVICE,),
    egress=(NAMES, OUTSIDE),
    by_name=True,
)
TENANCY = tenancy_objects(WHOLE)
FLEET = fleet_objects(cohort=WHOLE.cohort, flavors=[("a100-80gb", {"gpu": "a100"}, [])])


@pytest.fixture
def portal(kubernetes: Kubernetes, tmp_path: Path) -> Iterator[Cluster]:
    """The cluster as the portal reaches it; its network is Cilium."""
    kubernetes.cluster.has_cilium = True
    client = Cluster.from_kubeconfig(tmp_path / kubernetes.kubeconfig(tmp_path))
    yield client
    client.close()


def put(portal: Cluster, manifests: list[Manifest]) -> None:
    for manifest in manifests:
        portal.apply(manifest)


def place_of(manifest: Manifest) -> tuple[Ref, str, str | None]:
    return (
        ref_of(manifest),
        manifest["metadata"]["name"],
        manifest["metadata"].get("namespace"),
    )


def test_it_makes_and_changes_every_object_it_renders(portal: Cluster) -> None:
    put(portal, [*FLEET, *TENANCY])
    account = portal.get(("v1", "ServiceAccount"), "default", WHOLE.namespace) or {}
    assert account["automountServiceAccountToken"] is False
    put(portal, tenancy_objects(sample(weight=3)))
    put(portal, tenancy_objects(sample(volumes=(CORPUS,))))
    put(portal, tenancy_objects(sample(volumes=(CORPUS,), cost_centre="CC-9")))
    assert all(portal.get(*place_of(manifest)) for manifest in [*FLEET, *TENANCY])
    for manifest in TENANCY:
        ref, _, namespace = place_of(manifest)
        assert portal.list(ref, namespace, name=NAMED.get(ref, ""))


def test_it_deletes_what_is_not_wanted_any_more_and_never_a_disk(
    portal: Cluster,
) -> None:
    put(portal, [*FLEET, *TENANCY])
    sometimes = {
        "allow-jupyterhub",
        "allow-shared-services",
        "allow-outside",
        "allow-outside-names",
        "quartermaster-dashboard",
    }
    for manifest in TENANCY:
        if (
            manifest["kind"] in ("ClusterQueue", "LocalQueue")
            or manifest["metadata"]["name"] in sometimes
        ):
            assert portal.delete(*place_of(manifest)), manifest["kind"]
    with pytest.raises(PermanentError) as refused:
        portal.delete(("v1", "PersistentVolumeClaim"), "datasets", WHOLE.namespace)
    assert refused.value.code == "forbidden"


def test_it_changes_no_disk_of_the_teams_own(
    portal: Cluster, kubernetes: Kubernetes
) -> None:
    put(portal, TENANCY)
    own: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "mine", "namespace": WHOLE.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    kubernetes.create(own)
    marked = {
        **own,
        "metadata": {
            **own["metadata"],
            "labels": {"app.kubernetes.io/managed-by": "quartermaster"},
        },
    }
    for manifest in (own, marked):
        with pytest.raises(PermanentError) as refused:
            portal.apply(manifest)
        assert "only objects with the label" in refused.value.message


@pytest.mark.parametrize("role", ["cluster-admin", "admin", "edit", "view"])
def test_it_binds_no_other_role(
    portal: Cluster, kubernetes: Kubernetes, role: str
) -> None:
    put(portal, TENANCY[:1])
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    if kubernetes.get((RBAC, "ClusterRole"), role) is None:
        found = {
            "apiVersion": RBAC,
            "kind": "ClusterRole",
            "metadata": {"name": role},
            "rules": everything,
        }
        kubernetes.create(found)
    binding: Manifest = next(m for m in TENANCY if m["kind"] == "RoleBinding")
    with pytest.raises(PermanentError) as refused:
        portal.apply(binding | {"roleRef": binding["roleRef"] | {"name": role}})
    assert refused.value.code == "escalation"
    assert kubernetes.get((RBAC, "RoleBinding"), "team-users", WHOLE.namespace) is None


CORPUS = Volume(name="corpus", gib=10, access="ReadWriteMany")
# With Kueue, and with Volcano.
OURS = {ref_of(manifest) for manifest in [*TENANCY, *FLEET]} | {QUEUE}
# What runs longer than it is held may be stopped.
STOPPED = {
    ("patch", ("kueue.x-k8s.io/v1beta2", "Workload")),
    ("delete", ("batch/v1", "Job")),
}


@pytest.mark.parametrize(
    "verb", ["create", "patch", "update", "delete", "deletecollection"]
)
def test_it_writes_no_other_kind(portal: Cluster, verb: str) -> None:
    others = [ref for ref in KINDS if ref not in OURS]
    assert len(others) > 5
    assert [
        ref for ref in others if portal.can_i(verb, ref) and (verb, ref) not in STOPPED
    ] == []


def test_it_updates_nothing_whole_and_deletes_no_collection(portal: Cluster) -> None:
    for verb in ("update", "deletecollection"):
        assert [ref for ref in OURS if portal.can_i(verb, ref)] == []


@pytest.mark.parametrize(
    ("ref", "name"),
    [
        (("v1", "ConfigMap"), "coredns"),
        (("v1", "ResourceQuota"), "theirs"),
        (("v1", "ServiceAccount"), "builder"),
        (("networking.k8s.io/v1", "NetworkPolicy"), "theirs"),
        ((RBAC, "RoleBinding"), "system:controller:x"),
        (("scheduling.k8s.io/v1", "PriorityClass"), "system-cluster-critical"),
        (("v1", "LimitRange"), "theirs"),
    ],
)
def test_it_changes_no_object_of_another_name(
    portal: Cluster, ref: Ref, name: str
) -> None:
    assert not any(
        portal.can_i(verb, ref, "kube-system", name)
        for verb in ("patch", "delete", "update")
    )


def rules(name: str = "quartermaster-provisioner") -> list[dict[str, Any]]:
    found = [*yaml.safe_load_all((DEPLOY / "provisioner.yaml").read_text())]
    [role] = [
        one
        for one in found
        if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", name)
    ]
    held: list[dict[str, Any]] = role["rules"]
    return held


def test_it_reads_no_secret_and_holds_no_wildcard() -> None:
    for rule in [*rules(), *rules(RUN_ROLE)]:
        assert "secrets" not in rule["resources"]
        assert not {"*"} & {*rule["resources"], *rule["verbs"], *rule["apiGroups"]}
        assert not {"escalate", "impersonate", "approve", "sign"} & {*rule["verbs"]}
    assert [rule["resourceNames"] for rule in rules() if "bind" in rule["verbs"]] == [
        [TEAM_ROLE, RUN_ROLE]
    ]


def test_the_names_it_may_change_are_the_names_it_gives() -> None:
    given: dict[str, set[str]] = {}
    for manifest in [*TENANCY, *FLEET]:
        given.setdefault(KINDS[ref_of(manifest)][0], set()).add(
            manifest["metadata"]["name"]
        )
    named = {
        resource: set(rule["resourceNames"])
        for rule in rules()
        for resource in rule["resources"]
        if "patch" in rule["verbs"] and "resourceNames" in rule
    }
    assert named == {resource: given[resource] for resource in named}
    assert SAMPLE.namespace not in str(named)
