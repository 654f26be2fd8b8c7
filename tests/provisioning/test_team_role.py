"""What a team's people may do in their namespace: a day's work, and no way to more rights."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioning.desired.manifests import TEAM_ROLE
from sandbox.kubernetes import Cluster, Identity
from sandbox.kubernetes.kinds import builtin
from sandbox.kubernetes.rbac import Attributes, Authorizer
from tests.provisioning.kubernetes import DEPLOY

GROUP = "00000000-0000-4000-9000-000000000001"
MEMBER = Identity("ada@example.com", (GROUP,))
SPACE = "qm-vision-main-5df899"
RBAC = "rbac.authorization.k8s.io"
CHANGES = ("create", "update", "patch", "delete")
ALL = ("get", "list", *CHANGES, "watch", "deletecollection")

# What a day's work needs: by group, resource and verbs.
WORK = [
    ("", "pods", ("get", "list", "watch", "create", "delete")),
    ("", "pods/log", ("get",)),
    ("", "pods/exec", ("create", "get")),
    ("", "pods/portforward", ("create", "get")),
    ("", "services", CHANGES),
    ("", "configmaps", CHANGES),
    ("", "secrets", ("get", "list", *CHANGES)),
    ("", "persistentvolumeclaims", CHANGES),
    ("", "events", ("get", "list", "watch")),
    ("apps", "deployments", ("get", "list", "watch", *CHANGES)),
    ("apps", "deployments/scale", ("get", "patch")),
    ("batch", "jobs", ("get", "list", "watch", *CHANGES)),
    ("batch", "cronjobs", ("get", "list", "watch", *CHANGES)),
    ("jobset.x-k8s.io", "jobsets", CHANGES),
    ("kubeflow.org", "pytorchjobs", CHANGES),
    ("kubeflow.org", "mpijobs", CHANGES),
    ("trainer.kubeflow.org", "trainjobs", CHANGES),
    ("leaderworkerset.x-k8s.io", "leaderworkersets", CHANGES),
    ("ray.io", "rayjobs", CHANGES),
    ("batch.volcano.sh", "jobs", ("get", "list", "watch", *CHANGES)),
    ("scheduling.volcano.sh", "podgroups", ("get", "list", "watch")),
    ("kueue.x-k8s.io", "localqueues", ("get", "list", "watch")),
    ("kueue.x-k8s.io", "workloads", ("get", "list", "watch")),
]
# Each would lead to more rights, or around quota, queue or isolation.
ESCALATIONS = [
    *(
        (RBAC, plural, ALL)
        for plural in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
    ),
    (RBAC, "clusterroles", ("bind", "escalate")),
    ("", "users", ("impersonate",)),
    ("", "groups", ("impersonate",)),
    ("", "serviceaccounts", ("impersonate", *CHANGES)),
    ("", "serviceaccounts/token", ("create",)),
    ("", "pods", ("update", "patch", "deletecollection")),
    ("", "pods/ephemeralcontainers", ("update", "patch")),
    ("", "pods/binding", ("create",)),
    ("", "pods/status", ("update", "patch")),
    ("", "pods/resize", ("update", "patch")),
    ("", "services/status", ("update", "patch")),
    ("", "services/proxy", ("get", "create")),
    ("", "endpoints", CHANGES),
    ("discovery.k8s.io", "endpointslices", CHANGES),
    ("", "nodes", ALL),
    ("", "nodes/proxy", ("get", "create")),
    ("", "namespaces", CHANGES),
    ("", "persistentvolumes", ALL),
    ("", "resourcequotas", (*CHANGES, "deletecollection")),
    ("", "limitranges", CHANGES),
    ("", "secrets", ("watch", "deletecollection")),
    ("networking.k8s.io", "networkpolicies", CHANGES),
    ("networking.k8s.io", "ingresses", CHANGES),
    ("scheduling.k8s.io", "priorityclasses", CHANGES),
    ("storage.k8s.io", "storageclasses", CHANGES),
    ("resource.k8s.io", "resourceclaims", CHANGES),
    ("kueue.x-k8s.io", "localqueues", CHANGES),
    ("kueue.x-k8s.io", "workloads", CHANGES),
    ("kueue.x-k8s.io", "clusterqueues", ALL),
    ("scheduling.volcano.sh", "podgroups", CHANGES),
    ("scheduling.volcano.sh", "queues", CHANGES),
    ("bus.volcano.sh", "commands", ALL),
    ("apps", "daemonsets", CHANGES),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", ALL),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", ALL),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", ALL),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", ALL),
    ("apiextensions.k8s.io", "customresourcedefinitions", ALL),
    ("apiregistration.k8s.io", "apiservices", ALL),
    ("certificates.k8s.io", "certificatesigningrequests", (*ALL, "approve", "sign")),
    ("authentication.k8s.io", "tokenreviews", ("create",)),
    ("cilium.io", "ciliumnetworkpolicies", CHANGES),
]


def rules() -> list[dict[str, Any]]:
    [role] = yaml.safe_load_all((DEPLOY / "team-role.yaml").read_text())
    assert role["metadata"]["name"] == TEAM_ROLE
    held: list[dict[str, Any]] = role["rules"]
    return held


def bound() -> Authorizer:
    """A cluster with the shipped role, bound to the team's group in its namespace as the portal binds it."""
    cluster = Cluster("t")
    store = cluster.store
    role = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": TEAM_ROLE},
        "rules": rules(),
    }
    store.put(builtin(f"{RBAC}/v1", "ClusterRole"), role)
    subject = {"kind": "Group", "apiGroup": RBAC, "name": GROUP}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "team-users", "namespace": SPACE},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": TEAM_ROLE},
        "subjects": [subject],
    }
    store.put(builtin(f"{RBAC}/v1", "RoleBinding"), binding)
    return cluster.authorizer


