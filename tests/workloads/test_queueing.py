"""What of a queue is borrowed and stopped first, who waits at which place, and what fits: tables."""

from dataclasses import replace
from typing import Any

import pytest

from workloads.listing import queue_seen
from workloads.observed import Node, Queue, Quota
from workloads.queueing import (
    Room,
    Share,
    by_queue,
    line_of_queue,
    pods_by_workload,
    rooms_of,
)

GPU = "nvidia.com/gpu"


def workload(
    name: str,
    gpus: int,
    at: str = "",
    *,
    priority: int = 0,
    flavor: str = "a100",
    made: str = "08:00",
) -> dict[str, Any]:
    """A Workload that runs since `at`, or waits."""
    pods = {"containers": [{"name": "it", "resources": {"requests": {GPU: str(gpus)}}}]}
    status: dict[str, Any] = {}
    if at:
        status = {
            "conditions": [
                {
                    "type": "QuotaReserved",
                    "status": "True",
                    "lastTransitionTime": f"2026-11-23T{at}:00Z",
                }
            ],
            "admission": {
                "clusterQueue": "vision",
                "podSetAssignments": [
                    {"flavors": {GPU: flavor}, "resourceUsage": {GPU: str(gpus)}}
                ],
            },
        }
    return {
        "metadata": {
            "name": name,
            "namespace": "vision",
            "uid": name,
            "creationTimestamp": f"2026-11-23T{made}:00Z",
        },
        "spec": {
            "queueName": "default",
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": pods}}],
        },
        "status": status,
    }


def queue(**guaranteed: int) -> Queue:
    return Queue(
        name="vision",
        quotas=tuple(Quota(name, GPU, gpus) for name, gpus in guaranteed.items()),
    )


GROUP = {
    "coveredResources": [GPU],
    "flavors": [{"name": "a100", "resources": [{"name": GPU, "nominalQuota": 2}]}],
}
OLD, NEW = workload("old", 2, "09:00"), workload("new", 2, "10:00")
HIGH = workload("high", 2, "11:00", priority=100)
BIG = workload("big", 4, "12:00")


@pytest.mark.parametrize(
    ("guaranteed", "work", "borrowed", "stopped"),
    [
        (4, [OLD, NEW], 0, set()),
        (2, [OLD, NEW], 2, {"new"}),
        (3, [OLD, NEW], 1, {"new"}),
        (0, [OLD, NEW], 4, {"old", "new"}),
        (4, [OLD, NEW, HIGH], 2, {"new"}),
        (2, [OLD, NEW, HIGH], 4, {"old", "new"}),
        # What a later and larger one makes needless runs on.
        (4, [OLD, NEW, BIG], 4, {"big"}),
        (0, [], 0, set()),
    ],
)
def test_what_is_borrowed_and_what_of_it_is_stopped_first(
    guaranteed: int, work: list[dict[str, Any]], borrowed: int, stopped: set[str]
) -> None:
    found = line_of_queue(queue(a100=guaranteed), work)
    assert found.borrowed == borrowed
    assert found.guaranteed == guaranteed
    assert {one.key.name for one in found.running if one.may_be_stopped} == stopped
    assert found.held == sum(one.held for one in found.running)


def test_what_runs_beyond_what_may_be_borrowed_is_over_quota() -> None:
    [share] = line_of_queue(queue(a100=0), [OLD, NEW]).shares
    assert (share.borrowed, share.over_quota) == (4, 4)
    assert (
        replace(share, limit=1).over_quota,
        replace(share, limit=None).over_quota,
    ) == (3, 0)


def test_flavors_are_counted_apart_and_one_is_no_guarantee_for_another() -> None:
    found = line_of_queue(
        queue(a100=4, h100=0, t4=0), [OLD, workload("h", 2, "09:00", flavor="h100")]
    )
    assert found.shares == [
        Share(flavor="a100", guaranteed=4, held=2, limit=0),
        Share(flavor="h100", guaranteed=0, held=2, limit=0),
    ]
    assert [one.key.name for one in found.running if one.may_be_stopped] == ["h"]


def test_a_queue_that_is_not_known_guarantees_nothing() -> None:
    assert line_of_queue(None, [OLD]).borrowed == 2


def test_the_line_is_by_priority_and_then_by_age() -> None:
    found = line_of_queue(
        queue(a100=2),
        [
            workload("second", 1, made="08:30"),
            workload("first", 1, made="08:10"),
            OLD,
            workload("urgent", 2, made="09:00", priority=100),
            workload("never", 8, made="08:05", priority=200),
        ],
    )
    # Nobody waits for what does not start as it is.
    assert [(one.position, one.key.name, one.gpus) for one in found.waiting] == [
        (1, "urgent", 2),
        (2, "first", 1),
        (3, "second", 1),
        (None, "never", 8),
    ]
    assert found.oldest is not None
    assert found.oldest.isoformat() == "2026-11-23T08:05:00+00:00"
    assert line_of_queue(queue(), []).oldest is None


