"""When what about a holding happens, over every length, lead and rule."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.schedule import REMINDERS, Terms, WhenOver, next_reminder, next_steps, reminders
from allocations.use.running import Running, to_stop

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
lengths = st.integers(1, 400 * 24 * 60).map(lambda minutes: timedelta(minutes=minutes))
terms = st.builds(
    Terms,
    grace_hours=st.integers(0, 168),
    when_over=st.sampled_from(WhenOver),
    drain_hours=st.integers(0, 720),
)


@given(length=lengths)
def test_every_reminder_lies_in_the_second_half_of_what_is_held(length: timedelta) -> None:
    found = reminders(START, START + length)
    assert list(found) == sorted(found)
    assert all(START + length / 2 <= at < START + length for at in found)
    assert len(found) == sum(2 * lead <= length for lead in REMINDERS)


@pytest.mark.parametrize(
    ("length", "leads"),
    [
        (HOUR, []),
        (2 * HOUR, [HOUR]),
        (2 * DAY, [DAY, HOUR]),
        (13 * DAY, [DAY, HOUR]),
        (14 * DAY, [*REMINDERS]),
    ],
)
def test_a_short_holding_has_no_early_reminder(length: timedelta, leads: list[timedelta]) -> None:
    assert reminders(START, START + length) == tuple(START + length - lead for lead in leads)


@given(length=lengths, missed=lengths)
def test_what_was_missed_is_not_sent_after_what_comes_next(length: timedelta, missed: timedelta) -> None:
    until, now = START + length, START + missed
    following = next_reminder(START, until, after=now)
    ahead = [at for at in reminders(START, until) if at > now]
    assert following == (ahead[0] if ahead else None)


@given(length=lengths, terms=terms, ahead=lengths)
def test_the_steps_come_in_order_and_none_is_past(length: timedelta, terms: Terms, ahead: timedelta) -> None:
    until, now = START + length, START + min(ahead, length)
    steps = next_steps(
        starts=START, until=until, terms=terms, now=now, remind_at=next_reminder(START, until, after=now)
    )
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    assert all(step.at > now for step in steps)
    stops = [step.at for step in steps if step.what in ("drain", "stop")]
    expected = terms.stop_at(terms.kept_until(until))
    assert stops == ([expected] if expected is not None and expected > now else [])
    assert terms.kept_until(until) >= until


def test_every_step_is_said_before_it_comes() -> None:
    end = START + 14 * DAY
    terms = Terms(grace_hours=4, when_over=WhenOver.DRAIN, drain_hours=24)
    steps = next_steps(starts=START, until=end, terms=terms, now=START, remind_at=end - 7 * DAY)
    assert [(step.what, step.at) for step in steps] == [
        ("reminder", end - 7 * DAY),
        ("reminder", end - DAY),
        ("reminder", end - HOUR),
        ("end", end),
        ("grace_end", end + 4 * HOUR),
        ("drain", end + 28 * HOUR),
    ]


def work(uid: str, gpus: int, priority: int = 0, since: str = "2026-11-20T12:00:00Z") -> Running:
    return Running(uid=uid, name=uid, job=f"Job {uid}", priority=priority, since=since, gpus={"a100": gpus})


def stopped(over: int, *running: Running) -> list[str]:
    return [one.uid for one in to_stop(running, "a100", over)]


def test_the_lowest_priority_stops_first_then_the_newest() -> None:
    old, new = work("old", 2, since="2026-11-20T08:00:00Z"), work("new", 2, since="2026-11-20T11:00:00Z")
    urgent = work("urgent", 2, priority=1000, since="2026-11-20T11:30:00Z")
    assert stopped(2, urgent, old, new) == ["new"]
    assert stopped(3, urgent, old, new) == ["new", "old"]
    assert stopped(5, urgent, old, new) == ["new", "old", "urgent"]


def test_nothing_is_stopped_that_a_larger_one_makes_needless() -> None:
    assert stopped(8, work("small", 1), work("large", 8, priority=1)) == ["large"]
    assert stopped(0, work("a", 1)) == []


jobs = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 3), st.integers(0, 9)), max_size=8)


@given(jobs=jobs, over=st.integers(0, 40))
def test_as_much_stops_as_is_over_and_no_job_too_many(jobs: list[tuple[int, int, int]], over: int) -> None:
    running = [
        work(str(at), gpus, priority, f"2026-11-20T0{hour}:00:00Z")
        for at, (gpus, priority, hour) in enumerate(jobs)
    ]
    chosen = to_stop(running, "a100", over)
    freed = sum(one.gpus["a100"] for one in chosen)
    assert freed >= min(over, sum(one.gpus["a100"] for one in running))
    assert all(freed - one.gpus["a100"] < over for one in chosen)
    assert to_stop(running[::-1], "a100", over) == chosen
