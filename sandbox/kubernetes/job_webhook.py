"""Kueue's webhooks for Jobs and JobSets: queued ones are born suspended, and stay in the queue they run in."""

from typing import Any

from sandbox.kubernetes.causes import part
from sandbox.kubernetes.kinds import JOBSET_GROUP, KUEUE_GROUP, builtin
from sandbox.kubernetes.kueue_rules import denied, queue_change_refusal
from sandbox.kubernetes.status import Refusal, details_of
from sandbox.kubernetes.store import Obj, Store
from sandbox.kubernetes.topology import ANNOTATIONS

LOCAL_QUEUE = builtin(f"{KUEUE_GROUP}/v1beta2", "LocalQueue")
JOBSET = builtin(f"{JOBSET_GROUP}/v1alpha2", "JobSet")
QUEUED = frozenset({"Job", "JobSet"})
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
MOST_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
DEFAULT = "default"
TRACKING = frozenset({"controller-uid", "job-name"})
UNMANAGED = frozenset({"kube-system", "kueue-system"})


def born(store: Store, job: dict[str, Any], namespace: str) -> dict[str, Any]:
    """A new Job as the webhook lets it in: with the queue called default where it names none, and suspended.

    What belongs to something that is queued itself is left alone; raises Refusal (404) where that is not there.
    """
    if namespace in UNMANAGED or is_part(store, job, namespace):
        return job
    metadata = part(job, "metadata")
    labels = part(metadata, "labels")
    if QUEUE_LABEL not in labels:
        if store.get(LOCAL_QUEUE, namespace, DEFAULT) is None:
            return job
        own = _own_labels(labels, part(part(part(job, "spec"), "template"), "metadata"))
        job = {**job, "metadata": {**metadata, "labels": {**own, QUEUE_LABEL: DEFAULT}}}
    return {**job, "spec": {**job["spec"], "suspend": True}}


def owning_set(job: Obj) -> str:
    """The name of the JobSet that made a Job; empty for any other."""
    owners = part(dict(job), "metadata").get("ownerReferences") or ()
    return next(
        (
            str(one["name"])
            for one in owners
            if one.get("controller") and one.get("kind") == JOBSET.kind
        ),
        "",
    )


def is_part(store: Store, job: Obj, namespace: str) -> bool:
    """Whether a Job belongs to a JobSet that Kueue queues; raises Refusal (404) for one that is not there."""
    name = owning_set(job)
    if not name:
        return False
    owner = store.get(JOBSET, namespace, name)
    if owner is None:
        said = f'admission webhook "mjob.kb.io" denied the request: {JOBSET.qualified_kind} "{name}" not found'
        raise Refusal(
            404, said, "NotFound", {**details_of(JOBSET, name), "kind": JOBSET.kind}
        )
    return bool(queue_of(owner))


def birth_refusal(job: Obj) -> Refusal | None:
    """The refusal of a new queued Job whose longest time is none, or that asks two things of a topology, or None."""
    asked = part(
        part(part(part(dict(job), "spec"), "template"), "metadata"), "annotations"
    )
    if queue_of(job) and len([one for one in ANNOTATIONS if one in asked]) > 1:
        names = ", ".join(f'"{one}"' for one in ANNOTATIONS)
        field = "spec.template.metadata.annotations"
        text = f"{field}: Invalid value: must not contain more than one topology annotation: [{names}]"
        return denied(f"v{job['kind'].lower()}.kb.io", text)
    text = str((job["metadata"].get("labels") or {}).get(MOST_SECONDS, ""))
    if not text or not queue_of(job) or (text.isdigit() and int(text) > 0):
        return None
    why = (
        "should be greater than 0"
        if text.isdigit()
        else f'strconv.Atoi: parsing "{text}": invalid syntax'
    )
    said = text if text.isdigit() else f'"{text}"'
    return denied(
        f"v{job['kind'].lower()}.kb.io",
        f"metadata.labels[{MOST_SECONDS}]: Invalid value: {said}: {why}",
    )


def _own_labels(labels: dict[str, Any], template: dict[str, Any]) -> dict[str, Any]:
    """A Job's labels without those by which it is tracked, if it has them from its template.

    A Job without labels shares its template's; one that this webhook labels has some, and gets none.
    """
    if labels != part(template, "labels"):
        return labels
    return {
        name: value
        for name, value in labels.items()
        if name.rpartition("/")[2] not in TRACKING
    }


def queue_of(job: Obj) -> str:
    """The LocalQueue a Job names; empty where Kueue leaves it alone."""
    if job["metadata"].get("namespace") in UNMANAGED:
        return ""
    return str((job["metadata"].get("labels") or {}).get(QUEUE_LABEL) or "")


def change_refusal(job: Obj, before: Obj) -> Refusal | None:
    """The refusal of another queue for a Job that runs, or None."""
    if queue_of(job) == queue_of(before) or before["spec"].get("suspend"):
        return None
    return queue_change_refusal(job["kind"], queue_of(job))
