"""The objects of a tenancy, and of what all of them share, one by one."""

from typing import Any

import pytest

from fleet.egress import EgressRule
from fleet.services import SharedService
from provisioning.desired.manifests import (
    CPU_FLAVOR,
    GPU,
    NAMED,
    PRIORITIES,
    Manifest,
    changed_objects,
    fleet_objects,
    sometimes,
    tenancy_objects,
)
from provisioning.desired.spec import FlavorQuota, TenancySpec
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
    "team": "vision",
    "project": "detection",
    "cost-center": "CC-4100",
    "environment": "dev",
}
OWN = {"namespace": NAMESPACE, "labels": LABELS}
NOT_PRUNED = {
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
}
DNS_PORTS = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
DNS = {
    "namespaceSelector": {
        "matchLabels": {"kubernetes.io/metadata.name": "kube-system"}
    },
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}


def resource(name: str, nominal: str, borrow: str) -> dict[str, str]:
    return {"name": name, "nominalQuota": nominal, "borrowingLimit": borrow}


ALL: list[Manifest] = [
    {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            "annotations": NOT_PRUNED,
            "labels": LABELS
            | {
                "quartermaster.io/group": "00000000-0000-4000-9000-000000000001",
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
        "kind": "ResourceQuota",
        "metadata": {"name": "team-priorities", **OWN},
        "spec": {
            "hard": {"pods": "0"},
            "scopeSelector": {
                "matchExpressions": [
                    {
                        "scopeName": "PriorityClass",
                        "operator": "In",
                        "values": [
                            "production-inference",
                            "scheduled-training",
                            "system-cluster-critical",
                            "system-node-critical",
                        ],
                    }
                ]
            },
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
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", **OWN},
        "automountServiceAccountToken": False,
    },
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "team-users", **OWN},
        "roleRef": {
            "apiGroup": RBAC,
            "kind": "ClusterRole",
            "name": "quartermaster-team-user",
        },
        "subjects": [
            {
                "apiGroup": RBAC,
                "kind": "Group",
                "name": "00000000-0000-4000-9000-000000000001",
            }
        ],
    },
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "portal-runs", **OWN},
        "roleRef": {
            "apiGroup": RBAC,
            "kind": "ClusterRole",
            "name": "quartermaster-runs",
        },
        "subjects": [
            {
                "kind": "ServiceAccount",
                "name": "provisioner",
                "namespace": "quartermaster",
            },
            {"apiGroup": RBAC, "kind": "User", "name": "quartermaster"},
        ],
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
                {
                    "to": [
                        {
                            "ipBlock": {
                                "cidr": "169.254.0.0/16",
                                "except": ["169.254.169.254/32"],
                            }
                        }
                    ],
                    "ports": DNS_PORTS,
                },
            ],
        },
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "datasets", **OWN, "annotations": NOT_PRUNED},
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
            "namespaceSelector": {
                "matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}
            },
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "memory", GPU],
                    "flavors": [
                        {
                            "name": CPU_FLAVOR,
                            "resources": [
                                resource("cpu", "16", "0"),
                                resource("memory", "64Gi", "0"),
                                resource(GPU, "0", "0"),
                            ],
                        },
                        {
                            "name": "a100-80gb",
                            "resources": [
                                resource("cpu", "16", "8"),
                                resource("memory", "128Gi", "64Gi"),
                                resource(GPU, "2", "1"),
                            ],
                        },
                        {
                            "name": "h100-80gb",
                            "resources": [
                                resource("cpu", "0", "0"),
                                resource("memory", "0", "0"),
                                resource(GPU, "0", "0"),
                            ],
                        },
                    ],
                }
            ],
            "preemption": {
                "withinClusterQueue": "LowerPriority",
                "reclaimWithinCohort": "Any",
            },
            "fairSharing": {"weight": "1"},
            "stopPolicy": "None",
        },
    },
    {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": "default", **OWN},
        "spec": {"clusterQueue": NAMESPACE},
    },
]


PLAIN = sample(dashboards=False)


