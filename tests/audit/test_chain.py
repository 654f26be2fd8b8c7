"""Anybody can tell from the rows alone whether the log is whole."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.chain import GENESIS, Checkpoint, Link, Verdict, digest, verify

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
BODIES = st.lists(
    st.dictionaries(st.text(max_size=8), JSON, max_size=3), min_size=1, max_size=8
)


def chained(bodies: Sequence[dict[str, Any]]) -> list[Link]:
    links, previous = [], GENESIS
    for seq, body in enumerate(bodies, start=1):
        links.append(
            Link(seq, body, previous, digest(seq=seq, body=body, previous=previous))
        )
        previous = links[-1].hash
    return links


FIVE = chained([{"kind": "test", "n": n} for n in range(5)])


def test_a_whole_chain_holds() -> None:
    assert verify(FIVE) == Verdict(5, None, "5 events, unbroken.")
    assert verify([]) == Verdict(0, None, "0 events, unbroken.")


def test_a_chain_holds_with_what_is_known_of_it() -> None:
    assert (
        verify(
            FIVE, known=[Checkpoint(link.seq, link.hash) for link in FIVE[1:]]
        ).broken_at
        is None
    )


@pytest.mark.parametrize("left", range(5))
def test_newest_events_that_were_cut_off_are_missed_by_who_knows_the_newest(
    left: int,
) -> None:
    verdict = verify(
        FIVE[:left], known=[Checkpoint(5, FIVE[4].hash), Checkpoint(1, FIVE[0].hash)]
    )
    assert (verdict.checked, verdict.broken_at) == (left, left + 1)
    assert "missing" in verdict.reason


def test_a_log_that_was_rewritten_whole_differs_from_what_is_known() -> None:
    rewritten = chained([{"kind": "test", "n": n * 2} for n in range(5)])
    assert verify(rewritten).broken_at is None
    assert verify(rewritten, known=[Checkpoint(3, FIVE[2].hash)]).broken_at == 3


def test_a_part_of_it_holds_from_where_one_knows_it() -> None:
    assert verify(FIVE[2:], after=2, previous=FIVE[1].hash).broken_at is None


@pytest.mark.parametrize("missing", range(4))
def test_it_names_the_event_that_is_missing(missing: int) -> None:
    rest = [*FIVE[:missing], *FIVE[missing + 1 :]]
    assert verify(rest) == Verdict(
        missing, missing + 1, f"Event {missing + 1} is missing."
    )


@pytest.mark.parametrize("place", range(5))
def test_it_names_the_event_that_was_changed(place: int) -> None:
    links = [*FIVE]
    links[place] = replace(links[place], body={"kind": "test", "n": 99})
    wanted = f"Event {place + 1} was changed after it was written."
    assert verify(links) == Verdict(place, place + 1, wanted)


def test_a_changed_event_with_a_new_hash_breaks_the_one_after_it() -> None:
    body = {"kind": "test", "n": 99}
    links = [*FIVE]
    links[1] = replace(
        links[1], body=body, hash=digest(seq=2, body=body, previous=links[1].previous)
    )
    assert verify(links) == Verdict(2, 3, "Event 3 does not follow event 2.")


def test_it_sees_that_events_were_swapped() -> None:
    one, two, three, *_ = FIVE
    assert verify([two, one, three]).broken_at == 1
    swapped = [replace(two, seq=1), replace(one, seq=2), three]
    assert verify(swapped) == Verdict(0, 1, "Event 1 does not follow event 0.")


def test_it_sees_an_event_that_stands_there_twice() -> None:
    assert verify([FIVE[0], FIVE[0]]).broken_at == 2


@pytest.mark.slow
@given(BODIES, st.data())
def test_no_change_of_a_body_goes_unseen(
    bodies: list[dict[str, Any]], data: st.DataObject
) -> None:
    links = chained(bodies)
    assert verify(links).broken_at is None
    place = data.draw(st.integers(0, len(links) - 1))
    links[place] = replace(links[place], body={**links[place].body, "added": 1})
    if bodies[place] != links[place].body:
        assert verify(links).broken_at == place + 1


def test_the_order_of_the_keys_does_not_matter() -> None:
    one = digest(seq=1, body={"a": 1, "b": 2}, previous=GENESIS)
    assert one == digest(seq=1, body={"b": 2, "a": 1}, previous=GENESIS)
