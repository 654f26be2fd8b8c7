"""Which of many a sweep looks at, where one cannot look at all of them. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

T = TypeVar("T")


def in_turn(found: Sequence[T], *, most: int, seconds: int, now: datetime) -> list[T]:
    """All that is found, or as many as one sweep looks at: the sweeps, one every so many seconds, take turns.

    What none of them can help must not keep what stands behind it from being looked at.
    """
    if len(found) <= most:
        return list(found)
    start = int(now.timestamp() / seconds) * most % len(found)
    return [*found[start:], *found[:start]][:most]