@pytest.mark.parametrize(
    "place", range(len(ALL)), ids=[f"{m['kind']} {m['metadata']['name']}" for m in ALL]
)
def test_a_tenancy_is_these_objects(place: int) -> None:
    assert tenancy_objects(PLAIN)[place] == ALL[place]
    assert len(tenancy_objects(PLAIN)) == len(ALL)


def test_what_every_tenancy_shares() -> None:
    taint = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
    shared = {
        "app.kubernetes.io/managed-by": "quartermaster",
        "quartermaster.io/scope": "cluster",
    }

    def wide(kind: str, name: str, **rest: Any) -> Manifest:
        return {
            "apiVersion": KUEUE,
            "kind": kind,
            "metadata": {"name": name, "labels": shared},
            **rest,
        }

    found = fleet_objects(
        cohort="lab",
        flavors=[
            ("a100", {"accelerator": "nvidia-a100"}, [taint]),
            ("t4", {"gpu": "t4"}, []),
        ],
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
                "tolerations": [
                    {
                        "key": "sku",
                        "operator": "Equal",
                        "value": "gpu",
                        "effect": "NoSchedule",
                    }
                ],
            },
        ),
        wide("ResourceFlavor", "t4", spec={"nodeLabels": {"gpu": "t4"}}),
        *(
            wide("WorkloadPriorityClass", name, value=value, description=words)
            for name, (value, words) in PRIORITIES.items()
        ),
        *(
            wide(
                "PriorityClass",
                name,
                value=value,
                description=words,
                preemptionPolicy="Never",
            )
            | {"apiVersion": "scheduling.k8s.io/v1"}
            for name, (value, words) in PRIORITIES.items()
        ),
    ]


def test_production_comes_before_training_and_training_before_trying_things() -> None:
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
    [claim] = [
        m
        for m in tenancy_objects(sample(storage_class=""))
        if m["kind"] == "PersistentVolumeClaim"
    ]
    assert "storageClassName" not in claim["spec"]


def found(kind: str, name: str = "", **changes: Any) -> Manifest:
    [one] = [
        m
        for m in tenancy_objects(sample(**changes))
        if m["kind"] == kind and name in ("", m["metadata"]["name"])
    ]
    return one


def pods_of(namespace: str, **labels: str) -> dict[str, Any]:
    return {
        "namespaceSelector": {
            "matchLabels": {"kubernetes.io/metadata.name": namespace}
        },
        "podSelector": {"matchLabels": labels},
    }


def test_the_notebook_hub_reaches_notebooks_and_they_reach_it() -> None:
    policy = found(
        "NetworkPolicy", "allow-jupyterhub", jupyterhub_namespace="jupyterhub"
    )
    hub = pods_of("jupyterhub", app="jupyterhub", component="hub")
    proxy = pods_of("jupyterhub", app="jupyterhub", component="proxy")
    assert policy["spec"] == {
        "podSelector": {"matchLabels": {"component": "singleuser-server"}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"from": [hub, proxy], "ports": [{"port": 8888, "protocol": "TCP"}]}
        ],
        "egress": [{"to": [hub], "ports": [{"port": 8081, "protocol": "TCP"}]}],
    }


def test_shared_services_are_reached_one_by_one() -> None:
    services = (
        SharedService(
            name="mlflow", namespace="tracking", labels=(("app", "mlflow"),), port=5000
        ),
        SharedService(
            name="registry", namespace="harbor", labels=(("app", "harbor"),), port=443
        ),
    )
    policy = found("NetworkPolicy", "allow-shared-services", services=services)
    assert policy["spec"] == {
        "podSelector": {},
        "policyTypes": ["Egress"],
        "egress": [
            {
                "to": [pods_of("tracking", app="mlflow")],
                "ports": [{"port": 5000, "protocol": "TCP"}],
            },
            {
                "to": [pods_of("harbor", app="harbor")],
                "ports": [{"port": 443, "protocol": "TCP"}],
            },
        ],
    }


