"""Waits grow with each failed try, up to a longest one, and never beyond what anybody would wait for."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciling.backoff import LONGEST_ASKED, Backoff

SECOND = timedelta(seconds=1)
BACKOFF = Backoff(2 * SECOND, 60 * SECOND)
TRIPLED = Backoff(30 * SECOND, timedelta(hours=1), factor=3)


@pytest.mark.parametrize(
    ("backoff", "seconds"),
    [
        (BACKOFF, [2, 4, 8, 16, 32, 60, 60]),
        (TRIPLED, [30, 90, 270, 810, 2430, 3600, 3600]),
    ],
)
def test_each_wait_is_a_factor_longer_up_to_the_longest(
    backoff: Backoff, seconds: list[int]
) -> None:
    assert [backoff.wait(attempts) / SECOND for attempts in range(1, 8)] == seconds


def test_before_any_try_has_failed_the_wait_is_the_first() -> None:
    assert BACKOFF.wait(0) == BACKOFF.first


@pytest.mark.parametrize("backoff", [BACKOFF, TRIPLED])
def test_after_a_million_tries_it_is_still_the_longest(backoff: Backoff) -> None:
    assert backoff.wait(1_000_000) == backoff.longest


@given(attempts=st.integers(0, 100), chance=st.floats(0, 1, exclude_max=True))
def test_chance_takes_half_of_a_wait_away_at_most(attempts: int, chance: float) -> None:
    whole = BACKOFF.wait(attempts)

    assert whole / 2 <= BACKOFF.wait(attempts, chance=chance) <= whole


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        (None, 2 * SECOND),
        (1.0, 2 * SECOND),
        (90.0, 90 * SECOND),
        (1e300, LONGEST_ASKED),
    ],
)
def test_a_server_that_asks_for_more_time_gets_it_up_to_six_hours(
    asked: float | None, wait: timedelta
) -> None:
    assert BACKOFF.wait(1, retry_after=asked) == wait
