"""Volcano's webhooks: what they fill in and refuse of its queues, jobs and groups, and of pods that it schedules.

After release 1.15 of volcano-sh/volcano: pkg/webhooks/admission/queues/{mutate/mutate_queue.go,
validate/validate_queue.go}, jobs/{mutate/mutate_job.go,validate/admit_job.go,validate/util.go},
podgroups/{mutate/mutate_podgroup.go,validate/validate_podgroup.go} and pods/validate/admit_pod.go. Queues of queues are
checked for their parent, depth and children; what children ask for together is not added up.
"""

import copy
from collections.abc import Iterator
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.kinds import VOLCANO_BATCH, VOLCANO_SCHEDULING, Kind, builtin
from sandbox.kubernetes.kueue_rules import denied
from sandbox.kubernetes.quantities import compare, parse
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.store import Obj, Store
from sandbox.kubernetes.volcano_job_rules import (
    DEFAULT,
    change_error,
    job_defaults,
    job_errors,
)

JOB = builtin(f"{VOLCANO_BATCH}/v1alpha1", "Job")
QUEUE = builtin(f"{VOLCANO_SCHEDULING}/v1beta1", "Queue")
GROUP = builtin(f"{VOLCANO_SCHEDULING}/v1beta1", "PodGroup")
NAMESPACE = builtin("v1", "Namespace")
ROOT, OPEN = "root", "Open"
SCHEDULER = "volcano"
# The annotations by which a pod names its group and its queue, and a namespace the queue of its groups.
GROUP_NAME, QUEUE_NAME = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/queue-name",
)
# --max-queue-depth of vc-webhook-manager.
DEPTH = 5
Object = dict[str, Any]


def born(store: Store, kind: Kind, obj: Object, namespace: str) -> Object:
    """A new object with everything that the webhooks fill in."""
    if kind == JOB:
        return job_defaults(obj)
    found = copy.deepcopy(obj)
    if kind == QUEUE:
        spec = found.setdefault("spec", {})
        spec.setdefault("reclaimable", True)
        spec["weight"] = spec.get("weight") or 1
    elif kind == GROUP:
        place = store.get(NAMESPACE, "", namespace)
        named = part(part(dict(place or {}), "metadata"), "annotations").get(QUEUE_NAME)
        if named and part(found, "spec").get("queue", DEFAULT) == DEFAULT:
            found.setdefault("spec", {})["queue"] = named
    return found


def birth_refusal(store: Store, kind: Kind, obj: Object) -> Refusal | None:
    """The refusal of a new object, or None."""
    if kind == QUEUE:
        return _denied("validatequeue", [*_queue(obj), *_hierarchy(store, obj)])
    if kind == JOB:
        return _denied(
            "validatejob",
            ["".join([*job_errors(obj), *_job_queue(store, obj)]).strip()],
        )
    if kind == GROUP:
        return _denied("validatepodgroup", _group(store, obj))
    if kind.own_name == "Pod" and part(obj, "spec").get("schedulerName") == SCHEDULER:
        return _denied("validatepod", _pod(store, obj))
    return None


def change_refusal(
    store: Store, kind: Kind, obj: Object, before: Object
) -> Refusal | None:
    """The refusal of a changed object, or None; groups and pods may change as they like."""
    if kind == QUEUE:
        said = list(_queue(obj))
        if part(obj, "spec").get("parent") != part(before, "spec").get("parent"):
            said += _hierarchy(store, obj)
        return _denied("validatequeue", said)
    if kind == JOB and part(obj, "spec") != part(before, "spec"):
        return _denied("validatejob", [change_error(obj, before)])
    return None


def end_refusal(store: Store, kind: Kind, obj: Obj) -> Refusal | None:
    """The refusal of a deletion, or None: queues need not be closed or empty, but have no children."""
    if kind != QUEUE:
        return None
    name = str(obj["metadata"]["name"])
    if name in {DEFAULT, ROOT}:
        return _denied("validatequeue", [f"`{name}` queue can not be deleted"])
    if children := children_of(store, name):
        said = f"it has {len(children)} child queues: {', '.join(children)}"
        return _denied(
            "validatequeue", [f"queue {name} can not be deleted because {said}"]
        )
    return None


def children_of(store: Store, name: str) -> list[str]:
    """The names of the queues under a queue."""
    return [
        str(one["metadata"]["name"])
        for one in store.objects(QUEUE)
        if part(dict(one), "spec").get("parent") == name
    ]


def _denied(webhook: str, said: list[str]) -> Refusal | None:
    """The answer of a webhook that gives no code of its own: the API server makes it 400, without a reason."""
    text = _aggregate([one for one in said if one])
    return denied(f"{webhook}.volcano.sh", text, 400) if text else None


def _aggregate(said: list[str]) -> str:
    return said[0] if len(said) == 1 else f"[{', '.join(said)}]" if said else ""


