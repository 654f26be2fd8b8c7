"""B22 counts whole lines, however the network cut them, and a follower that missed one is not whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from bench import following


class Answer:
    """An answer that comes in these parts."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts)

    def read1(self, _size: int) -> bytes:
        return self.parts.pop(0) if self.parts else b""


def test_an_event_that_is_cut_in_two_is_counted_once() -> None:
    text = b"id: a.0\ndata: one\n\nid: b.0\ndata: two\n\nevent: missed\ndata: 3\n\n"
    for at in range(len(text)):
        answer = cast(Any, Answer(text[:at], text[at:]) if at else Answer(text))
        counted = [following.counted(part) for part in following.events(answer)]
        assert (
            sum(lines for lines, _, _ in counted),
            sum(missed for _, missed, _ in counted),
        ) == (2, 1)


def test_a_pace_is_measured_behind_the_old_lines_and_needs_a_log_that_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "SECONDS", 0.0)

    @contextmanager
    def opened(*parts: following.Part) -> Iterator[Iterator[following.Part]]:
        yield iter(parts)

    old, new = (following.FIRST, 0, b""), (70, 1, b"")
    found = following.rate(lambda: opened(old, new, new))
    assert (found.lines, found.missed) == (70, 1)
    assert found.lines_per_second > 0
    with pytest.raises(RuntimeError, match="ended before"):
        following.rate(lambda: opened(old))


def test_a_follower_is_whole_when_no_line_is_missing_between_its_first_and_last() -> (
    None
):
    given = (("0123", True), ("124", True), ("12", False))
    readings = [
        following.Reading(places=[one.encode() for one in places], is_enough=is_enough)
        for places, is_enough in given
    ]
    assert [one.is_whole for one in following.compared(readings)] == [
        True,
        False,
        False,
    ]
