"""The status Kueue writes to ClusterQueues and LocalQueues, computed from what is in the store."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.quantities import ZERO, add, compare, subtract

Object = dict[str, Any]
Totals = dict[tuple[str, str], str]

READY = ("True", "Ready", "Can admit new workloads")
TERMINATING = (
    "False",
    "Terminating",
    "Can't admit new workloads; clusterQueue is terminating",
)
QUEUE_READY = ("True", "Ready", "Can submit new workloads to localQueue")
QUEUE_STOPPED = ("False", "Stopped", "LocalQueue is stopped")
NO_SUBMIT = "Can't submit new workloads to clusterQueue"


def has_condition(obj: Object, name: str) -> bool:
    """Whether a condition of the object is True."""
    conditions = items(part(obj, "status"), "conditions")
    return any(
        one.get("type") == name and one.get("status") == "True" for one in conditions
    )


def is_waiting(workload: Object) -> bool:
    """Whether a Workload is in line: active, without quota and not finished."""
    active = part(workload, "spec").get("active") is not False
    return (
        active
        and not has_condition(workload, "QuotaReserved")
        and not has_condition(workload, "Finished")
    )


def _holding(workloads: Iterable[Object]) -> list[Object]:
    return [
        one
        for one in workloads
        if has_condition(one, "QuotaReserved") and not has_condition(one, "Finished")
    ]


def _name(obj: Object) -> str:
    return str(part(obj, "metadata").get("name") or "")


def _queue_of(obj: Object) -> tuple[str, str]:
    return str(part(obj, "metadata").get("namespace") or ""), str(
        part(obj, "spec").get("queueName") or ""
    )


def _inactive(
    cluster_queue: Object,
    flavors: Sequence[Object],
    checks: Sequence[Object],
    topologies: Collection[str],
) -> Iterator[tuple[str, str]]:
    spec = part(cluster_queue, "spec")
    if spec.get("stopPolicy", "None") != "None":
        yield "Stopped", "is stopped"
    known = {_name(flavor) for flavor in flavors}
    missing = [name for name in _flavor_names(cluster_queue) if name not in known]
    if missing:
        yield (
            "FlavorNotFound",
            f"references missing ResourceFlavor(s): {','.join(missing)}",
        )
    for flavor in flavors:
        topology = part(flavor, "spec").get("topologyName")
        if (
            topology
            and topology not in topologies
            and _name(flavor) in _flavor_names(cluster_queue)
        ):
            yield (
                "TopologyNotFound",
                f'there is no Topology "{topology}" for TAS flavor "{_name(flavor)}"',
            )
    by_name = {_name(check): check for check in checks}
    wanted = [
        str(rule.get("name"))
        for rule in items(part(spec, "admissionChecksStrategy"), "admissionChecks")
    ]
    absent = [name for name in wanted if name not in by_name]
    if absent:
        yield (
            "AdmissionCheckNotFound",
            f"references missing AdmissionCheck(s): {','.join(absent)}",
        )
    asleep = [
        name
        for name in wanted
        if name in by_name and not has_condition(by_name[name], "Active")
    ]
    if asleep:
        yield (
            "AdmissionCheckInactive",
            f"references inactive AdmissionCheck(s): {','.join(asleep)}",
        )


def active_state(
    cluster_queue: Object,
    flavors: Sequence[Object],
    checks: Sequence[Object],
    topologies: Collection[str] = (),
) -> tuple[str, str, str]:
    """Status, reason and message of a ClusterQueue's Active condition."""
    if part(cluster_queue, "metadata").get("deletionTimestamp"):
        return TERMINATING
    found = list(_inactive(cluster_queue, flavors, checks, topologies))
    if not found:
        return READY
    said = ", ".join(message for _, message in found)
    return "False", found[0][0], f"Can't admit new workloads: {said}."


def _condition(obj: Object, state: tuple[str, str, str], now: str) -> Object:
    condition: Object = {
        "lastTransitionTime": now,
        "message": state[2],
        "observedGeneration": part(obj, "metadata").get("generation", 1),
        "reason": state[1],
        "status": state[0],
        "type": "Active",
    }
    for old in items(part(obj, "status"), "conditions"):
        if old.get("type") == "Active" and old.get("status") == state[0]:
            condition["lastTransitionTime"] = old.get("lastTransitionTime", now)
    return condition


def _flavor_quotas(cluster_queue: Object) -> Iterator[tuple[str, list[Object]]]:
    for group in items(part(cluster_queue, "spec"), "resourceGroups"):
        for flavor in items(group, "flavors"):
            yield str(flavor.get("name")), items(flavor, "resources")


