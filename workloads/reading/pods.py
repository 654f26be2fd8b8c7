"""Pods with their containers, events of either API, and nodes with what is used of them. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from provisioning.pods import OVER
from workloads.observed import Event, Exit, Node, Nodes, Pod, Waiting
from workloads.reading.values import (
    LATEST,
    Object,
    conditions,
    gpus_by_profile,
    gpus_in,
    items,
    moment,
    part,
    slices_in,
    text,
    whole,
)


def event_of(found: Object) -> Event:
    """An event of `v1` or of `events.k8s.io/v1`; its time is that of its last occurrence."""
    about = part(found, "involvedObject") or part(found, "regarding")
    times = (
        part(found, "series").get("lastObservedTime"),
        found.get("lastTimestamp"),
        found.get("deprecatedLastTimestamp"),
        found.get("eventTime"),
        found.get("firstTimestamp"),
        part(found, "metadata").get("creationTimestamp"),
    )
    return Event(
        kind=text(about, "kind"),
        name=text(about, "name"),
        reason=text(found, "reason"),
        message=text(found, "message") or text(found, "note"),
        is_warning=found.get("type") == "Warning",
        at=next((at for one in times if (at := moment(one)) is not None), None),
    )


def pod_of(found: Object, events: Iterable[Event] = ()) -> Pod:
    """A pod with those of the events that are about it."""
    meta, spec, status = (
        part(found, "metadata"),
        part(found, "spec"),
        part(found, "status"),
    )
    by_kind, name = conditions(found), text(part(found, "metadata"), "name")
    scheduled = by_kind.get("PodScheduled")
    first = items(status, "initContainerStatuses")
    own = items(status, "containerStatuses")
    states = [*first, *own]
    gpus = gpus_by_profile(spec)
    return Pod(
        name=name,
        phase=text(status, "phase") or "Pending",
        created=moment(meta.get("creationTimestamp")),
        node=text(spec, "nodeName"),
        gpus=sum(gpus.values()),
        slices=slices_in(gpus),
        is_ready="Ready" in by_kind and by_kind["Ready"].is_true,
        is_stopping=bool(meta.get("deletionTimestamp")),
        gates=tuple(text(one, "name") for one in items(spec, "schedulingGates")),
        unscheduled=scheduled
        if scheduled is not None and not scheduled.is_true
        else None,
        waiting=tuple(_waiting(one) for one in states if part(one, "state", "waiting")),
        ended_as=next((one.reason for one in _exits(states) if one.reason), ""),
        failed_before=next((one.words for one in _exits(first) if one.words), ""),
        # What fails beside it does so because that one is gone.
        exit=min(_exits(own), key=lambda one: one.at or LATEST, default=None),
        reason=text(status, "reason"),
        message=text(status, "message"),
        events=tuple(one for one in events if one.kind == "Pod" and one.name == name),
    )


def has_begun(found: Object) -> bool:
    """Whether a container of a pod's own, none that only prepares it, has ever started."""
    return any(
        part(one, state, "running") or _has_run(part(one, state, "terminated"))
        for one in items(part(found, "status"), "containerStatuses")
        for state in ("state", "lastState")
    )


def _has_run(ended: Object) -> bool:
    # Of a container that never came to be, a kubelet says at the end of its pod that it knows nothing.
    return bool(ended) and text(ended, "reason") != "ContainerStatusUnknown"


def is_over(found: Object) -> bool:
    """Whether a pod has ended, one way or the other."""
    return text(part(found, "status"), "phase") in OVER


def is_on_a_node(found: Object) -> bool:
    """Whether a pod takes room on a node, until it is over."""
    return bool(text(part(found, "spec"), "nodeName")) and not is_over(found)


def nodes_of(
    nodes: Iterable[Object],
    pods: Iterable[Object],
    flavors: Mapping[str, Mapping[str, str]],
    profiles: Mapping[str, str] | None = None,
) -> Nodes:
    """Nodes with GPUs and what pods on them asked for; a node is of the first flavor whose labels it has all.

    Of flavors of MIG slices, `profiles` tells the profile. Several can be of the same nodes: what such a node has of
    each is told by itself, for a pod takes slices of the profile that it names and no others.
    """
    used: dict[tuple[str, str], int] = {}
    for pod in pods:
        if is_on_a_node(pod):
            spec = part(pod, "spec")
            for profile, count in gpus_by_profile(spec).items():
                place = text(spec, "nodeName"), profile
                used[place] = used.get(place, 0) + count
    return Nodes(
        each for one in nodes for each in _node(one, used, flavors, profiles or {})
    )


def _node(
    found: Object,
    used: Mapping[tuple[str, str], int],
    flavors: Mapping[str, Mapping[str, str]],
    profiles: Mapping[str, str],
) -> Iterator[Node]:
    """A node, once for whole GPUs and for each profile that it has."""
    meta = part(found, "metadata")
    name, ready = text(meta, "name"), conditions(found).get("Ready")
    for profile, gpus in gpus_in(part(found, "status", "allocatable")).items():
        of_profile = {
            one: labels
            for one, labels in flavors.items()
            if profiles.get(one, "") == profile
        }
        yield Node(
            name=name,
            flavor=_flavor(part(meta, "labels"), of_profile),
            profile=profile,
            gpus=gpus,
            used=used.get((name, profile), 0),
            is_ready=ready is None or ready.is_true,
            is_cordoned=part(found, "spec").get("unschedulable") is True,
        )


def _flavor(labels: Object, flavors: Mapping[str, Mapping[str, str]]) -> str:
    matching: Sequence[str] = [
        flavor
        for flavor, wanted in flavors.items()
        if wanted and all(labels.get(key) == value for key, value in wanted.items())
    ]
    return matching[0] if matching else ""


def _waiting(found: Object) -> Waiting:
    why = part(found, "state", "waiting")
    return Waiting(
        text(found, "name"),
        text(found, "image"),
        text(why, "reason"),
        text(why, "message"),
    )


def _exit(found: Object) -> Exit | None:
    """How the container's last run ended; None when it has not ended, or ended well."""
    last = part(found, "state", "terminated") or part(found, "lastState", "terminated")
    if not last.get("exitCode"):
        return None
    return Exit(
        code=whole(last.get("exitCode")),
        reason=text(last, "reason"),
        words=text(last, "message"),
        at=moment(last.get("finishedAt")),
    )


def _exits(containers: Iterable[Object]) -> list[Exit]:
    return [ended for one in containers if (ended := _exit(one)) is not None]


def label_of(name: str, number: int | None) -> str:
    """What people call a pod: its number where it is one of several of a kind."""
    return name if number is None else f"worker {number}"
