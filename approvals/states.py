"""The states of a request and the one table of legal moves between them. Pure."""

from collections.abc import Mapping
from enum import StrEnum

from allocations.schedule import State as Allocated


class State(StrEnum):
    """Where a request stands; the words on pages are `words`."""

    DRAFT = "draft"
    WAITING = "waiting"
    APPROVED = "approved"
    BOOKED = "booked"
    SETTING_UP = "setting_up"
    ACTIVE = "active"
    ENDING_SOON = "ending_soon"
    ENDED = "ended"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    LAPSED = "lapsed"
    FAILED = "failed"

    @property
    def words(self) -> str:
        """The state as pages say it."""
        return _WORDS[self][0]

    @property
    def tone(self) -> str:
        """The badge's tone: waiting, moving, good, ending, bad or past."""
        return _WORDS[self][1]


_WORDS: Mapping[State, tuple[str, str]] = {
    State.DRAFT: ("Draft", "past"),
    State.WAITING: ("Waiting for approval", "waiting"),
    State.APPROVED: ("Approved", "moving"),
    State.BOOKED: ("Booked", "moving"),
    State.SETTING_UP: ("Setting up", "moving"),
    State.ACTIVE: ("Held", "good"),
    State.ENDING_SOON: ("Ending soon", "ending"),
    State.ENDED: ("Ended", "past"),
    State.REJECTED: ("Rejected", "bad"),
    State.WITHDRAWN: ("Withdrawn", "past"),
    State.LAPSED: ("Lapsed", "past"),
    State.FAILED: ("Failed", "bad"),
}

# What is stored moves along this table only. Setting up, running, ending soon and ended are not stored: they follow
# from the allocation and the cluster, so they can never disagree with them.
STORED = (State.WAITING, State.APPROVED, State.REJECTED, State.WITHDRAWN, State.LAPSED)
LEGAL: Mapping[State, frozenset[State]] = {
    State.WAITING: frozenset(
        {State.WAITING, State.APPROVED, State.REJECTED, State.WITHDRAWN, State.LAPSED}
    ),
    State.APPROVED: frozenset(),
    State.REJECTED: frozenset(),
    State.WITHDRAWN: frozenset(),
    State.LAPSED: frozenset(),
}


def may_move(before: State, after: State) -> bool:
    """Whether a stored request may go from one state to another."""
    return after in LEGAL[before]


# What people see of an approved request is the state of its allocation.
OF_ALLOCATION: Mapping[Allocated, State] = {
    Allocated.BOOKED: State.BOOKED,
    Allocated.SETTING_UP: State.SETTING_UP,
    Allocated.HELD: State.ACTIVE,
    Allocated.ENDING_SOON: State.ENDING_SOON,
    Allocated.IN_GRACE: State.ENDING_SOON,
    Allocated.ENDED: State.ENDED,
    Allocated.FAILED: State.FAILED,
}