AUTHORIZER = bound()


def may(verb: str, group: str, resource: str, namespace: str = SPACE) -> bool:
    plural, _, part = resource.partition("/")
    return AUTHORIZER.allowed(
        MEMBER, Attributes(verb, group, plural, part, namespace, "it")
    )[0]


@pytest.mark.parametrize(("group", "resource", "verbs"), WORK)
def test_a_days_work_is_possible(
    group: str, resource: str, verbs: tuple[str, ...]
) -> None:
    assert [verb for verb in verbs if not may(verb, group, resource)] == []


@pytest.mark.parametrize(("group", "resource", "verbs"), ESCALATIONS)
def test_nothing_leads_to_more_rights(
    group: str, resource: str, verbs: tuple[str, ...]
) -> None:
    assert [verb for verb in verbs if may(verb, group, resource)] == []


def test_the_role_holds_no_wildcard_and_names_no_path() -> None:
    for rule in rules():
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not any(resource.startswith("*") for resource in rule["resources"])
        assert set(rule) == {"apiGroups", "resources", "verbs"}


KNOWN = sorted({(group, resource) for group, resource, _ in [*WORK, *ESCALATIONS]})
VERBS = st.sampled_from(
    [*ALL, "bind", "escalate", "impersonate", "approve", "sign", "use", "*"]
)
WORDS = st.from_regex(r"[a-z]{1,12}", fullmatch=True)


@pytest.mark.slow
@settings(max_examples=300)
@given(
    VERBS,
    st.sampled_from(KNOWN) | st.tuples(WORDS, WORDS),
    st.sampled_from(["", "kube-system", "qm-other-1"]),
)
def test_in_other_namespaces_and_cluster_wide_a_member_may_nothing(
    verb: str, what: tuple[str, str], namespace: str
) -> None:
    assert not may(verb, *what, namespace=namespace)


GIVEN = {
    (group, resource, verb)
    for rule in rules()
    for group in rule["apiGroups"]
    for resource in rule["resources"]
    for verb in rule["verbs"]
}


@pytest.mark.slow
@settings(max_examples=300)
@given(VERBS, st.sampled_from(KNOWN) | st.tuples(WORDS, WORDS))
def test_in_the_own_namespace_a_member_may_what_the_role_names_and_nothing_else(
    verb: str, what: tuple[str, str]
) -> None:
    assert may(verb, *what) == ((*what, verb) in GIVEN)
