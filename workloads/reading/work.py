"""Jobs of every kind, and the Workloads that Kueue makes for them. Pure."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from workloads.observed import Check, Condition, Job, JobKey, PodSet, Workload
from workloads.reading.values import (
    Object,
    conditions,
    gpus_of_pods_in,
    items,
    moment,
    part,
    slices_of_pods_in,
    text,
    whole,
)

Read = Callable[[Object], Workload]
LABEL = "kueue.x-k8s.io/"
QUEUE, PRIORITY, OWNER = (
    f"{LABEL}queue-name",
    f"{LABEL}priority-class",
    f"{LABEL}job-owner-name",
)
# How the kinds say that they are over, those that went well first.
OUTCOMES = ("Complete", "Completed", "Succeeded", "Failed")


def job_of(found: Object) -> Job:
    """A job of any kind: Job, JobSet, TrainJob, PyTorchJob, MPIJob, LeaderWorkerSet, …"""
    meta, spec = part(found, "metadata"), part(found, "spec")
    labels, by_kind = part(meta, "labels"), conditions(found)
    suspended = part(spec, "runPolicy").get("suspend", spec.get("suspend"))
    seconds = whole(spec.get("activeDeadlineSeconds"))
    return Job(
        key=JobKey(
            text(meta, "namespace"),
            text(meta, "name"),
            text(found, "kind") or "Job",
            text(meta, "uid"),
        ),
        created=moment(meta.get("creationTimestamp")),
        is_suspended=suspended if isinstance(suspended, bool) else None,
        queue=text(labels, QUEUE) or text(spec, "queue"),
        priority=text(labels, PRIORITY),
        phase=text(part(found, "status"), "phase"),
        outcome=next(
            (
                by_kind[kind]
                for kind in OUTCOMES
                if kind in by_kind and by_kind[kind].is_true
            ),
            None,
        ),
        limit=timedelta(seconds=seconds) if seconds else None,
    )


def workload_of(found: Object) -> Workload:
    """A Workload, of either version."""
    meta, spec, status = (
        part(found, "metadata"),
        part(found, "spec"),
        part(found, "status"),
    )
    state, admission = part(status, "requeueState"), part(status, "admission")
    assigned = items(admission, "podSetAssignments")
    flavors = (
        {str(flavor) for one in assigned for flavor in part(one, "flavors").values()}
        if assigned
        else ()
    )
    return Workload(
        key=key_of(meta),
        name=text(meta, "name"),
        created=moment(meta.get("creationTimestamp")),
        is_active=spec.get("active") is not False,
        queue=text(spec, "queueName"),
        cluster_queue=text(admission, "clusterQueue"),
        priority=_number(spec.get("priority")),
        conditions=_dated(conditions(found), meta),
        checks=tuple([_check(one) for one in items(status, "admissionChecks")]),
        pod_sets=tuple([_pod_set(one) for one in items(spec, "podSets")]),
        flavors=tuple(sorted(flavors)),
        requeue_at=moment(state.get("requeueAt")),
        requeues=_number(state.get("count")),
    )


def read_once() -> Read:
    """`workload_of` for one look at copies: each is read once, however many ask for it."""
    known: dict[int, tuple[Object, Workload]] = {}

    def read(found: Object) -> Workload:
        once = known.get(id(found))
        if once is None:
            # With the object itself, so that no other one comes to stand at its address.
            once = known[id(found)] = found, workload_of(found)
        return once[1]

    return read


def key_of(meta: Object) -> JobKey:
    """Whose job a Workload stands for, from its metadata; its own name where it has no owner."""
    owners = items(meta, "ownerReferences")
    namespace = text(meta, "namespace")
    if owners:
        owner = next((one for one in owners if one.get("controller")), owners[0])
        return JobKey(
            namespace,
            text(owner, "name"),
            text(owner, "kind") or "Job",
            text(owner, "uid"),
        )
    named = text(part(meta, "annotations"), OWNER)
    return JobKey(
        namespace, named or text(meta, "name"), "Job" if named else "Workload"
    )


def _dated(by_kind: dict[str, Condition], meta: Object) -> dict[str, Condition]:
    """Conditions without a time hold since the Workload is there."""
    if all(one.since is not None for one in by_kind.values()):
        return by_kind
    created = moment(meta.get("creationTimestamp"))
    return {
        kind: one
        if one.since is not None
        else Condition(one.kind, one.is_true, one.reason, one.message, created)
        for kind, one in by_kind.items()
    }


def _check(found: Object) -> Check:
    at = moment(found.get("lastTransitionTime"))
    return Check(text(found, "name"), text(found, "state"), text(found, "message"), at)


def _pod_set(found: Object) -> PodSet:
    return PodSet(
        text(found, "name"),
        whole(found.get("count")),
        gpus_of_pods_in(found),
        slices_of_pods_in(found),
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
