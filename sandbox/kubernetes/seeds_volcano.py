"""What a cluster with Volcano is born with: its three programs, their configuration and the queues that they make.

As installer/helm/chart/volcano has them in release 1.15 (templates/scheduler.yaml, controllers.yaml, admission.yaml),
with the configuration that its guide for the capacity plugin gives (docs/user-guide/how_to_use_capacity_plugin.md).
The queues are those of newDefaultAndRootQueue in pkg/scheduler/cache/cache.go.
"""

from collections.abc import Iterator
from typing import Any

from sandbox.kubernetes.kinds import VOLCANO_SCHEDULING

RELEASE = "v1.15.1"
NAMESPACE = "volcano-system"
# The name of each Deployment, and that of its image.
PROGRAMS = {
    "volcano-scheduler": "vc-scheduler",
    "volcano-controllers": "vc-controller-manager",
    "volcano-admission": "vc-webhook-manager",
}
CONFIGURATION = """actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: capacity
  - name: nodeorder
  - name: binpack
"""


def volcano() -> Iterator[dict[str, Any]]:
    """Every object, without uid."""
    for name, image in PROGRAMS.items():
        yield _deployment(name, f"docker.io/volcanosh/{image}:{RELEASE}")
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-scheduler-configmap", "namespace": NAMESPACE},
        "data": {"volcano-scheduler.conf": CONFIGURATION},
    }
    yield _queue("root", reclaimable=False)
    yield _queue("default", reclaimable=True)


def _deployment(name: str, image: str) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": name, "image": image}]},
            },
        },
        "status": {"replicas": 1, "readyReplicas": 1},
    }


def _queue(name: str, *, reclaimable: bool) -> dict[str, Any]:
    spec = {"dequeueStrategy": "traverse", "reclaimable": reclaimable, "weight": 1}
    return {
        "apiVersion": f"{VOLCANO_SCHEDULING}/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "generation": 1},
        "spec": spec,
        "status": {"allocated": {}, "state": "Open"},
    }
