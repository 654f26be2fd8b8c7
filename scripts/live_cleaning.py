"""Taking away what a live test left on a cluster: by its prefix and by name, nothing else."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from connectors.errors import ConnectorError
from connectors.kubernetes import Cluster, Ref

KUEUE = "kueue.x-k8s.io/v1beta2"
ADMISSION = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"
# Queues before what they name: Kueue lets no flavor go that a queue uses.
KINDS: Sequence[Ref] = (
    ("v1", "Namespace"),
    (KUEUE, "ClusterQueue"),
    (KUEUE, "ResourceFlavor"),
    (KUEUE, "Cohort"),
    (KUEUE, "WorkloadPriorityClass"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"),
    (ADMISSION, "ValidatingAdmissionPolicy"),
    (RBAC, "ClusterRoleBinding"),
    (RBAC, "ClusterRole"),
)
SECONDS = 120.0


@dataclass
class Left:
    """How many objects were taken away, and which would not go."""

    removed: int = 0
    stuck: list[str] = field(default_factory=list)
    seconds: float = SECONDS


def clean(
    cluster: Cluster,
    prefix: str,
    *,
    also: Sequence[tuple[str, str]] = (),
    seconds: float = SECONDS,
) -> Left:
    """Delete everything of the cluster whose name begins with the prefix, and `also` (kind, name); wait until gone."""
    left, seen = Left(seconds=seconds), set[tuple[str, str]]()
    deadline = time.monotonic() + seconds
    while True:
        there = _there(cluster, prefix, also)
        for ref, name in there:
            seen.add((ref[1], name))
            _delete(cluster, ref, name)
        if not there or time.monotonic() > deadline:
            left.stuck = [f"{ref[1]} {name}" for ref, name in there]
            left.removed = len(seen) - len(there)
            return left
        time.sleep(0.5)


def _there(
    cluster: Cluster, prefix: str, also: Sequence[tuple[str, str]]
) -> list[tuple[Ref, str]]:
    """What is to go; a kind that cannot be listed, because the cluster does not know it, has none of it."""
    found = []
    for ref in KINDS:
        try:
            names = [live["metadata"]["name"] for live in cluster.list(ref)]
        except ConnectorError:
            continue
        found += [
            (ref, name)
            for name in names
            if name.startswith(f"{prefix}-") or (ref[1], name) in also
        ]
    return found


def _delete(cluster: Cluster, ref: Ref, name: str) -> None:
    try:
        cluster.delete(ref, name)
    except ConnectorError as error:
        print(f"live test: {ref[1]} {name}: {error}", flush=True)