@pytest.mark.parametrize(
    ("quotas", "gpus", "fits"),
    [
        ([Quota("a100", GPU, 2)], 2, True),
        ([Quota("a100", GPU, 2)], 3, False),
        ([Quota("a100", GPU, 2, borrowing=1)], 3, True),
        ([Quota("a100", GPU, 2, borrowing=None)], 99, True),
        # Pods of one job may be spread over flavors, as long as nothing says otherwise.
        ([Quota("a100", GPU, 2), Quota("h100", GPU, 2)], 4, True),
        ([Quota("a100-1g", "nvidia.com/mig-1g.10gb", 9)], 1, False),
        ([], 0, True),
    ],
)
def test_one_that_is_larger_than_its_queue_does_not_fit_and_has_no_place(
    quotas: list[Quota], gpus: int, fits: bool
) -> None:
    [waits] = line_of_queue(
        Queue(name="vision", quotas=tuple(quotas)), [workload("waits", gpus)]
    ).waiting
    assert (waits.position, waits.fits) == (1 if fits else None, fits)


def test_where_a_queue_goes_strictly_in_order_what_never_starts_keeps_its_place() -> (
    None
):
    strict = replace(queue(a100=2), strategy="StrictFIFO")
    found = line_of_queue(strict, [workload("never", 8), workload("second", 1)])
    assert [(one.position, one.key.name, one.fits) for one in found.waiting] == [
        (1, "never", False),
        (2, "second", True),
    ]


def not_reserved(waits: dict[str, Any], reason: str, said: str) -> dict[str, Any]:
    """A Workload of which Kueue says why it has no quota."""
    condition = {
        "type": "QuotaReserved",
        "status": "False",
        "reason": reason,
        "message": said,
    }
    return {**waits, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("reason", "said", "position", "is_gated"),
    [
        ("Pending", "couldn't assign flavors to pod set main: quota", 1, False),
        ("NoMatchingFlavor", "", None, False),
        ("AdmissionGated", "", None, True),
        ("Pending", "Admission is gated by: example.com/approval", None, True),
    ],
)
def test_what_kueue_lays_aside_has_no_place(
    reason: str, said: str, position: int | None, is_gated: bool
) -> None:
    waits = not_reserved(workload("waits", 1), reason, said)
    [found] = line_of_queue(queue(a100=2), [waits]).waiting
    assert (found.position, found.fits, found.is_gated) == (position, True, is_gated)


def pod(name: str, at: str = "", phase: str = "Pending") -> dict[str, Any]:
    """A pod of the Workload "old", on a node where one is named."""
    return {
        "metadata": {
            "name": name,
            "namespace": "vision",
            "uid": name,
            "labels": {"kueue.x-k8s.io/workload": "old"},
        },
        "spec": {"nodeName": at} if at else {},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("pods", "counted", "is_placed"),
    [
        ([], (1, 0), False),
        ([pod("a")], (1, 0), False),
        ([pod("a", "n1"), pod("b")], (2, 1), False),
        ([pod("a", "n1", "Running"), pod("b", "n2")], (2, 2), True),
        # What begins anew has its GPUs once its new pods have.
        ([pod("a", "n1", "Failed"), pod("b")], (1, 0), False),
        ([pod("a", "n1", "Succeeded")], (1, 1), True),
    ],
)
def test_what_was_let_in_has_its_gpus_once_its_pods_are_on_nodes(
    pods: list[dict[str, Any]], counted: tuple[int, int], is_placed: bool
) -> None:
    [found] = line_of_queue(
        queue(a100=2), [OLD], pods=pods_by_workload([OLD], [], pods)
    ).running
    assert ((found.pods, found.on_nodes), found.is_placed) == (counted, is_placed)


def test_where_a_queue_is_not_known_what_waits_may_fit() -> None:
    [waits] = line_of_queue(None, [workload("waits", 9)]).waiting
    assert waits.fits


def test_a_queue_that_goes_strictly_in_order_knows_that_its_head_never_starts() -> None:
    def head_of(gpus: int) -> tuple[bool | None, ...]:
        body = {
            "metadata": {"name": "vision"},
            "spec": {"queueingStrategy": "StrictFIFO", "resourceGroups": [GROUP]},
        }
        return tuple(
            one.fits for one in queue_seen(body, [workload("head", gpus)]).first
        )

    assert (head_of(2), head_of(3)) == ((None,), (False,))


def node(
    name: str,
    used: int,
    *,
    flavor: str = "a100",
    ready: bool = True,
    cordoned: bool = False,
) -> Node:
    return Node(
        name=name,
        flavor=flavor,
        gpus=8,
        used=used,
        is_ready=ready,
        is_cordoned=cordoned,
    )


@pytest.mark.parametrize(
    ("nodes", "free", "largest"),
    [
        ([], 0, 0),
        ([node("a", 0)], 8, 8),
        ([node("a", 6), node("b", 5), node("c", 7)], 6, 3),
        ([node("a", 6), node("b", 0, cordoned=True), node("c", 0, ready=False)], 2, 2),
        ([node("a", 12), node("b", 0, flavor="h100")], 0, 0),
    ],
)
def test_the_largest_pod_that_fits_is_that_of_one_node(
    nodes: list[Node], free: int, largest: int
) -> None:
    assert rooms_of(nodes, ["a100"]) == [
        Room(flavor="a100", free=free, largest=largest)
    ]


def test_who_waits_is_in_the_queue_that_the_teams_queue_leads_to() -> None:
    leads = {
        "metadata": {"namespace": "vision", "name": "default"},
        "spec": {"clusterQueue": "vision"},
    }
    waits = workload("waits", 1)
    assert by_queue([OLD, waits], [leads]) == {"vision": [OLD, waits]}
    assert by_queue([waits], []) == {}