def test_a_mig_profile_is_a_resource_of_its_own_in_the_same_group() -> None:
    mig = FlavorQuota(
        name="a100-mig",
        gpus=7,
        borrow=3,
        cpu_per_gpu=1,
        memory_gib_per_gpu=8,
        resource="nvidia.com/mig-1g.10gb",
    )
    flavors = (mig, *(flavor for flavor in SAMPLE.flavors if flavor.gpus))
    flavors = tuple(sorted(flavors, key=lambda flavor: flavor.name))
    [group] = found("ClusterQueue", flavors=flavors)["spec"]["resourceGroups"]
    assert group["coveredResources"] == ["cpu", "memory", GPU, "nvidia.com/mig-1g.10gb"]
    assert {flavor["name"]: flavor["resources"][2:] for flavor in group["flavors"]} == {
        CPU_FLAVOR: [
            resource(GPU, "0", "0"),
            resource("nvidia.com/mig-1g.10gb", "0", "0"),
        ],
        "a100-80gb": [
            resource(GPU, "2", "1"),
            resource("nvidia.com/mig-1g.10gb", "0", "0"),
        ],
        "a100-mig": [
            resource(GPU, "0", "0"),
            resource("nvidia.com/mig-1g.10gb", "7", "3"),
        ],
    }
    hard = found("ResourceQuota", "team-quota", flavors=flavors)["spec"]["hard"]
    assert (hard[f"requests.{GPU}"], hard["requests.nvidia.com/mig-1g.10gb"]) == (
        "3",
        "10",
    )


def test_work_that_outlives_its_allocation_has_room_and_no_guarantee() -> None:
    flavors = (FlavorQuota(name="a100", gpus=1, over=2),)
    [group] = found("ClusterQueue", flavors=flavors)["spec"]["resourceGroups"]
    assert group["flavors"][1]["resources"][2] == resource(GPU, "1", "0")
    assert (
        found("ResourceQuota", "team-quota", flavors=flavors)["spec"]["hard"][
            f"requests.{GPU}"
        ]
        == "3"
    )


def test_a_larger_share_weighs_more() -> None:
    assert found("ClusterQueue", weight=5)["spec"]["fairSharing"] == {"weight": "5"}


def test_the_queue_never_preempts_while_it_borrows_itself() -> None:
    assert "borrowWithinCohort" not in found("ClusterQueue")["spec"]["preemption"]


def test_no_priority_is_the_default_of_a_cluster() -> None:
    classes = [
        m
        for m in fleet_objects(cohort="lab", flavors=[])
        if m["kind"] == "PriorityClass"
    ]
    assert [m["metadata"]["name"] for m in classes] == list(PRIORITIES)
    assert not any("globalDefault" in m for m in classes)


@pytest.mark.parametrize(
    ("after", "changed"),
    [
        pytest.param(SAMPLE, [], id="the same"),
        pytest.param(sample(weight=5), [f"ClusterQueue {NAMESPACE}"], id="a share"),
        pytest.param(
            sample(entra_group="00000000-0000-4000-9000-000000000002"),
            [f"Namespace {NAMESPACE}", "RoleBinding team-users"],
            id="another group, in the order of creation",
        ),
        pytest.param(
            sample(jupyterhub_namespace="hub"),
            ["NetworkPolicy allow-jupyterhub"],
            id="what comes",
        ),
        pytest.param(PLAIN, [], id="what goes"),
    ],
)
def test_only_what_has_other_content_is_said_to_change(
    after: TenancySpec, changed: list[str]
) -> None:
    assert changed_objects(SAMPLE, after) == changed


def kinds(spec: TenancySpec) -> set[tuple[str, str]]:
    return {(m["apiVersion"], m["kind"]) for m in tenancy_objects(spec)}


def test_a_kind_of_which_a_tenancy_may_want_none_is_looked_for_all_the_same() -> None:
    assert {*sometimes(PLAIN)} == kinds(SAMPLE) - kinds(PLAIN)
    to_a_name = (EgressRule(name="mirror", names=("mirror.example.org",)),)
    enforced, open_to_it = sample(by_name=True), sample(by_name=True, egress=to_a_name)
    assert {*sometimes(enforced)} == kinds(open_to_it) - kinds(PLAIN)


def test_of_config_maps_the_portal_reads_the_one_it_makes() -> None:
    made = {
        (m["apiVersion"], m["kind"]): m["metadata"]["name"]
        for m in tenancy_objects(SAMPLE)
        if m["kind"] == "ConfigMap"
    }
    assert made == NAMED
