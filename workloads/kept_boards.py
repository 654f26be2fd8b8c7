"""What was explained of a team's work, kept as JSON in the cache that all processes share until it holds no longer.

It is found by a digest of all that it follows from (workloads.team_context.TeamContext), copies and portal alike, so
that nothing outlives a change of them. What a process read last it has at hand; while the cache does not answer,
everything else is explained at each view.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import overload

import structlog
from django.core.cache import cache
from pydantic import TypeAdapter, ValidationError

from web.counters import breaker
from workloads.estimating import History
from workloads.explaining import later
from workloads.gathering import Explained, history_key
from workloads.listing import State, Work
from workloads.team_context import TeamContext

logger = structlog.get_logger(__name__)
# After an update of the portal, sentences of the earlier version are shown no longer than this.
SECONDS = 300
# How long one that finds another at the same work waits for it, and after which time who is at it counts as dead.
PATIENCE, MAKING = 3.0, 10
PAUSE = 0.05
# How many boards a process has at hand: one of 2,000 lines takes some two megabytes.
MOST_AT_HAND = 16


@dataclass(frozen=True, kw_only=True)
class Head:
    """What is known of all lines together, before one of them is read."""

    states: Sequence[State]
    held: int
    left_out: int
    histories: Mapping[str, History]
    until: datetime | None


@dataclass(frozen=True, kw_only=True)
class Board:
    """What was explained of a team's work: its lines are JSON until somebody looks at them."""

    head: Head
    lines: Sequence[str]

    def holds(self, now: datetime) -> bool:
        """Whether the time alone has not changed it."""
        return self.head.until is None or now < self.head.until

    def work(self, now: datetime) -> "WorkLines":
        """The lines as they read now."""
        return WorkLines(self, now)


class WorkLines(Sequence[Work]):
    """Work in the order in which it is shown; of thousands a page shows a few, so each is read when it is looked at."""

    def __init__(self, board: Board, now: datetime) -> None:
        """The lines of a board as they read at one moment."""
        self._board, self._now = board, now

    def __len__(self) -> int:
        """How many there are."""
        return len(self._board.lines)

    @overload
    def __getitem__(self, index: int) -> Work: ...

    @overload
    def __getitem__(self, index: slice) -> list[Work]: ...

    def __getitem__(self, index: int | slice) -> Work | list[Work]:
        """One of them, or several."""
        if isinstance(index, slice):
            return [self._read(one) for one in self._board.lines[index]]
        return self._read(self._board.lines[index])

    def __iter__(self) -> Iterator[Work]:
        """All of them."""
        return map(self._read, self._board.lines)

    def _read(self, text: str) -> Work:
        """A line, of which what is only estimated moves on with the time."""
        one = WORK.validate_json(text)
        history = self._board.head.histories.get(history_key(one.cluster, one.queue))
        why = later(one.why, history, one.gpus, now=self._now)
        return one if why is one.why else replace(one, why=why)


# What this process read last under each key, with its mark: those who follow one team's work do not read thousands of
# lines anew every few seconds.
at_hand: dict[str, tuple[str, Board]] = {}
HEAD, WORK = TypeAdapter(Head), TypeAdapter(Work)
STORED = TypeAdapter(tuple[str, str, list[str]])
# Another version of the portal, which knows other fields, finds nothing of this one's.
FORM = hashlib.sha256(
    json.dumps([HEAD.json_schema(), WORK.json_schema()]).encode()
).hexdigest()[:16]


def kept(known: TeamContext, *, now: datetime, make: Callable[[], Explained]) -> Board:
    """What was explained of a team's work and still holds, or else what `make` explains now, which is kept."""
    if not known.mark:
        return _board(make())
    key, mark = f"work:{known.team.pk}:{int(known.sees_all)}", f"{FORM}-{known.mark}"
    known_mark, found = at_hand.get(key, ("", None))
    if found is not None and known_mark == mark and found.holds(now):
        return found
    board = _stored(key, mark, now) or _made(key, mark, now, make)
    if key not in at_hand and len(at_hand) >= MOST_AT_HAND:
        at_hand.clear()
    at_hand[key] = mark, board
    return board


def _made(key: str, mark: str, now: datetime, make: Callable[[], Explained]) -> Board:
    """What is explained now, by this process or by another that began earlier; stored for the others."""
    making = f"{key}:{mark}"
    is_mine = _begin(making)
    if not is_mine:
        _wait_for(making)
    try:
        # Whoever was at it may have ended since this one looked.
        found = _stored(key, mark, now)
        if found is not None:
            return found
        board = _board(make())
        stored = [mark, HEAD.dump_json(board.head).decode(), board.lines]
        breaker.ask(lambda: cache.set(key, stored, timeout=SECONDS), otherwise=None)
    finally:
        if is_mine:
            breaker.ask(lambda: cache.delete(making), otherwise=False)
    return board


def _board(found: Explained) -> Board:
    head = Head(
        states=[one.state for one in found.work],
        held=sum(one.held for one in found.work),
        left_out=found.left_out,
        histories=found.histories,
        until=found.until,
    )
    return Board(
        head=head,
        lines=[
            WORK.dump_json(one, exclude_defaults=True).decode() for one in found.work
        ],
    )


def _stored(key: str, mark: str, now: datetime) -> Board | None:
    """What is stored under a key, if it was explained from what is known now and the time has not changed it."""
    stored = breaker.ask(lambda: cache.get(key), otherwise=None)
    if stored is None:
        return None
    try:
        found, told, lines = STORED.validate_python(stored)
        if found != mark:
            return None
        head = HEAD.validate_json(told)
    except ValidationError as error:
        logger.warning(
            "what was kept of a team's work cannot be read", errors=error.error_count()
        )
        return None
    board = Board(head=head, lines=lines)
    return board if board.holds(now) else None


def _begin(making: str) -> bool:
    """Whether nobody else is at it now."""
    return breaker.ask(lambda: cache.add(making, 1, timeout=MAKING), otherwise=True)


def _wait_for(making: str) -> None:
    """Wait until whoever is at it has ended, or for as long as patience lasts."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and breaker.ask(
        lambda: cache.get(making), otherwise=None
    ):
        time.sleep(PAUSE)