def _flavor_names(cluster_queue: Object) -> list[str]:
    return [name for name, _ in _flavor_quotas(cluster_queue)]


def totals(workloads: Iterable[Object]) -> Totals:
    """What the admissions of Workloads hold, by flavor and resource."""
    found: Totals = {}
    for workload in workloads:
        for assignment in items(
            part(part(workload, "status"), "admission"), "podSetAssignments"
        ):
            amounts = part(assignment, "resourceUsage")
            for resource, flavor in part(assignment, "flavors").items():
                key = (str(flavor), resource)
                found[key] = add(found.get(key), amounts.get(resource))
    return found


def _borrowed(total: str, quota: Object) -> str:
    nominal = quota.get("nominalQuota")
    return subtract(total, nominal) if compare(total, nominal) > 0 else "0"


def _usage(cluster_queue: Object, held: Totals, *, borrowed: bool) -> list[Object]:
    lines: list[Object] = []
    for flavor, quotas in _flavor_quotas(cluster_queue):
        resources: list[Object] = []
        for quota in quotas:
            total = held.get((flavor, str(quota.get("name"))), ZERO.text)
            line: Object = {"borrowed": _borrowed(total, quota)} if borrowed else {}
            resources.append({**line, "name": quota.get("name"), "total": total})
        lines.append({"name": flavor, "resources": resources})
    return lines


def cluster_queue_status(
    cluster_queue: Object,
    flavors: Sequence[Object],
    checks: Sequence[Object],
    workloads: Sequence[Object],
    *,
    local_queues: Sequence[Object] = (),
    topologies: Collection[str] = (),
    now: str = "",
) -> Object:
    """The whole status of a ClusterQueue; workloads and LocalQueues of other queues are passed over.

    ``now`` becomes the transition time of the Active condition when its status changes.
    """
    name = _name(cluster_queue)
    holding = [
        one
        for one in _holding(workloads)
        if part(one["status"], "admission").get("clusterQueue") == name
    ]
    admitted = [one for one in holding if has_condition(one, "Admitted")]
    mine = {
        (str(part(queue, "metadata").get("namespace") or ""), _name(queue))
        for queue in local_queues
        if part(queue, "spec").get("clusterQueue") == name
    }
    return {
        "admittedWorkloads": len(admitted),
        "conditions": [
            _condition(
                cluster_queue,
                active_state(cluster_queue, flavors, checks, topologies),
                now,
            )
        ],
        "flavorsReservation": _usage(cluster_queue, totals(holding), borrowed=True),
        "flavorsUsage": _usage(cluster_queue, totals(admitted), borrowed=True),
        "pendingWorkloads": sum(
            is_waiting(one) for one in workloads if _queue_of(one) in mine
        ),
        "reservingWorkloads": len(holding),
    }


def _is_stopped(local_queue: Object) -> bool:
    return bool(part(local_queue, "spec").get("stopPolicy", "None") != "None")


def _queue_state(
    local_queue: Object, cluster_queue: Object | None
) -> tuple[str, str, str]:
    if _is_stopped(local_queue):
        return QUEUE_STOPPED
    if cluster_queue is None:
        return "False", "ClusterQueueDoesNotExist", NO_SUBMIT
    if has_condition(cluster_queue, "Active"):
        return QUEUE_READY
    return "False", "ClusterQueueIsInactive", NO_SUBMIT


def local_queue_status(
    local_queue: Object,
    cluster_queue: Object | None,
    workloads: Sequence[Object] = (),
    *,
    now: str = "",
) -> Object:
    """The whole status of a LocalQueue; its ClusterQueue (None when missing) must carry its own status already."""
    key = (
        str(part(local_queue, "metadata").get("namespace") or ""),
        _name(local_queue),
    )
    mine = [one for one in workloads if _queue_of(one) == key]
    holding = _holding(mine)
    admitted = [one for one in holding if has_condition(one, "Admitted")]
    status: Object = {
        "admittedWorkloads": len(admitted),
        "conditions": [
            _condition(local_queue, _queue_state(local_queue, cluster_queue), now)
        ],
        # Whoever came through a queue that is stopped does not stand in line.
        "pendingWorkloads": 0
        if _is_stopped(local_queue)
        else sum(is_waiting(one) for one in mine),
        "reservingWorkloads": len(holding),
    }
    if cluster_queue is not None:
        status["flavorsReservation"] = _usage(
            cluster_queue, totals(holding), borrowed=False
        )
        status["flavorsUsage"] = _usage(cluster_queue, totals(admitted), borrowed=False)
    return status
