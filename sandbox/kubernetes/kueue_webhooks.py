"""Kueue's controller as the API server sees it: whether it is there, and what is refused while its webhooks are not."""

from typing import Any

from sandbox.kubernetes.job_webhook import UNMANAGED
from sandbox.kubernetes.kinds import Kind, builtin
from sandbox.kubernetes.status import Refusal, bad_request
from sandbox.kubernetes.statuses import write_status
from sandbox.kubernetes.store import Store

DEPLOYMENT = builtin("apps/v1", "Deployment")
_NAME, _NAMESPACE = "kueue-controller-manager", "kueue-system"
_SERVER = "https://kueue-webhook-service.kueue-system.svc:443"
_NOBODY = 'no endpoints available for service "kueue-webhook-service"'
# What the webhooks are asked about, as their paths spell it. Queues of namespaces and priorities have none.
_PATHS = {
    "Job": "batch-v1-job",
    "Pod": "-v1-pod",
    "JobSet": "jobset-x-k8s-io-v1alpha2-jobset",
    "ClusterQueue": "kueue-x-k8s-io-v1beta2-clusterqueue",
    "Cohort": "kueue-x-k8s-io-v1beta2-cohort",
    "ResourceFlavor": "kueue-x-k8s-io-v1beta2-resourceflavor",
    "Workload": "kueue-x-k8s-io-v1beta2-workload",
}
# New ones of the others are to be filled in first.
_VALIDATED_ALONE = frozenset({"Cohort"})


def is_there(store: Store) -> bool:
    """Whether one of its controllers is ready, as its Deployment says; so it is where there is no Deployment."""
    found = store.get(DEPLOYMENT, _NAMESPACE, _NAME)
    status: dict[str, Any] = (found or {}).get("status") or {}
    return found is None or bool(status.get("readyReplicas"))


def put_there(store: Store, *, is_there: bool) -> None:
    """Have its controller ready or not; raises Refusal (400) on a cluster whose queues are another one's."""
    found = store.get(DEPLOYMENT, _NAMESPACE, _NAME)
    if found is None:
        raise bad_request("this cluster has no Kueue")
    # An API server leaves a 0 out.
    ready = "readyReplicas" if is_there else "unavailableReplicas"
    status = {"replicas": 1, ready: 1}
    write_status(store, DEPLOYMENT, found, status, "kube-controller-manager")


def unanswered(store: Store, kind: Kind, namespace: str, verb: str) -> Refusal | None:
    """The refusal (500) of a write that its webhooks are asked about while nobody answers them.

    `verb` is "mutate", of new objects, or "validate", of each write, also of one that changes nothing.
    """
    path = _PATHS.get(kind.kind)
    if path is None or namespace in UNMANAGED or is_there(store):
        return None
    if verb == "mutate" and kind.kind in _VALIDATED_ALONE:
        return None
    name = f"{verb[0]}{kind.kind.lower()}.kb.io"
    text = (
        f'failed calling webhook "{name}": failed to call webhook: '
        f'Post "{_SERVER}/{verb}-{path}?timeout=10s": {_NOBODY}'
    )
    return Refusal(
        500,
        f"Internal error occurred: {text}",
        "InternalError",
        {"causes": [{"message": text}]},
    )
