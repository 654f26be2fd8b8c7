"""Volcano's PodGroups and Queues in the form of Kueue's Workloads and ClusterQueues, as the portal reads both. Pure.

What Volcano counts by resource is told by flavor: on a cluster with it no two flavors have the same resource. A
PodGroup holds its GPUs from the moment its pods have nodes (phase Running), not while it may get them (Inqueue).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleet.names import RESOURCE, fits, profile_of
from provisioning.desired.priorities import PRIORITIES
from provisioning.desired.quantities import CPU, counted
from provisioning.desired.volcano import LEAST

Object = Mapping[str, Any]
FlavorOf = Mapping[str, str]
Manifest = dict[str, Any]

VOLCANO_JOB = "VolcanoJob"
JOBS_GROUP = "batch.volcano.sh/"
# Of a PodGroup whose pods have nodes: enough of them, or no longer enough.
HOLDS = ("Running", "Unknown")
OPEN = "Open"
# How a waiting PodGroup's phase stands in the condition QuotaReserved.
REASON = "PodGroup"
PODS_READY = "PodsReady"


def workload_of(found: Object, flavor_of: FlavorOf) -> Manifest:
    """A PodGroup as a Workload: its line is known from the start, and its flavors once it has GPUs.

    It says what so many of its pods ask for as it needs at the least; where more run, they are taken for equal ones.
    Volcano renews the time of what holds each minute: the conditions' times are true at their first sight alone.
    """
    meta, spec, status = (
        found["metadata"],
        found.get("spec") or {},
        found.get("status") or {},
    )
    holds, least = status.get("phase") in HOLDS, max(_whole(spec.get("minMember")), 1)
    pods = max(least, _whole(status.get("running"))) if holds else least
    gpus = {
        name: -(-number * pods // least)
        for name, number in _gpus(spec.get("minResources") or {}).items()
    }
    assignments = [_assigned(gpus, flavor_of)] if holds else []
    return {
        "apiVersion": found.get("apiVersion", ""),
        "kind": "Workload",
        "metadata": {**meta, "ownerReferences": owners(meta)}
        if meta.get("ownerReferences")
        else dict(meta),
        "spec": {
            "active": True,
            "queueName": spec.get("queue", ""),
            "priority": PRIORITIES.get(str(spec.get("priorityClassName")), (0, ""))[0],
            "podSets": list(_pod_sets(gpus, pods)),
        },
        "status": {
            "admission": {
                "clusterQueue": spec.get("queue", ""),
                "podSetAssignments": assignments,
            },
            "conditions": list(_conditions(found, holds=holds)),
        },
    }


def cluster_queue_of(found: Object, flavor_of: FlavorOf) -> Manifest:
    """A Queue as a ClusterQueue: `deserved` is what it guarantees, the rest of `capability` what it may borrow."""
    spec, status = found.get("spec") or {}, found.get("status") or {}
    own, most = spec.get("deserved") or {}, spec.get("capability") or {}
    allocated, state = status.get("allocated"), status.get("state") or OPEN
    flavors = [
        {"name": flavor, "resources": [_quota(resource, own, most)]}
        for resource, flavor in sorted(flavor_of.items())
    ]
    used = [
        {
            "name": flavor,
            "resources": [{"name": resource, "total": allocated.get(resource, "0")}],
        }
        for resource, flavor in sorted(flavor_of.items())
        if allocated is not None
    ]
    is_open = state == OPEN
    active = {
        "type": "Active",
        "status": "True" if is_open else "False",
        "reason": "Ready" if is_open else "Stopped",
        "message": "" if is_open else f"Volcano says that it is {state}.",
    }
    return {
        "apiVersion": found.get("apiVersion", ""),
        "kind": "ClusterQueue",
        "metadata": dict(found["metadata"]),
        "spec": {
            "resourceGroups": [
                {"coveredResources": sorted(flavor_of), "flavors": flavors}
            ],
            "stopPolicy": "Hold" if most.get(CPU) == LEAST[CPU] else "None",
        },
        "status": {
            "conditions": [active],
            **(
                {}
                if allocated is None
                else {"flavorsUsage": used, "flavorsReservation": used}
            ),
        },
    }


def job_of(found: Object) -> Manifest:
    """A Volcano Job as any other job that is over or not: `gpus` are those of one of so many equal pods.

    Aborted is not over: somebody who has stopped it with Volcano's own command can have it go on.
    """
    spec, state = (
        found.get("spec") or {},
        (found.get("status") or {}).get("state") or {},
    )
    began = [
        one
        for one in (found.get("status") or {}).get("conditions") or ()
        if _is_running(one)
    ]
    outcome = OUTCOMES.get(str(state.get("phase")))
    said = {
        "reason": str(state.get("phase", "")),
        "message": " ".join(
            filter(None, (str(state.get("reason", "")), str(state.get("message", ""))))
        ),
        "lastTransitionTime": state.get("lastTransitionTime"),
    }
    return {
        "apiVersion": found.get("apiVersion", ""),
        "kind": VOLCANO_JOB,
        "metadata": dict(found["metadata"]),
        "spec": {
            "queue": spec.get("queue", ""),
            "priorityClassName": spec.get("priorityClassName", ""),
            "tasks": [dict(one) for one in spec.get("tasks") or ()],
        },
        "status": {
            "phase": str(state.get("phase", "")),
            "conditions": [{"type": outcome, "status": "True", **said}]
            if outcome
            else [],
            **({"startTime": began[0].get("lastTransitionTime")} if began else {}),
        },
    }


# How the phases in which a Volcano Job stays are called as conditions of a Job (pkg/controllers/job/state).
OUTCOMES = {"Completed": "Complete", "Failed": "Failed", "Terminated": "Failed"}
ABORTED = ("Aborting", "Aborted")


def owners(meta: Object) -> list[Manifest]:
    """Who owns an object; Volcano's Job is called otherwise than the Job of Kubernetes, which has its kind."""
    found: Sequence[Object] = meta.get("ownerReferences") or ()
    return [
        {**one, "kind": VOLCANO_JOB} if is_volcanos(one) else dict(one) for one in found
    ]


