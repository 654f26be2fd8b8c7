"""What a cluster is born with: system namespaces, bootstrap roles and bindings, nodes."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.kubernetes.kinds import RBAC_GROUP, VOLCANO
from sandbox.kubernetes.seeds_volcano import volcano

DATA = Path(__file__).parent / "data"
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
KUEUE_RELEASE = "v0.19.2"
_SETTINGS = """apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
managedJobsNamespaceSelector:
  matchLabels:
    kueue.x-k8s.io/managed: "true"
integrations:
  frameworks:
  - batch/job
  - pod
  - jobset.x-k8s.io/jobset
"""
_BINDINGS = {
    "cluster-admin": ("system:masters",),
    "system:basic-user": ("system:authenticated",),
    "system:public-info-viewer": ("system:authenticated", "system:unauthenticated"),
    "system:service-account-issuer-discovery": ("system:authenticated",),
    "system:discovery": ("system:authenticated",),
}


@dataclass(frozen=True)
class NodeSpec:
    """One node to be born with; memory and cpu are Kubernetes quantities, taints are (key, value, effect)."""

    name: str
    gpus: int = 0
    cpu: str = "16"
    memory: str = "64Gi"
    instance_type: str = "Standard_D16s_v5"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[tuple[str, str, str], ...] = ()


def seeds(
    nodes: tuple[NodeSpec, ...], now: str, queueing: str
) -> Iterator[dict[str, Any]]:
    """Every object of a new cluster, without uid; namespaces come before what is in them."""
    for name in (*SYSTEM_NAMESPACES, f"{queueing}-system"):
        yield _namespace(name)
    roles = json.loads((DATA / "roles.json").read_text())
    for name, rules in roles.items():
        yield {**_rbac("ClusterRole", name), "rules": rules}
    for name, groups in _BINDINGS.items():
        yield {
            **_rbac("ClusterRoleBinding", name),
            "roleRef": _ref(name),
            "subjects": [_group(g) for g in groups],
        }
    yield from _system_priorities()
    yield from volcano() if queueing == VOLCANO else (_kueue(), _kueue_settings())
    for spec in nodes:
        yield node(spec, now)


def _system_priorities() -> Iterator[dict[str, Any]]:
    for name, value in (
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    ):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name, "generation": 1},
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority",
            "description": "Used for system critical pods that must run in the cluster.",
        }


def _kueue() -> dict[str, Any]:
    """The controller's deployment, as the release's manifests make it, as far as anybody reads it."""
    labels = {"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"}
    pod = {
        "containers": [
            {"name": "manager", "image": f"registry.k8s.io/kueue/kueue:{KUEUE_RELEASE}"}
        ]
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "kueue-controller-manager",
            "namespace": "kueue-system",
            "labels": labels,
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
        "status": {"replicas": 1, "readyReplicas": 1},
    }


def _kueue_settings() -> dict[str, Any]:
    """The controller's configuration: the kinds of jobs that it queues, and in which namespaces."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": {"controller_manager_config.yaml": _SETTINGS},
    }


def _namespace(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _rbac(kind: str, name: str) -> dict[str, Any]:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": labels},
    }


def _ref(name: str) -> dict[str, str]:
    return {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name}


def _group(name: str) -> dict[str, str]:
    return {"kind": "Group", "apiGroup": RBAC_GROUP, "name": name}


def node(spec: NodeSpec, now: str) -> dict[str, Any]:
    """A healthy node as its agent would have registered it; ``now`` is an RFC 3339 time."""
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": spec.instance_type,
        **spec.labels,
    }
    taints = [
        {"key": key, "value": value, "effect": effect}
        for key, value, effect in spec.taints
    ]
    room = {
        "cpu": spec.cpu,
        "ephemeral-storage": "2Ti",
        "memory": spec.memory,
        "pods": "110",
    }
    if spec.gpus:
        room["nvidia.com/gpu"] = str(spec.gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": labels},
        "spec": {"taints": taints} if taints else {},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [_condition(*row, now=now) for row in _CONDITIONS],
            "addresses": [{"type": "Hostname", "address": spec.name}],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "containerd://2.1.0",
                "kernelVersion": "6.8.0",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.2",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "Ubuntu 24.04 LTS",
                "systemUUID": "",
            },
        },
    }


_CONDITIONS = (
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    (
        "DiskPressure",
        "False",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    ),
    (
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    ),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def _condition(
    kind: str, status: str, reason: str, message: str, *, now: str
) -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
