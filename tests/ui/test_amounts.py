"""Amounts, moments and spans inside a sentence."""

from datetime import UTC, datetime, timedelta

import pytest

from ui.amounts import ahead

NOW = datetime(2026, 11, 21, 9, 36, tzinfo=UTC)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (timedelta(days=6, hours=23), "7 days"),
        (timedelta(days=2, hours=23), "3 days"),
        (timedelta(hours=47, minutes=50), "2 days"),
        (timedelta(hours=2, minutes=40), "3 h"),
        (timedelta(minutes=59), "59 min"),
        (timedelta(seconds=20), "20 s"),
    ],
)
def test_what_is_nearly_a_day_away_is_a_day_away(left: timedelta, words: str) -> None:
    assert ahead(NOW + left, NOW) == words
