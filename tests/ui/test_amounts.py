"""Amounts, moments and spans inside a sentence."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from scripts.packages import PACKAGES, ROOT
from ui.amounts import ahead, listed, rate, share, size

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


@pytest.mark.parametrize(
    ("usd", "words"),
    [
        ("3.67", "$3.67"),
        ("1.8", "$1.80"),
        ("0.5260", "$0.526"),
        ("0.00004", "$0.00"),
        ("1234.5678", "$1,234.5678"),
        ("6.98333333", "$6.9833"),
        ("0", "$0.00"),
    ],
)
def test_a_price_has_the_digits_that_it_is_reckoned_with(usd: str, words: str) -> None:
    assert rate(Decimal(usd)) == words


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], ""),
        (["Ada"], "Ada"),
        (["Ada", "Ben"], "Ada and Ben"),
        (["Ada", "Ben", "Lena"], "Ada, Ben and Lena"),
    ],
)
def test_names_in_a_row_are_read_as_a_sentence(names: list[str], words: str) -> None:
    assert listed(names) == words


def test_the_first_of_a_month_is_1_and_not_01_wherever_people_read_it() -> None:
    sources = [path for each in PACKAGES for path in (ROOT / each).rglob("*.py")]
    padded = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sources
        for line in path.read_text().splitlines()
        if "%d %b" in line or "%d %B" in line
    ]
    assert len(sources) > 100
    assert padded == []


@pytest.mark.parametrize(
    ("quantity", "words"),
    [
        ("100Gi", "100 GiB"),
        ("2Ti", "2 TiB"),
        ("512Mi", "512 MiB"),
        ("1G", "1G"),
        ("", ""),
    ],
)
def test_a_size_has_a_unit_that_people_know(quantity: str, words: str) -> None:
    assert size(quantity) == words


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [(1, 6, "17 %"), (902, 24, "3,758 %"), (1, 0, "–")],
)
def test_a_share_is_told_in_hundredths(part: int, whole: int, words: str) -> None:
    assert share(part, whole) == words
