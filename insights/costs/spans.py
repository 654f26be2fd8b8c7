"""Which cost centre a time belongs to, where a team changed its own on the way. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Change:
    """A team's cost centre was changed at a moment."""

    at: datetime
    before: str
    after: str


@dataclass(frozen=True)
class Span:
    """A time that belongs to one cost centre."""

    start: datetime
    end: datetime
    cost_centre: str


def spans(
    start: datetime, end: datetime, *, at_present: str, changes: Sequence[Change]
) -> Iterator[Span]:
    """The time from start to end cut where the cost centre changed; nothing where end is not after start.

    `changes` are all that were made since start, oldest first; `at_present` is the cost centre after the last of them.
    """
    for change in changes:
        if change.at <= start:
            continue
        if change.at >= end:
            at_present = change.before
            break
        yield Span(start, change.at, change.before)
        start = change.at
    if start < end:
        yield Span(start, end, at_present)
