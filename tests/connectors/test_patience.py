"""A call that a server just failed at is made again a few times, as long as patience lasts."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from connectors.patience import (
    FIRST_PAUSE,
    MOST_TRIES,
    Patience,
    seconds,
    seconds_until,
)


def test_each_pause_is_about_twice_the_one_before_and_there_are_three() -> None:
    patience = Patience(10.0)
    pauses = [patience.pause(tries, took=0.0) for tries in range(1, MOST_TRIES + 1)]
    assert pauses[-1] is None
    for number, pause in enumerate(pauses[:-1]):
        assert pause is not None
        assert 0.5 <= pause / (FIRST_PAUSE * 2**number) <= 1.5


def test_what_failed_calls_took_counts_over_all_of_them() -> None:
    patience = Patience(1.0)
    assert patience.pause(1, took=0.5) is not None
    assert patience.pause(1, took=0.5) is None
    assert patience.pause(1, took=0.0) is None


def test_without_patience_nothing_is_made_twice() -> None:
    assert Patience().pause(1, took=0.0) is None


@pytest.mark.parametrize(
    ("header", "answer"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        ("-3", 0.0),
        ("soon", None),
        ("1.5", 1.5),
        ("inf", None),
    ],
)
def test_retry_after_is_read_as_seconds(
    header: str | None, answer: float | None
) -> None:
    assert seconds(header) == answer


@pytest.mark.parametrize("zone", [" GMT", " -0000", " +0000"])
def test_retry_after_is_read_as_a_date(zone: str) -> None:
    later = datetime.now(UTC) + timedelta(seconds=90)
    answer = seconds(format_datetime(later, usegmt=True).replace(" GMT", zone))
    assert answer is not None
    assert 60 < answer <= 90


def test_a_moment_since_1970_is_read_as_seconds_from_now() -> None:
    answer = seconds_until(str(int(time.time()) + 90))
    assert answer is not None
    assert 60 < answer <= 90
    assert seconds_until("1700000000") == 0.0


@pytest.mark.parametrize("header", [None, "", "soon", "inf", "nan"])
def test_what_is_no_moment_is_none(header: str | None) -> None:
    assert seconds_until(header) is None
