"""What runs in a queue, read from Kueue's objects or what is in their form, and what of it is stopped first. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.names import RESOURCE, fits
from provisioning.desired.quantities import counted


@dataclass(frozen=True, kw_only=True)
class Running:
    """A workload that holds quota: `job` is what people know it by, `since` an ISO time, `gpus` counts by flavor."""

    uid: str
    name: str
    job: str
    priority: int
    since: str
    gpus: Mapping[str, int]


def running(workloads: Iterable[Mapping[str, Any]]) -> list[Running]:
    """The Workloads that hold GPUs now: quota reserved, not finished, and not told to stop already."""
    found = [_read(one) for one in workloads if _holds(one)]
    return [one for one in found if one.gpus]


def quota_on_cluster(cluster_queue: Mapping[str, Any] | None) -> dict[str, int]:
    """GPUs of each flavor that a ClusterQueue may use now, borrowed ones included; nothing where there is none."""
    found: dict[str, int] = {}
    for group in ((cluster_queue or {}).get("spec") or {}).get("resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            for one in flavor.get("resources") or ():
                if _is_gpu(one.get("name")):
                    amount = counted(one.get("nominalQuota")) + counted(
                        one.get("borrowingLimit")
                    )
                    found[flavor["name"]] = found.get(flavor["name"], 0) + amount
    return found


def to_stop(work: Iterable[Running], flavor: str, over: int) -> list[Running]:
    """What has to stop so that `over` GPUs of a flavor are free: lowest priority and newest first, and no more.

    What a later and larger one makes needless runs on.
    """
    chosen: list[Running] = []
    freed = 0
    for one in sorted((w for w in work if w.gpus.get(flavor)), key=_order):
        if freed >= over:
            break
        chosen.append(one)
        freed += one.gpus[flavor]
    return _only_needed(chosen, flavor, freed - over)


def _only_needed(chosen: Sequence[Running], flavor: str, spare: int) -> list[Running]:
    kept: list[Running] = []
    # The dearest first: whoever ranks highest is spared first.
    for one in reversed(chosen):
        if one.gpus[flavor] <= spare:
            spare -= one.gpus[flavor]
        else:
            kept.append(one)
    return kept[::-1]


def _order(one: Running) -> tuple[int, tuple[int, ...], str]:
    return one.priority, tuple(-ord(letter) for letter in one.since), one.uid


def _holds(workload: Mapping[str, Any]) -> bool:
    if (workload.get("spec") or {}).get("active") is False:
        return False
    said = {
        c.get("type"): c.get("status")
        for c in (workload.get("status") or {}).get("conditions") or ()
    }
    return said.get("QuotaReserved") == "True" and said.get("Finished") != "True"


def _read(workload: Mapping[str, Any]) -> Running:
    meta, status = workload["metadata"], workload.get("status") or {}
    conditions = status.get("conditions") or ()
    since = next(
        (
            c["lastTransitionTime"]
            for c in conditions
            if c.get("type") == "QuotaReserved"
        ),
        "",
    )
    return Running(
        uid=str(meta["uid"]),
        name=str(meta["name"]),
        job=_job(meta),
        since=str(since),
        priority=int((workload.get("spec") or {}).get("priority") or 0),
        gpus=_gpus(status),
    )


def _job(meta: Mapping[str, Any]) -> str:
    owners = meta.get("ownerReferences") or ()
    owner = next((one for one in owners if one.get("controller")), None)
    return f"{owner['kind']} {owner['name']}" if owner else f"Workload {meta['name']}"


def _gpus(status: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in (status.get("admission") or {}).get("podSetAssignments") or ():
        usage = part.get("resourceUsage") or {}
        for resource, flavor in (part.get("flavors") or {}).items():
            if _is_gpu(resource) and (gpus := counted(usage.get(resource))):
                found[flavor] = found.get(flavor, 0) + gpus
    return found


def _is_gpu(resource: object) -> bool:
    """Other devices have names with a domain, too: two GPUs with two `rdma/hca` are no four GPUs."""
    return fits(RESOURCE, resource)
