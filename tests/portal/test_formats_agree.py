"""One amount, one length and one moment are written the same by whoever writes them."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.rules import Rule
from portal.templatetags import words as filters
from ui import amounts as words
from ui import formats


@given(st.decimals(-2_000_000, 2_000_000, places=2))
def test_an_amount_is_one_figure_everywhere(amount: Decimal) -> None:
    said = words.usd(amount)
    assert formats.dollars(amount) == filters.usd(amount) == said
    assert Rule("money", True, amount, Decimal(1)).text == f"{said} in all"


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("12.50", "$13"),
        ("1234.50", "$1,235"),
        ("-4", "−$4"),
        ("3.67", "$3.67"),
        ("0", "$0"),
    ],
)
def test_half_is_rounded_up_and_the_sign_stands_in_front(
    amount: str, said: str
) -> None:
    assert words.usd(Decimal(amount)) == said


@given(st.timedeltas(timedelta(0), timedelta(days=400)))
def test_a_length_is_one_word_everywhere(length: timedelta) -> None:
    assert words.span(length) == formats.span(length) == filters.span(length)


def test_moments_are_in_utc_everywhere() -> None:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    at = datetime(2026, 11, 28, 20, tzinfo=timezone(timedelta(hours=2)))
    assert words.moment(at, now) == formats.moment(at, now) == "Sat 28 Nov, 18:00 UTC"
