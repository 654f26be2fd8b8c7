"""When what about a holding happens, over every length, lead and rule."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.schedule import (
    REMINDERS,
    TAKEN_DOWN,
    Phase,
    Provisioner,
    State,
    Status,
    Step,
    Terms,
    WhenOver,
    ends_soon,
    kept_by,
    next_reminder,
    next_steps,
    reminders,
    state_of,
)
from allocations.use.running import Running, quota_on_cluster, running, to_stop

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
def test_every_reminder_lies_in_the_second_half_of_what_is_held(
    length: timedelta,
) -> None:
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
def test_a_short_holding_has_no_early_reminder(
    length: timedelta, leads: list[timedelta]
) -> None:
    assert reminders(START, START + length) == tuple(
        START + length - lead for lead in leads
    )


@given(length=lengths, missed=lengths)
def test_what_was_missed_is_not_sent_after_what_comes_next(
    length: timedelta, missed: timedelta
) -> None:
    until, now = START + length, START + missed
    following = next_reminder(START, until, after=now)
    ahead = [at for at in reminders(START, until) if at > now]
    assert following == (ahead[0] if ahead else None)


@given(length=lengths, terms=terms, ahead=lengths)
def test_the_steps_come_in_order_and_none_is_past(
    length: timedelta, terms: Terms, ahead: timedelta
) -> None:
    until, now = START + length, START + min(ahead, length)
    steps = next_steps(
        starts=START,
        until=until,
        terms=terms,
        now=now,
        remind_at=next_reminder(START, until, after=now),
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
    steps = next_steps(
        starts=START, until=end, terms=terms, now=START, remind_at=end - 7 * DAY
    )
    assert [(step.what, step.at) for step in steps] == [
        ("reminder", end - 7 * DAY),
        ("reminder", end - DAY),
        ("reminder", end - HOUR),
        ("end", end),
        ("grace_end", end + 4 * HOUR),
        ("drain", end + 28 * HOUR),
    ]


@pytest.mark.parametrize(
    ("length", "left", "soon"),
    [
        pytest.param(4 * HOUR, HOUR, True, id="the last quarter of a short one"),
        pytest.param(
            4 * HOUR, HOUR + timedelta(seconds=1), False, id="before the last quarter"
        ),
        pytest.param(30 * DAY, 3 * DAY, True, id="the last three days of a long one"),
        pytest.param(
            30 * DAY,
            3 * DAY + timedelta(seconds=1),
            False,
            id="before the last three days",
        ),
    ],
)
def test_an_end_is_soon_in_the_last_quarter_and_at_most_three_days_before(
    length: timedelta, left: timedelta, *, soon: bool
) -> None:
    until = START + length
    assert ends_soon(since=START, until=until, now=until - left) is soon


@pytest.mark.parametrize(
    ("phase", "left", "ended", "state"),
    [
        pytest.param(Phase.READY, 20 * DAY, False, State.HELD, id="there"),
        pytest.param(
            Phase.READY, 2 * DAY, False, State.ENDING_SOON, id="there and soon over"
        ),
        pytest.param(Phase.READY, timedelta(0), False, State.IN_GRACE, id="at its end"),
        pytest.param(Phase.READY, -HOUR, False, State.IN_GRACE, id="over and kept"),
        pytest.param(Phase.READY, -HOUR, True, State.ENDED, id="ended"),
        pytest.param(
            Phase.PENDING,
            2 * DAY,
            False,
            State.SETTING_UP,
            id="not there yet, and soon over",
        ),
        pytest.param(
            Phase.PENDING, 2 * DAY, True, State.ENDED, id="ended before it was there"
        ),
        pytest.param(Phase.STUCK, 20 * DAY, False, State.FAILED, id="stuck"),
        pytest.param(Phase.FAILED, 20 * DAY, False, State.FAILED, id="failed"),
        pytest.param(
            Phase.FAILED, 20 * DAY, True, State.FAILED, id="failed, and so never there"
        ),
    ],
)
def test_where_an_allocation_stands(
    phase: Phase, left: timedelta, state: State, *, ended: bool
) -> None:
    until = START + 30 * DAY
    assert (
        state_of(
            Status(phase), starts=START, until=until, ended=ended, now=until - left
        )
        is state
    )


@pytest.mark.parametrize(
    ("phase", "gives_up_at", "is_given_up"),
    [
        pytest.param(Phase.FAILED, None, True, id="failed"),
        pytest.param(Phase.STUCK, None, False, id="stuck"),
        pytest.param(
            Phase.STUCK, START + HOUR, False, id="stuck, and there is time left"
        ),
        pytest.param(Phase.STUCK, START, True, id="stuck until now"),
    ],
)
def test_what_failed_or_was_stuck_for_too_long_is_given_up(
    phase: Phase, gives_up_at: datetime | None, *, is_given_up: bool
) -> None:
    assert Status(phase, gives_up_at=gives_up_at).is_given_up(START) is is_given_up


@pytest.mark.parametrize(
    ("when_over", "stops"),
    [
        (WhenOver.FINISH, None),
        (WhenOver.DRAIN, START + 24 * HOUR),
        (WhenOver.STOP, START),
    ],
)
def test_work_goes_on_as_long_as_the_terms_say(
    when_over: WhenOver, stops: datetime | None
) -> None:
    assert Terms(when_over=when_over, drain_hours=24).stop_at(START) == stops


def test_without_terms_the_quota_goes_down_at_the_end_and_work_may_finish() -> None:
    assert Terms().kept_until(START) == START
    assert [(step.what, step.at) for step in steps_of(Terms())] == [
        ("end", START + DAY)
    ]


def test_where_the_portal_does_not_write_nothing_is_stopped_and_the_grace_stays() -> (
    None
):
    terms = Terms(grace_hours=4, when_over=WhenOver.DRAIN, drain_hours=24)
    assert terms.where_nothing_is_stopped() == Terms(grace_hours=4)


def steps_of(
    terms: Terms, *, of_gpus: bool = True, now: datetime = START
) -> list[Step]:
    return next_steps(
        starts=START, until=START + DAY, terms=terms, now=now, of_gpus=of_gpus
    )


@pytest.mark.parametrize(
    ("offering", "after_its_end"),
    [("volume", True), ("namespace", True), ("cluster", False)],
)
def test_what_there_is_one_of_is_asked_for_again_after_its_end(
    offering: str, after_its_end: bool
) -> None:
    assert ("once it has ended" in kept_by(offering)) == after_its_end


def test_more_of_the_same_in_azure_is_not_advised_while_the_old_one_is_paid() -> None:
    assert kept_by("reservation").startswith("To keep it longer, book it from this end")
    assert "shortly before this end" in kept_by("openai")


def test_what_a_person_takes_down_only_ends() -> None:
    terms = Terms(grace_hours=4, when_over=WhenOver.STOP)
    assert steps_of(terms, of_gpus=False) == [Step(START + DAY, "end", TAKEN_DOWN)]


def test_work_that_is_stopped_at_once_is_stopped_when_the_quota_goes_down() -> None:
    steps = steps_of(Terms(grace_hours=4, when_over=WhenOver.STOP))
    stop = START + DAY + 4 * HOUR
    assert [(step.what, step.at) for step in steps[1:]] == [
        ("grace_end", stop),
        ("stop", stop),
    ]


def test_what_comes_at_this_moment_comes_no_more() -> None:
    assert steps_of(Terms(), now=START + DAY) == []


def test_a_reminder_that_is_due_now_is_not_the_next_one() -> None:
    until = START + 14 * DAY
    assert next_reminder(START, until, after=until - DAY) == until - HOUR


@pytest.mark.parametrize(
    "kind",
    [WhenOver, State, Provisioner],
    ids=["when it is over", "states", "provisioners"],
)
def test_every_choice_and_every_state_has_words_of_its_own(
    kind: type[WhenOver] | type[State] | type[Provisioner],
) -> None:
    assert all(each.words for each in kind)
    assert len({each.words for each in kind}) == len(kind)


def test_a_state_is_called_on_pages_what_the_api_calls_it() -> None:
    words = {state: state.words.lower().replace(" ", "_") for state in State}
    assert words.pop(State.IN_GRACE) == "in_its_grace"
    assert words == {state: state.value for state in words}


def test_what_failed_and_what_works_do_not_look_alike() -> None:
    tones = {state.value: state.tone for state in State}
    assert tones == {
        "booked": "moving",
        "setting_up": "moving",
        "held": "good",
        "ending_soon": "ending",
        "in_grace": "ending",
        "ended": "past",
        "failed": "bad",
    }


def work(
    uid: str, gpus: int, priority: int = 0, since: str = "2026-11-20T12:00:00Z"
) -> Running:
    return Running(
        uid=uid,
        name=uid,
        job=f"Job {uid}",
        priority=priority,
        since=since,
        gpus={"a100": gpus},
    )


def stopped(over: int, *running: Running) -> list[str]:
    return [one.uid for one in to_stop(running, "a100", over)]


def test_the_lowest_priority_stops_first_then_the_newest() -> None:
    old, new = (
        work("old", 2, since="2026-11-20T08:00:00Z"),
        work("new", 2, since="2026-11-20T11:00:00Z"),
    )
    urgent = work("urgent", 2, priority=1000, since="2026-11-20T11:30:00Z")
    assert stopped(2, urgent, old, new) == ["new"]
    assert stopped(3, urgent, old, new) == ["new", "old"]
    assert stopped(5, urgent, old, new) == ["new", "old", "urgent"]


def test_only_gpus_are_counted_and_no_other_devices() -> None:
    held = {
        "name": "main",
        "flavors": {"nvidia.com/gpu": "a100", "rdma/hca": "a100", "cpu": "a100"},
    }
    held |= {"resourceUsage": {"nvidia.com/gpu": "2", "rdma/hca": "2", "cpu": "8"}}
    reserved = {
        "type": "QuotaReserved",
        "status": "True",
        "lastTransitionTime": "2026-11-20T08:00:00Z",
    }
    workload = {
        "metadata": {
            "name": "job-bert",
            "uid": "w",
            "creationTimestamp": "2026-11-20T08:00:00Z",
        },
        "status": {
            "conditions": [reserved],
            "admission": {"podSetAssignments": [held]},
        },
    }
    assert [one.gpus for one in running([workload])] == [{"a100": 2}]
    quotas = [
        {"name": name, "nominalQuota": "4"}
        for name in ("nvidia.com/gpu", "rdma/hca", "memory")
    ]
    queue = {
        "spec": {
            "resourceGroups": [{"flavors": [{"name": "a100", "resources": quotas}]}]
        }
    }
    assert quota_on_cluster(queue) == {"a100": 4}


def test_nothing_is_stopped_that_a_larger_one_makes_needless() -> None:
    assert stopped(8, work("small", 1), work("large", 8, priority=1)) == ["large"]
    assert stopped(0, work("a", 1)) == []


jobs = st.lists(
    st.tuples(st.integers(1, 8), st.integers(0, 3), st.integers(0, 9)), max_size=8
)


@given(jobs=jobs, over=st.integers(0, 40))
def test_as_much_stops_as_is_over_and_no_job_too_many(
    jobs: list[tuple[int, int, int]], over: int
) -> None:
    held = [
        work(str(at), gpus, priority, f"2026-11-20T0{hour}:00:00Z")
        for at, (gpus, priority, hour) in enumerate(jobs)
    ]
    chosen = to_stop(held, "a100", over)
    freed = sum(one.gpus["a100"] for one in chosen)
    assert freed >= min(over, sum(one.gpus["a100"] for one in held))
    assert all(freed - one.gpus["a100"] < over for one in chosen)
    assert to_stop(held[::-1], "a100", over) == chosen