def is_volcanos(owner: Object) -> bool:
    """Whether a reference, or an object, is to Volcano's Job."""
    return owner.get("kind") == "Job" and str(owner.get("apiVersion", "")).startswith(
        JOBS_GROUP
    )


def as_first_seen(found: Manifest, before: Object | None) -> Manifest:
    """The form with the times of those conditions that held already when it was seen before."""
    known = {
        (one.get("type"), one.get("status")): one.get("lastTransitionTime")
        for one in ((before or {}).get("status") or {}).get("conditions") or ()
    }
    rows = found["status"]["conditions"]
    kept = [
        {
            **one,
            "lastTransitionTime": known.get((one["type"], one["status"]))
            or one["lastTransitionTime"],
        }
        for one in rows
    ]
    return {**found, "status": {**found["status"], "conditions": kept}}


def _conditions(found: Object, *, holds: bool) -> Iterator[Manifest]:
    meta, status = found["metadata"], found.get("status") or {}
    phase, said = status.get("phase") or "Pending", _by_type(status)
    born = meta.get("creationTimestamp")
    if not holds:
        why = said.get("Unschedulable", {})
        yield _condition(
            "QuotaReserved", "False", f"{REASON}{phase}", why.get("message", ""), born
        )
        if phase == "Completed" and not any(
            map(is_volcanos, meta.get("ownerReferences") or ())
        ):
            # Of a Volcano Job its own phase counts: it may start its pods anew.
            reason = "Failed" if _whole(status.get("failed")) else "Succeeded"
            yield _condition(
                "Finished",
                "True",
                reason,
                "",
                said.get("Scheduled", {}).get("lastTransitionTime", born),
            )
        return
    since = said.get("Scheduled", {}).get("lastTransitionTime") or born
    for kind in ("QuotaReserved", "Admitted"):
        yield _condition(kind, "True", f"{REASON}{phase}", "", since)
    if phase == "Unknown":
        message = said.get("Unschedulable", {}).get("message", "")
        yield _condition(PODS_READY, "False", "WaitForRecovery", message, since)


def _condition(
    kind: str, status: str, reason: str, message: str, since: Any
) -> Manifest:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def _by_type(status: Object) -> dict[str, Object]:
    rows = status.get("conditions") or ()
    return {str(one.get("type")): one for one in rows if one.get("status") == "True"}


def _gpus(amounts: Object) -> dict[str, int]:
    """GPUs by resource, without what a ResourceQuota would count once more as `requests.`."""
    found = {
        str(name): counted(amount)
        for name, amount in amounts.items()
        if fits(RESOURCE, name)
    }
    return {name: number for name, number in found.items() if number}


def _pod_sets(gpus: Mapping[str, int], members: int) -> Iterator[Manifest]:
    """So many pods with all GPUs spread over them as evenly as can be: what each asks for a PodGroup does not say."""
    more = max((number % members for number in gpus.values()), default=0)
    for name, count, extra in (("larger", more, 1), ("pods", members - more, 0)):
        if count:
            each = {
                one: number // members + (extra if number % members else 0)
                for one, number in gpus.items()
            }
            slices = {
                profile_of(one): number
                for one, number in each.items()
                if profile_of(one) and number
            }
            sums = {
                "gpus": sum(each.values()),
                **({"slices": slices} if slices else {}),
            }
            yield {"name": name, "count": count, **sums}


def _assigned(gpus: Mapping[str, int], flavor_of: FlavorOf) -> Manifest:
    known = {
        resource: number for resource, number in gpus.items() if resource in flavor_of
    }
    return {
        "name": "pods",
        "flavors": {resource: flavor_of[resource] for resource in known},
        "resourceUsage": {resource: str(number) for resource, number in known.items()},
    }


def _quota(resource: str, own: Object, most: Object) -> Manifest:
    nominal = counted(own.get(resource, "0"))
    found: Manifest = {"name": resource, "nominalQuota": str(nominal)}
    if resource in most:
        found["borrowingLimit"] = str(max(counted(most[resource]) - nominal, 0))
    return found


def _is_running(condition: Object) -> bool:
    return condition.get("status") == "Running"


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
