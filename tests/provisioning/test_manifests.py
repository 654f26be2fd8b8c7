"""The ten objects of a tenancy, and what no desired state may ever make of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioning.manifests import (
    CPU_FLAVOR,
    GPU,
    PRIORITIES,
    Manifest,
    count,
    fleet_objects,
    gibibytes,
    tenancy_objects,
)
from sandbox.kubernetes import quantities
from tests.provisioning.specs import SAMPLE, sample

NAMESPACE = SAMPLE.namespace
KUEUE = "kueue.x-k8s.io/v1beta2"
RBAC = "rbac.authorization.k8s.io"
LABELS = {
    "app.kubernetes.io/managed-by": "quartermaster",
    "quartermaster.io/tenancy": "7",
    "quartermaster.io/team": "vision",
    "quartermaster.io/project": "detection",
    "quartermaster.io/cost-center": "CC-4100",
    "quartermaster.io/environment": "dev",
}
OWN = {"namespace": NAMESPACE, "labels": LABELS}
DNS_PORTS = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
DNS = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}


def resource(name: str, nominal: str, borrow: str) -> dict[str, str]:
    return {"name": name, "nominalQuota": nominal, "borrowingLimit": borrow}


TEN: list[Manifest] = [
    {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            "labels": LABELS
            | {
                "kueue.x-k8s.io/managed": "true",
                "pod-security.kubernetes.io/enforce": "baseline",
                "pod-security.kubernetes.io/enforce-version": "latest",
                "pod-security.kubernetes.io/warn": "restricted",
                "pod-security.kubernetes.io/audit": "restricted",
            },
        },
    },
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team-quota", **OWN},
        "spec": {
            "hard": {
                "requests.cpu": "40",
                "limits.cpu": "80",
                "requests.memory": "256Gi",
                "limits.memory": "512Gi",
                "requests.nvidia.com/gpu": "3",
                "pods": "62",
                "persistentvolumeclaims": "20",
                "requests.storage": "2Ti",
                "services.loadbalancers": "0",
                "services.nodeports": "0",
                "count/jobs.batch": "200",
                "count/secrets": "100",
            }
        },
    },
    {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "team-defaults", **OWN},
        "spec": {
            "limits": [
                {
                    "type": "Container",
                    "default": {"cpu": "2", "memory": "4Gi"},
                    "defaultRequest": {"cpu": "500m", "memory": "1Gi"},
                },
                {"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}},
            ]
        },
    },
    {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "workload", **OWN},
        "automountServiceAccountToken": False,
    },
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "team-users", **OWN},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "quartermaster-team-user"},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "00000000-0000-4000-9000-000000000001"}],
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "default-deny", **OWN},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "allow-own-and-dns", **OWN},
        "spec": {
            "podSelector": {},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [{"podSelector": {}}]}],
            "egress": [
                {"to": [{"podSelector": {}}]},
                {"to": [DNS], "ports": DNS_PORTS},
                {"to": [{"ipBlock": {"cidr": "169.254.20.0/24"}}], "ports": DNS_PORTS},
            ],
        },
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "datasets", **OWN},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "100Gi"}},
            "storageClassName": "azurefile-premium",
        },
    },
    {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": NAMESPACE, "labels": LABELS},
        "spec": {
            "cohortName": "quartermaster",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "memory", GPU],
                    "flavors": [
                        {
                            "name": CPU_FLAVOR,
                            "resources": [
                                resource("cpu", "16", "0"), resource("memory", "64Gi", "0"), resource(GPU, "0", "0"),
                            ],
                        },
                        {
                            "name": "a100-80gb",
                            "resources": [
                                resource("cpu", "16", "8"), resource("memory", "128Gi", "64Gi"),
                                resource(GPU, "2", "1"),
                            ],
                        },
                        {
                            "name": "h100-80gb",
                            "resources": [
                                resource("cpu", "0", "0"), resource("memory", "0", "0"), resource(GPU, "0", "0"),
                            ],
                        },
                    ],
                }
            ],
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "stopPolicy": "None",
        },
    },
    {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": "default", **OWN},
        "spec": {"clusterQueue": NAMESPACE},
    },
]  # fmt: skip


@pytest.mark.parametrize("place", range(10), ids=[f"{m['kind']} {m['metadata']['name']}" for m in TEN])
def test_a_tenancy_is_these_ten_objects(place: int) -> None:
    assert tenancy_objects(SAMPLE)[place] == TEN[place]
    assert len(tenancy_objects(SAMPLE)) == 10


def test_what_every_tenancy_shares() -> None:
    taint = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
    shared = {"app.kubernetes.io/managed-by": "quartermaster", "quartermaster.io/scope": "cluster"}

    def wide(kind: str, name: str, **rest: Any) -> Manifest:
        return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name, "labels": shared}, **rest}

    found = fleet_objects(
        cohort="lab", flavors=[("a100", {"accelerator": "nvidia-a100"}, [taint]), ("t4", {"gpu": "t4"}, [])]
    )
    assert found == [
        wide("Cohort", "lab"),
        wide("ResourceFlavor", "quartermaster-cpu"),
        wide(
            "ResourceFlavor",
            "a100",
            spec={
                "nodeLabels": {"accelerator": "nvidia-a100"},
                "nodeTaints": [taint],
                "tolerations": [{"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}],
            },
        ),
        wide("ResourceFlavor", "t4", spec={"nodeLabels": {"gpu": "t4"}}),
        *(
            wide("WorkloadPriorityClass", name, value=value, description=words)
            for name, (value, words) in PRIORITIES.items()
        ),
    ]
    assert [(name, value) for name, (value, _) in PRIORITIES.items()] == [
        ("production-inference", 1_000_000),
        ("scheduled-training", 100_000),
        ("exploratory", 1_000),
        ("best-effort", 0),
    ]


def test_a_taint_without_a_value_is_tolerated_whatever_its_value() -> None:
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    flavor = fleet_objects(cohort="lab", flavors=[("a100", {}, [taint])])[2]
    assert flavor["spec"]["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]


def test_no_storage_class_leaves_the_choice_to_the_cluster() -> None:
    [claim] = [m for m in tenancy_objects(sample(storage_class="")) if m["kind"] == "PersistentVolumeClaim"]
    assert "storageClassName" not in claim["spec"]


@pytest.mark.parametrize(
    ("gib", "text"),
    [(0, "0"), (1, "1Gi"), (1000, "1000Gi"), (1024, "1Ti"), (1536, "1536Gi"), (2048, "2Ti"), (2**20, "1Pi"),
     (2**30, "1Ei")],
)  # fmt: skip
def test_a_size_is_written_as_the_api_server_would_write_it(gib: int, text: str) -> None:
    assert gibibytes(gib) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (1, "1"), (999, "999"), (1000, "1k"), (1500, "1500"), (57_000, "57k"), (10**6, "1M")],
)
def test_a_number_is_written_as_the_api_server_would_write_it(number: int, text: str) -> None:
    assert count(number) == text


@given(st.integers(0, 10**9) | st.integers(0, 10**6).map(lambda thousands: thousands * 1000))
def test_any_number_is_in_its_canonical_form(number: int) -> None:
    assert quantities.canonical(str(number)) == count(number)


@given(st.integers(0, 2**31) | st.integers(0, 2**21).map(lambda tebibytes: tebibytes * 1024))
def test_any_size_is_in_its_canonical_form(gib: int) -> None:
    assert quantities.canonical(f"{gib}Gi") == gibibytes(gib)
