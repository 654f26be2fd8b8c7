"""Which notebooks the GPUs of a place carry, and until when."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from allocations.ends.carrying import Held, Need, Uncarried, first_uncarried
from tests.scene import DAY, HOUR, NOW

MINUTE = timedelta(minutes=1)


def held(
    gpus: int,
    ends: datetime | None,
    *,
    starts: datetime = NOW - DAY,
    notebook: int | None = None,
) -> Held:
    """GPUs by an allocation whose number is that of the GPUs."""
    return Held(allocation=gpus, gpus=gpus, starts=starts, ends=ends, notebook=notebook)


def uncarried(
    needs: list[int], *those: Held, borrow_percent: int = 0
) -> Mapping[int, Uncarried]:
    """For servers numbered from 1, that take so many GPUs, in the order of their launch."""
    named = [
        Need(notebook=number, gpus=gpus) for number, gpus in enumerate(needs, start=1)
    ]
    return first_uncarried(named, those, borrow_percent=borrow_percent, now=NOW)


def test_one_ends_with_the_gpus_whose_rest_is_too_few() -> None:
    first, second, third = NOW + HOUR, NOW + DAY, NOW + 2 * DAY
    those = (held(4, first), held(1, third), held(2, second))
    found = [uncarried([gpus], *those)[1] for gpus in (1, 2, 3, 4, 7)]
    assert [(one.at, one.allocation) for one in found] == [
        (third, 1),
        (second, 2),
        (second, 2),
        (first, 4),
        (first, 4),
    ]


def test_one_with_more_than_there_are_is_carried_by_none() -> None:
    assert uncarried([2], held(1, NOW + DAY)) == {1: Uncarried(NOW, None)}
    assert uncarried([1]) == {1: Uncarried(NOW, None)}


def test_what_was_launched_last_ends_first_and_a_small_one_stays_where_a_large_one_does_not() -> (
    None
):
    found = uncarried([1, 2, 1], held(2, None), held(3, NOW + HOUR))
    assert found == {2: Uncarried(NOW + HOUR, 3)}


def test_an_end_that_is_not_known_is_none() -> None:
    assert uncarried([2], held(2, None)) == {}


def test_a_booking_that_begins_at_the_end_carries_it_on_and_a_later_one_does_not() -> (
    None
):
    ends = NOW + HOUR
    before = held(2, ends)
    assert uncarried([2], before, held(3, ends + DAY, starts=ends)) == {
        1: Uncarried(ends + DAY, 3)
    }
    assert uncarried([2], before, held(3, ends + DAY, starts=ends + MINUTE)) == {
        1: Uncarried(ends, 2)
    }


def test_one_that_waits_takes_none_and_ends_when_they_will_never_be_enough() -> None:
    waits = Need(notebook=9, gpus=2, waits=True)
    those = [held(2, NOW + HOUR), held(1, NOW + DAY)]
    needs = [waits, Need(notebook=1, gpus=3)]
    assert first_uncarried(needs, those, borrow_percent=0, now=NOW) == {
        1: Uncarried(NOW + HOUR, 2),
        9: Uncarried(NOW + HOUR, 2),
    }


def test_what_may_be_borrowed_carries_too() -> None:
    assert uncarried([3], held(2, NOW + HOUR), borrow_percent=50) == {
        1: Uncarried(NOW + HOUR, 2)
    }


def test_gpus_that_were_asked_for_with_a_notebook_carry_it_first_and_it_ends_with_them() -> (
    None
):
    own = held(2, NOW + HOUR, notebook=1)
    assert uncarried([2, 1], own) == {
        1: Uncarried(NOW + HOUR, 2),
        2: Uncarried(NOW, None),
    }
    assert uncarried([2], own, held(8, NOW + DAY)) == {1: Uncarried(NOW + HOUR, 2)}
    # What it takes beyond them, and what may be borrowed on all of it, is shared.
    assert uncarried([4], own, held(3, NOW + DAY)) == {1: Uncarried(NOW + HOUR, 2)}
    found = uncarried([2, 2, 2], own, held(3, NOW + DAY), borrow_percent=50)
    assert found == {
        1: Uncarried(NOW + HOUR, 2),
        3: Uncarried(NOW + DAY, 3),
        2: Uncarried(NOW + DAY, 3),
    }
    # Of one that does not run they are the team's.
    other = held(2, NOW + HOUR, notebook=9)
    assert uncarried([2], other) == {1: Uncarried(NOW + HOUR, 2)}


def test_two_ends_at_once_leave_what_neither_has() -> None:
    ends = NOW + HOUR
    assert uncarried(
        [1, 1, 1], held(1, ends), held(2, ends), held(4, NOW + DAY, starts=NOW)
    ) == {one: Uncarried(NOW + DAY, 4) for one in (1, 2, 3)}
