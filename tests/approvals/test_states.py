"""Where a request may go, and what people see of where it is."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from approvals.states import LEGAL, STORED, Holding, State, may_move, shown

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
ALLOWED = {
    (State.WAITING, State.WAITING),
    (State.WAITING, State.APPROVED),
    (State.WAITING, State.REJECTED),
    (State.WAITING, State.WITHDRAWN),
    (State.WAITING, State.LAPSED),
}


def test_a_request_moves_only_while_it_waits() -> None:
    assert {(a, b) for a, b in product(STORED, STORED) if may_move(a, b)} == ALLOWED


def test_every_stored_state_has_a_row_in_the_table_and_no_other_has() -> None:
    assert set(LEGAL) == set(STORED)
    assert all(after in STORED for row in LEGAL.values() for after in row)


@pytest.mark.parametrize("state", State)
def test_every_state_has_words_and_a_tone(state: State) -> None:
    assert state.words
    assert state.tone in {"waiting", "moving", "good", "ending", "bad", "past"}


def holding(
    *, since: timedelta = -DAY, until: timedelta = 10 * DAY, set_up: bool = True, failed: bool = False
) -> Holding:
    return Holding(since=NOW + since, until=NOW + until, is_set_up=set_up, failed=failed)


@pytest.mark.parametrize("state", [state for state in STORED if state is not State.APPROVED])
def test_what_is_not_approved_is_shown_as_it_is_stored(state: State) -> None:
    assert shown(state, None, now=NOW) is state
    assert shown(state, holding(), now=NOW) is state


@pytest.mark.parametrize(
    ("held", "state"),
    [
        (None, State.ENDED),
        (holding(until=timedelta(0)), State.ENDED),
        (holding(until=-DAY, set_up=False), State.ENDED),
        (holding(set_up=False), State.SETTING_UP),
        (holding(set_up=False, failed=True), State.FAILED),
        (holding(failed=True), State.ACTIVE),
        (holding(), State.ACTIVE),
        (holding(since=-20 * DAY, until=3 * DAY + timedelta(seconds=1)), State.ACTIVE),
        (holding(since=-20 * DAY, until=3 * DAY), State.ENDING_SOON),
        (holding(since=-HOUR, until=23 * HOUR), State.ACTIVE),
        (holding(since=-18 * HOUR, until=6 * HOUR), State.ENDING_SOON),
        (holding(since=-17 * HOUR, until=7 * HOUR), State.ACTIVE),
    ],
)
def test_what_is_approved_is_shown_as_what_has_become_of_it(held: Holding | None, state: State) -> None:
    assert shown(State.APPROVED, held, now=NOW) is state
