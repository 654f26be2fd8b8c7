"""Where a request may go, and what people see of where it is."""

from itertools import product

import pytest

from allocations.schedule import State as Allocated
from approvals.states import LEGAL, OF_ALLOCATION, STORED, State, may_move

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


def test_every_state_of_an_allocation_is_one_of_its_request() -> None:
    assert set(OF_ALLOCATION) == set(Allocated)
    assert {*OF_ALLOCATION.values(), *STORED, State.DRAFT} == set(State)
