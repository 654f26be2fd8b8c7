"""The steps of a departure with their dates, the brake, and the fingerprint: pure."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offboarding.plan import (
    Due,
    Story,
    fingerprint,
    held_back_of,
    may_delete,
    most_at_once,
    steps,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
ASKED = Story(
    asked_at=NOW - DAY,
    asked_by="Ada",
    leaves_at=NOW + 7 * DAY,
    retained_until=NOW + 37 * DAY,
    days=30,
    hold=True,
)
CONFIRMED = replace(ASKED, confirmed_at=NOW, confirmed_by="Priya")


def told(story: Story, at: datetime = NOW) -> list[tuple[str, str]]:
    return [(step.phase, step.title) for step in steps(story, now=at)]


def test_until_it_is_confirmed_nothing_is_past_but_the_asking() -> None:
    assert told(ASKED, NOW + 99 * DAY) == [
        ("past", "Asked for"),
        ("now", "Waits to be confirmed"),
        ("future", "Work stops"),
        ("future", "Kept for 30 days"),
        ("future", "Deleted for good"),
    ]


def test_every_step_to_come_has_its_date_beforehand() -> None:
    coming = {
        step.title: step.at
        for step in steps(CONFIRMED, now=NOW)
        if step.phase == "future"
    }
    assert coming == {
        "Work stops": NOW + 7 * DAY,
        "Kept for 30 days": None,
        "Deleted for good": NOW + 37 * DAY,
    }


def test_what_goes_as_soon_as_it_is_confirmed_has_no_date_before_that() -> None:
    at_once = replace(ASKED, leaves_at=NOW - DAY, retained_until=NOW + 29 * DAY)
    stops, kept, gone = steps(at_once, now=NOW)[2:]
    assert (stops.phase, stops.title, stops.at) == ("future", "Work stops", None)
    assert stops.why.startswith("As soon as it is confirmed: what still runs is")
    assert (kept.phase, kept.title) == ("future", "Kept for 30 days")
    assert (gone.title, gone.at) == ("Deleted for good", None)
    assert gone.why.startswith("30 days after work has stopped.")


def test_the_story_goes_on_with_its_dates() -> None:
    assert told(CONFIRMED, NOW + 7 * DAY)[2:] == [
        ("past", "Work stops"),
        ("now", "Kept for 30 days"),
        ("future", "Deleted for good"),
    ]
    assert told(CONFIRMED, NOW + 37 * DAY)[2:] == [
        ("past", "Work stops"),
        ("now", "Being deleted"),
    ]
    gone = replace(CONFIRMED, ended_at=NOW + 38 * DAY, end="gone")
    assert told(gone, NOW + 40 * DAY)[-1] == ("past", "Deleted for good")


def test_while_work_still_runs_nothing_after_it_has_begun() -> None:
    late = replace(CONFIRMED, is_stopped=False)
    for at in (NOW + 7 * DAY, NOW + 99 * DAY):
        assert told(late, at)[2:] == [
            ("now", "Work is being stopped"),
            ("future", "Kept for 30 days"),
            ("future", "Deleted for good"),
        ]
    assert told(late)[2] == ("future", "Work stops")


def test_what_was_undone_promises_nothing_more() -> None:
    early = replace(CONFIRMED, ended_at=NOW + DAY, ended_by="Priya", end="restored")
    assert told(early) == [
        ("past", "Asked for"),
        ("past", "Confirmed"),
        ("past", "Restored"),
    ]
    assert "holds and pays them as before" in steps(early, now=NOW + DAY)[-1].why
    late = replace(early, ended_at=NOW + 8 * DAY, took_gpus=True)
    assert steps(late, now=NOW + 8 * DAY)[-1].why == (
        "Everything but the GPUs is back. Requests that were withdrawn stay so."
    )
    assert told(late, NOW + 8 * DAY)[2:] == [
        ("past", "Work stops"),
        ("past", "Restored"),
    ]
    back = replace(ASKED, ended_at=NOW, ended_by="Ada", end="withdrawn")
    assert told(back) == [("past", "Asked for"), ("past", "Taken back")]


def test_what_a_hold_means_is_said() -> None:
    assert "what runs may finish" in steps(CONFIRMED, now=NOW)[1].why
    assert "goes on as before" in steps(replace(CONFIRMED, hold=False), now=NOW)[1].why


@pytest.mark.parametrize(
    ("present", "most"), [(0, 10), (200, 10), (201, 10), (220, 11), (1000, 50)]
)
def test_at_most_ten_or_five_in_a_hundred_go_at_once(present: int, most: int) -> None:
    assert most_at_once(present) == most


def test_too_many_at_once_wait_for_a_person() -> None:
    ten, eleven = [Due(n, n) for n in range(10)], [Due(n, n) for n in range(11)]
    assert held_back_of(ten, present=40) == set()
    assert held_back_of(eleven, present=40) == set(range(11))
    assert may_delete(ten) == list(range(10))


DUE = st.builds(
    Due, st.integers(0, 500), st.integers(0, 200), st.booleans(), st.booleans()
)


@given(st.lists(DUE, unique_by=lambda row: row.place), st.integers(0, 5000))
def test_a_sweep_never_deletes_more_that_nobody_looked_at_than_it_may(
    due: list[Due], present: int
) -> None:
    held = held_back_of(due, present=present)
    gone = may_delete(
        [
            replace(row, is_held_back=row.is_held_back or row.departure in held)
            for row in due
        ]
    )
    looked_at = {row.place for row in due if row.is_agreed}
    assert len(set(gone) - looked_at) <= most_at_once(present)
    assert looked_at <= set(gone)
    assert not set(gone) & {
        row.place for row in due if row.is_held_back and not row.is_agreed
    }


def test_a_fingerprint_is_of_the_content_alone() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})


def test_of_a_team_that_leaves_at_once_no_work_goes_on() -> None:
    later, at_once = (
        next(
            step.why
            for step in steps(replace(CONFIRMED, hold=False, leaves_at=at), now=NOW)
            if step.title == "Confirmed"
        )
        for at in (NOW + DAY, NOW)
    )
    assert later.endswith("Work goes on as before, until then.")
    assert at_once == "Open requests are withdrawn for good and new ones refused."
