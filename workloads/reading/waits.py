"""How long the jobs of a queue waited. Pure."""

from collections.abc import Iterable

from workloads.estimating import Wait
from workloads.reading.values import Object
from workloads.reading.work import Read, workload_of


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
