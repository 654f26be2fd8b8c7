"""By when what waits starts: the time limits of what runs and waits ahead say it, without any history."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.known import NOW, why
from tests.workloads.known import waiting as waits
from tests.workloads.test_runs import ASKED, look_after, submit, until
from workloads.board import work_of_team
from workloads.estimating import Wait, history_of
from workloads.listing import Work
from workloads.models import Run
from workloads.observed import (
    Condition,
    JobKey,
    Line,
    PodSet,
    Queue,
    Quota,
    QuotaHolder,
    Workload,
)
from workloads.reading.limits import limits_of
from workloads.reasons.latest_starts import Change, LineEntry, entry_of, latest_starts
from workloads.runs import actions
from workloads.runs.planning.plan import Submission
from workloads.runs.planning.queue_copies import dated_demands

HOUR = timedelta(hours=1)
GPU = "nvidia.com/gpu"
QUEUE = Queue(name="team-nlp", quotas=(Quota("a100", GPU, 8), Quota("h100", GPU, 4)))
FULL = "couldn't assign flavors to pod set main: insufficient unused quota for {} in flavor a100, 4 more needed"
NAMES = ("type", "status", "lastTransitionTime")


def holds(gpus: int, hours: float | None, flavor: str = "a100") -> QuotaHolder:
    """A job with so many GPUs that reaches its time limit in so many hours; never for None."""
    ends = None if hours is None else NOW + hours * HOUR
    return QuotaHolder(JobKey("team-nlp", "one"), flavor, gpus, ends)


def asks(gpus: int, *flavors: str, hours: float | None = 1) -> LineEntry:
    """A job in the line with a time limit of so many hours."""
    limit = None if hours is None else hours * HOUR
    return LineEntry(flavors=frozenset(flavors or ("a100",)), gpus=gpus, limit=limit)


def starts(
    holders: list[QuotaHolder], line: list[LineEntry], *changes: Change
) -> list[float | None]:
    """In how many hours each in the line starts at the latest."""
    found = latest_starts(QUEUE, holders, changes, line, now=NOW)
    return [None if at is None else (at - NOW) / HOUR for at in found]


@pytest.mark.parametrize(
    ("holders", "line", "found"),
    [
        pytest.param([(4, 2), (4, 5)], [4], [2], id="the first that ends is enough"),
        pytest.param([(4, 2), (4, 5)], [8], [5], id="it takes both"),
        pytest.param([(4, 2), (4, None)], [8], [None], id="one has no limit"),
        pytest.param([(4, None)], [4], [None], id="its GPUs are free now"),
        pytest.param([(8, 2)], [8, 8, 8], [2, 3, 4], id="one behind the other"),
        pytest.param([(8, 2)], [6, 6, 2], [2, 3, 3], id="nobody behind goes first"),
        pytest.param([(12, 2)], [4], [2], id="what was borrowed goes back first"),
        pytest.param([(8, 2)], [9], [None], id="more than its own"),
        pytest.param([(2, 2)], [6, 8], [None, None], id="its head waits for more"),
        pytest.param([(8, -1)], [4], [0], id="what is past its limit is stopped"),
    ],
)
def test_each_starts_once_what_is_ahead_of_it_has_reached_its_limit(
    holders: list[tuple[int, float | None]],
    line: list[int],
    found: list[float | None],
) -> None:
    held = [holds(gpus, hours) for gpus, hours in holders]
    assert starts(held, [asks(gpus) for gpus in line]) == found


def test_what_nobody_can_bound_bounds_nothing_behind_it_of_the_same_kind() -> None:
    busy = [holds(8, 2), holds(4, 3, "h100")]
    either = asks(2, "a100", "h100")
    assert starts(busy, [asks(2), either, asks(2), asks(2, "h100")]) == [2] + 3 * [None]
    endless = asks(8, hours=None)
    assert starts(busy, [endless, asks(2), asks(2, "h100")]) == [2, None, 3]
    no_gpus = LineEntry(flavors=frozenset(), gpus=0, limit=None)
    assert starts(busy, [no_gpus, asks(2)]) == [None, 2]


def test_in_a_queue_that_goes_strictly_in_order_nobody_can_say() -> None:
    strict = replace(QUEUE, strategy="StrictFIFO")
    line = [asks(8), asks(4, "h100")]
    assert latest_starts(strict, [holds(8, 2)], (), line, now=NOW) == [None, None]


def test_a_grant_that_ends_before_gives_nothing_and_one_that_begins_does() -> None:
    ends = Change(at=NOW + HOUR, flavor="a100", gpus=-8)
    begins = Change(at=NOW + HOUR, flavor="a100", gpus=4)
    assert starts([holds(8, 2)], [asks(4)], ends) == [None]
    assert starts([holds(8, 2)], [asks(4)], begins) == [1]
    assert starts([holds(8, 2)], [asks(4)], replace(ends, at=NOW - HOUR)) == [None]


@pytest.mark.parametrize(
    ("message", "pods", "flavors", "is_bounded"),
    [
        (FULL.format(GPU), PodSet("main", 1, 4), {"a100"}, True),
        ("", PodSet("main", 1, 4), {"a100", "h100"}, True),
        (FULL.format("cpu"), PodSet("main", 1, 4), {"a100"}, False),
        ("", PodSet("main", 1, 4, (("1g.10gb", 2),)), {"a100", "h100"}, False),
    ],
)
def test_who_waits_for_cpus_or_for_two_kinds_at_once_is_not_bounded_by_gpus(
    message: str, pods: PodSet, flavors: set[str], *, is_bounded: bool
) -> None:
    found = entry_of(waits(message, pod_sets=(pods,)), QUEUE, HOUR)
    assert ({*found.flavors}, found.is_bounded) == (flavors, is_bounded)
    assert (found.gpus, found.limit) == (4, HOUR)


def job(uid: str, *, limit: int, began: datetime | None, owner: str = "") -> Any:
    """A Job as it is copied."""
    status = {} if began is None else {"startTime": began.isoformat()}
    owners = [{"controller": True, "kind": "JobSet", "name": "set", "uid": owner}]
    return {
        "kind": "Job",
        "metadata": {
            "name": uid,
            "uid": uid,
            "ownerReferences": owners if owner else [],
        },
        "spec": {"activeDeadlineSeconds": limit},
        "status": status,
    }


def let_in(name: str, uid: str = "") -> Mapping[str, Any]:
    """A Workload that was let in an hour ago."""
    said = dict(zip(NAMES, ("Admitted", "True", (NOW - HOUR).isoformat()), strict=True))
    owner = {"controller": True, "kind": "Job", "name": name, "uid": uid}
    return {
        "metadata": {"name": "w", "namespace": "team-nlp", "ownerReferences": [owner]},
        "status": {"conditions": [said]},
    }


def test_the_limit_of_a_job_counts_from_its_last_beginning() -> None:
    restarted = NOW - HOUR / 2
    jobs = [
        job("alone", limit=7200, began=None),
        job("first", limit=7200, began=NOW - HOUR, owner="set"),
        job("second", limit=7200, began=restarted, owner="set"),
    ]
    limits = limits_of(jobs, {("team-nlp", "a-run"): 3 * HOUR})
    assert limits.ends_at(let_in("alone", "alone")) == NOW + HOUR
    assert limits.ends_at(let_in("set", "set")) == restarted + 2 * HOUR
    assert limits.ends_at(let_in("a-run", "other")) == NOW + 2 * HOUR
    assert limits.ends_at(let_in("a-notebook")) is None
    assert limits.ends_at({"metadata": {}, "status": {}}) is None
    out: Any = copy.deepcopy(let_in("alone", "alone"))
    out["status"]["conditions"][0]["status"] = "False"
    assert limits.ends_at(out) is None
    endless: Any = job("third", limit=7200, began=None, owner="set")
    del endless["spec"]["activeDeadlineSeconds"]
    assert limits_of([*jobs, endless], {}).ends_at(let_in("set", "set")) is None


BY = (
    "It starts by about Sun 22 Nov, 18:00 UTC unless other work goes first: all that is ahead of it has ended by then, "
    "or has reached its time limit."
)


def test_what_waits_its_turn_says_by_when_with_history_and_without() -> None:
    known = {"line": Line(0, 1), "latest_start": NOW + 2 * HOUR}
    unknown = waits(FULL.format(GPU))
    found = why(unknown, **known)
    assert (found.when, found.latest_at, found.until) == (
        BY,
        NOW + 2 * HOUR,
        NOW + 2 * HOUR,
    )
    few = why(unknown, **known, history=history_of([], source="the last 30 days"))
    assert few.when == BY
    waited = [Wait(8, timedelta(minutes=each)) for each in (20, 30, 40, 50, 60, 70)]
    both = why(unknown, **known, history=history_of(waited, source="the last 30 days"))
    assert both.when.startswith("An estimate: 13 min to 53 min more")
    assert both.when.endswith(f"(6 waits, the last 30 days). {BY}")


def test_a_time_that_has_come_and_one_of_what_does_not_wait_its_turn_is_not_told() -> (
    None
):
    late = why(waits(FULL.format(GPU)), latest_start=NOW)
    assert late.latest_at is None
    assert late.when.startswith("Nobody can say yet")
    gone: Workload = replace(waits(FULL.format(GPU)), is_active=False)
    assert why(gone, latest_start=NOW + HOUR).latest_at is None
    gate = Condition("QuotaReserved", is_true=False, reason="AdmissionGated")
    gated = waits("", conditions={"QuotaReserved": gate})
    assert why(gated, latest_start=NOW + HOUR).latest_at is None


@pytest.mark.slow
def test_runs_say_by_when_before_they_are_sent_and_while_they_wait(
    watched: Watched,
) -> None:
    """The first has both GPUs for an hour at most, the second waits for it, and so does the form of a third."""

    def seen(run: Run) -> Work | None:
        board = work_of_team(watched.team, by=watched.ada, now=timezone.now())
        return next((one for one in board.work if one.run == run.pk), None)

    def is_told(run: Run) -> bool:
        found = seen(run)
        return found is not None and found.why.latest_at is not None

    first, second = submit(watched), submit(watched, key="two")
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(first)
        until(first, "running")
        look_after(second)
        # Until Kueue has looked at it, nobody knows which kind of GPU it takes.
        wait_until(lambda: is_told(second), what="the second to wait for A100")
    now, waiting = timezone.now(), seen(second)
    assert first.limit_at is not None
    assert waiting is not None
    assert waiting.why.latest_at is not None
    assert abs(waiting.why.latest_at - first.limit_at) < timedelta(seconds=10)
    third: Submission = replace(ASKED, title="A third one")
    shown = actions.preview(watched.tenancy.pk, third, by=watched.ada, key="three")
    assert shown.problems == []

    def starts_by(priority: str = "") -> str:
        wanted = "a100", 2
        found = dated_demands(watched.tenancy, [wanted], priority=priority, now=now)
        return found[wanted].starts_by

    by = starts_by()
    after = waiting.why.latest_at + HOUR
    assert (
        f"It starts by about {after:%a} {after.day} {after:%b}, {after:%H:%M} UTC" in by
    )
    # More urgent work stands before the second.
    before = waiting.why.latest_at
    assert f", {before:%H:%M} UTC" in starts_by("scheduled-training")
    client = Client()
    client.force_login(watched.ada)
    page = client.get(reverse("run", args=[second.pk])).content.decode()
    assert "It starts by about" in page
    assert "Starts by then, unless other work goes first" in page
