"""The facts of one job from everything that a cluster was asked for it, and the waits of a queue's history. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from workloads.estimating import Wait
from workloads.observed import Event, Facts
from workloads.reading.pods import event_of, nodes_of, pod_of
from workloads.reading.queues import line_of, queue_of, quota_holders_of, team_queue_of
from workloads.reading.values import Object, items, part, text
from workloads.reading.work import Read, job_of, workload_of

WORKLOAD = "kueue.x-k8s.io/workload"
# By which a pod says to which of Volcano's PodGroups it belongs, which is a Workload here.
GROUP = "scheduling.k8s.io/group-name"


def facts_of(
    *,
    workload: Object | None,
    job: Object | None = None,
    queue: Object | None = None,
    team_queue: Object | None = None,
    pending: Sequence[Object] = (),
    running: Iterable[Object] = (),
    pods: Iterable[Object] = (),
    events: Iterable[Object] = (),
    nodes: Iterable[Object] = (),
    flavors: Mapping[str, Mapping[str, str]] | None = None,
) -> Facts:
    """What the cluster's answers say about one job; what only the portal knows is added by `dataclasses.replace`.

    `pending` is what the visibility API lists for the ClusterQueue, `running` are Workloads of that queue. Of `pods`
    and `events` only this job's are told; with `nodes` the pods are those of the whole cluster, for what others use of
    a node counts. `flavors` are the node labels of each flavor.
    """
    everything = list(pods)
    own = [one for one in everything if _is_of(one, workload, job)]
    read = [event_of(one) for one in events]
    found = workload_of(workload) if workload is not None else None
    return Facts(
        job=job_of(job) if job is not None else None,
        workload=found,
        queue=queue_of(queue) if queue is not None else None,
        team_queue=team_queue_of(team_queue) if team_queue is not None else None,
        line=line_of(pending, found.key.namespace, found.name)
        if found is not None
        else None,
        running=quota_holders_of(running),
        pods=tuple(pod_of(one, read) for one in own),
        events=tuple(one for one in read if _is_about(one, workload, job)),
        nodes=nodes_of(nodes, everything, flavors or {}),
    )


def waits_of(workloads: Iterable[Object], *, read: Read = workload_of) -> list[Wait]:
    """How long each Workload waited from its creation for its quota.

    One that was evicted since is left out: its condition tells the last time and not the first. So is one that people
    or a check kept waiting: that says nothing about the queue.
    """
    found: list[Wait] = []
    for one in map(read, workloads):
        reserved = one.holds("QuotaReserved")
        if reserved is None or reserved.since is None or one.created is None:
            continue
        if "Evicted" not in one.conditions and not one.checks:
            found.append(Wait(one.gpus, reserved.since - one.created))
    return found


def _is_of(pod: Object, workload: Object | None, job: Object | None) -> bool:
    """Whether a pod belongs to the job: Kueue writes its Workload's name on it, its owner is the Job otherwise."""
    meta = part(pod, "metadata")
    if text(meta, "namespace") != text(
        part(workload, "metadata") or part(job, "metadata"), "namespace"
    ):
        return False
    name = text(part(workload, "metadata"), "name")
    marks = (
        text(part(meta, "labels"), WORKLOAD),
        text(part(meta, "annotations"), WORKLOAD),
    )
    if name and name in marks:
        return True
    uid = text(part(job, "metadata"), "uid")
    return bool(uid) and any(
        one.get("uid") == uid for one in items(meta, "ownerReferences")
    )


def _is_about(event: Event, workload: Object | None, job: Object | None) -> bool:
    names = {text(part(one, "metadata"), "name") for one in (workload, job)} - {""}
    return event.kind != "Pod" and event.name in names
