"""The first job of somebody whose team was just granted GPUs: it runs as it stands. Pure.

It asks for what it needs and no more (requests equal limits), names the team's queue, and is as restricted as the
strictest Pod Security standard wants.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from provisioning.desired.spec import KUEUE, VOLCANO
from provisioning.desired.volcano import BATCH

NAME = "first-job"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
QUEUE = "default"
IMAGE = "registry.k8s.io/e2e-test-images/busybox:1.36.1-1"
NOBODY = 65_534
KEPT_SECONDS = 86_400
SCRIPT = 'echo "Hello from $(hostname)"; ls /dev | grep nvidia || echo "No GPU was asked for."; sleep 2'


@dataclass(frozen=True)
class Kind:
    """A kind of GPU as a pod asks for it."""

    name: str
    resource: str
    node_labels: Mapping[str, str]
    taints: Sequence[Mapping[str, str]]

    @property
    def tolerations(self) -> list[dict[str, str]]:
        """What lets a pod onto its nodes."""
        return [_toleration(taint) for taint in self.taints]


def queue_of(namespace: str, queueing: str) -> str:
    """The queue that a job of a namespace names: with Volcano it has the namespace's name."""
    return namespace if queueing == VOLCANO else QUEUE


def first_job(
    namespace: str, kind: Kind | None, *, queueing: str = KUEUE
) -> dict[str, Any]:
    """A Job with one GPU of this kind, or with none, in the team's queue."""
    amounts = {"cpu": "1", "memory": "1Gi", **({kind.resource: "1"} if kind else {})}
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["sh", "-c", SCRIPT],
        "resources": {"requests": amounts, "limits": dict(amounts)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    if kind and kind.node_labels:
        pod["nodeSelector"] = dict(kind.node_labels)
    if kind and kind.taints:
        pod["tolerations"] = kind.tolerations
    if queueing == VOLCANO:
        return _volcano_job(namespace, pod)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": {QUEUE_LABEL: QUEUE},
        },
        "spec": {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"spec": pod},
        },
    }


def _volcano_job(namespace: str, pod: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": BATCH,
        "kind": "Job",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {
            "schedulerName": VOLCANO,
            "queue": queue_of(namespace, VOLCANO),
            "minAvailable": 1,
            "maxRetry": 1,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "tasks": [{"name": "main", "replicas": 1, "template": {"spec": dict(pod)}}],
        },
    }


def as_yaml(manifest: Mapping[str, Any]) -> str:
    """The manifest as people paste it."""
    return str(
        yaml.dump(
            manifest, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=100
        )
    )


class _Plain(yaml.SafeDumper):
    """Without anchors, which nobody expects in a manifest."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out."""
        return True


def _toleration(taint: Mapping[str, str]) -> dict[str, str]:
    value = taint.get("value", "")
    match = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
    return {"key": taint["key"], **match, "effect": taint["effect"]}
