"""The states of a request and the one table of legal moves between them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from allocations.schedule import ends_soon


class State(StrEnum):
    """Where a request stands; the words on pages are `words`."""

    DRAFT = "draft"
    WAITING = "waiting"
    APPROVED = "approved"
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
    State.WAITING: frozenset({State.WAITING, State.APPROVED, State.REJECTED, State.WITHDRAWN, State.LAPSED}),
    State.APPROVED: frozenset(),
    State.REJECTED: frozenset(),
    State.WITHDRAWN: frozenset(),
    State.LAPSED: frozenset(),
}


def may_move(before: State, after: State) -> bool:
    """Whether a stored request may go from one state to another."""
    return after in LEGAL[before]


@dataclass(frozen=True, kw_only=True)
class Holding:
    """What is held under a request now; `is_set_up` says whether the cluster has had it yet.

    `never_came` says that whoever was to carry it out could not, so there was nothing that could end. In its grace,
    until `kept_until`, it is still held.
    """

    since: datetime
    until: datetime
    is_set_up: bool
    failed: bool
    never_came: bool = False
    kept_until: datetime | None = None


def shown(stored: State, holding: Holding | None, *, now: datetime) -> State:
    """The state that people see: what is stored, and for an approved request what has become of it."""
    if stored is not State.APPROVED:
        return stored
    if holding is not None and holding.never_came:
        return State.FAILED
    if holding is None or (holding.kept_until or holding.until) <= now:
        return State.ENDED
    if not holding.is_set_up:
        return State.FAILED if holding.failed else State.SETTING_UP
    ends = ends_soon(since=holding.since, until=holding.until, now=now)
    return State.ENDING_SOON if ends else State.ACTIVE