def _queue(queue: Object) -> Iterator[str]:
    spec, path = part(queue, "spec"), "requestBody.spec"
    capability, deserved = part(spec, "capability"), part(spec, "deserved")
    guarantee = part(part(spec, "guarantee"), "resource")
    for field, amounts in (
        ("capability", capability),
        ("deserved", deserved),
        ("guarantee.resource", guarantee),
    ):
        for name, amount in amounts.items():
            if parse(amount).nanos < 0:
                yield _invalid(
                    f"{path}.{field}.{name}",
                    amount,
                    "must be greater than or equal to 0",
                )
    for name, amount in guarantee.items():
        at = f"{path}.deserved.{name}"
        if name not in deserved:
            yield _invalid(
                at, "<nil>", f"deserved[{name}] must be >= guarantee[{name}]={amount}"
            )
        elif compare(deserved[name], amount) < 0:
            said = f"deserved[{name}]={deserved[name]} must be >= guarantee[{name}]={amount}"
            yield _invalid(at, deserved[name], said)
    for name, amount in deserved.items():
        if name in capability and compare(amount, capability[name]) > 0:
            said = f"deserved[{name}]={amount} must be <= capability[{name}]={capability[name]}"
            yield _invalid(f"{path}.deserved.{name}", amount, said)
    state = part(queue, "status").get("state")
    if state not in {None, "", OPEN, "Closed"}:
        yield _invalid(f"{path}.state", state, "queue state must be in [Open Closed]")


def _invalid(field: str, value: Any, why: str) -> str:
    return f'{field}: Invalid value: "{value}": {why}'


def _hierarchy(store: Store, queue: Object) -> Iterator[str]:
    name, parent = (
        str(queue["metadata"]["name"]),
        str(part(queue, "spec").get("parent") or ""),
    )
    if parent in {"", ROOT}:
        return
    if parent == name:
        yield f"queue {name} cannot use itself as parent"
        return
    above, depth = parent, 1
    while above not in {"", ROOT}:
        depth += 1
        if depth > DEPTH:
            yield f"queue {name} exceeds the maximum allowed depth of {DEPTH}"
            return
        found = store.get(QUEUE, "", above)
        if found is None:
            yield f"failed to get parent queue {above} of queue {name}: {_missing(QUEUE, above)}"
            return
        above = str(part(dict(found), "spec").get("parent") or "")
    pods = part(
        part(dict(store.get(QUEUE, "", parent) or {}), "status"), "allocated"
    ).get("pods")
    if not children_of(store, parent) and compare(pods, "0") > 0:
        why = f"it has allocated Pods: {pods}"
        yield f"queue {parent} cannot be the parent queue of queue {name} because {why}"


def _missing(kind: Kind, name: str) -> str:
    """How a lister says that something is not there."""
    return f'{kind.singular}.{kind.group} "{name}" not found'


def _job_queue(store: Store, job: Object) -> Iterator[str]:
    name = str(part(job, "spec").get("queue") or "")
    queue = store.get(QUEUE, "", name)
    if queue is None:
        yield f" unable to find job queue: {_missing(QUEUE, name)};"
        return
    if (state := _state(queue)) != OPEN:
        yield f" can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
    children = children_of(store, name)
    if name == ROOT:
        yield " can not submit job to root queue;"
    elif children:
        yield f" can only submit job to leaf queue, queue `{name}` has {len(children)} child queues;"


def _group(store: Store, group: Object) -> list[str]:
    name = str(part(group, "spec").get("queue") or "")
    queue = store.get(QUEUE, "", name) if name else None
    if not name:
        return []
    if queue is None:
        return [f"unable to find queue: {_missing(QUEUE, name)}"]
    if (state := _state(queue)) != OPEN:
        said = f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{state}`."
        return [said]
    return []


def _pod(store: Store, pod: Object) -> list[str]:
    metadata = pod["metadata"]
    annotations = part(metadata, "annotations")
    if name := annotations.get(GROUP_NAME):
        group = store.get(GROUP, metadata["namespace"], name)
        if group is None:
            where = f"<{metadata['namespace']}/{metadata['name']}>"
            plural = f'{GROUP.plural}.{GROUP.group} "{name}" not found'
            return [f"failed to get PodGroup for pod {where}: {plural}"]
        said = _pod_queue(store, str(part(dict(group), "spec").get("queue") or ""))
        return [f"failed : {said};"] if said else []
    return [_pod_queue(store, str(annotations.get(QUEUE_NAME) or "")).strip()]


def _pod_queue(store: Store, name: str) -> str:
    queue = store.get(QUEUE, "", name) if name else None
    if not name:
        return ""
    if queue is None:
        return f' unable to find job queue: {QUEUE.plural}.{QUEUE.group} "{name}" not found;'
    if (state := _state(queue)) != OPEN:
        return f" can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
    return ""


def _state(queue: Obj) -> str:
    return str(part(dict(queue), "status").get("state") or "")


def tasks_of(job: Obj) -> list[Object]:
    """The tasks of a job."""
    return items(job["spec"], "tasks")
