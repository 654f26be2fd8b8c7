"""ClusterQueues, LocalQueues and lines as Kueue shows them. Pure."""

from collections.abc import Collection, Sequence

from workloads.observed import Ahead, Line, Queue, Quota, TeamQueue
from workloads.reading.values import Object, conditions, is_gpu, items, part, text, whole
from workloads.reading.work import key_of


def queue_of(found: Object) -> Queue:
    """A ClusterQueue, of either version."""
    spec, status = part(found, "spec"), part(found, "status")
    pending = status.get("pendingWorkloads")
    return Queue(
        name=text(part(found, "metadata"), "name"),
        active=conditions(found).get("Active"),
        stop_policy=text(spec, "stopPolicy") or "None",
        strategy=text(spec, "queueingStrategy") or "BestEffortFIFO",
        cohort=text(spec, "cohortName") or text(spec, "cohort"),
        pending=pending if isinstance(pending, int) else None,
        quotas=tuple(_quotas(spec, status)),
        groups=tuple(_group(one) for one in items(spec, "resourceGroups")),
    )


def team_queue_of(found: Object) -> TeamQueue:
    """A LocalQueue."""
    spec = part(found, "spec")
    return TeamQueue(
        name=text(part(found, "metadata"), "name"),
        cluster_queue=text(spec, "clusterQueue"),
        active=conditions(found).get("Active"),
        stop_policy=text(spec, "stopPolicy") or "None",
    )


def line_of(
    pending: Sequence[Object],
    namespace: str,
    workload: str,
    *,
    never: Collection[tuple[str, str]] = (),
    is_whole: bool = True,
) -> Line | None:
    """A Workload's place in what the visibility API lists; None when it is not on the list.

    `never` names the Workloads (namespace, name) that the queue can never give what they ask for.
    """
    ordered = sorted(pending, key=lambda one: whole(one.get("positionInClusterQueue")))
    places = [
        (text(part(one, "metadata"), "namespace"), text(part(one, "metadata"), "name")) for one in ordered
    ]
    if (namespace, workload) not in places:
        return None
    index = places.index((namespace, workload))
    ahead = (
        _ahead(one, fits=place not in never)
        for one, place in zip(ordered[:index], places[:index], strict=True)
    )
    position = whole(ordered[index].get("positionInClusterQueue"))
    return Line(position, len(ordered) if is_whole else None, tuple(ahead))


def _ahead(found: Object, *, fits: bool) -> Ahead:
    priority = found.get("priority")
    return Ahead(
        key_of(part(found, "metadata")),
        priority if isinstance(priority, int) else 0,
        fits=None if fits else False,
    )


def _group(found: Object) -> frozenset[str]:
    return frozenset(text(one, "name") for one in items(found, "flavors"))


def _quotas(spec: Object, status: Object) -> list[Quota]:
    reserved = {
        (text(flavor, "name"), text(one, "name")): (whole(one.get("total")), whole(one.get("borrowed")))
        for flavor in items(status, "flavorsReservation")
        for one in items(flavor, "resources")
        if is_gpu(text(one, "name"))
    }
    is_alone = not (text(spec, "cohortName") or text(spec, "cohort"))
    found: list[Quota] = []
    for group in items(spec, "resourceGroups"):
        for flavor in items(group, "flavors"):
            for one in items(flavor, "resources"):
                name, resource = text(flavor, "name"), text(one, "name")
                if is_gpu(resource):
                    total, borrowed = reserved.get((name, resource), (0, 0))
                    limit = one.get("borrowingLimit")
                    lent = whole(limit) if limit is not None or is_alone else None
                    found.append(Quota(name, resource, whole(one.get("nominalQuota")), lent, total, borrowed))
    return found
