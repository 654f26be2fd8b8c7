"""How long GPUs were in use, and what that costs."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.prices import cost_while, time_in_use

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("since", "length"),
    [
        pytest.param(None, 60, id="it runs no more"),
        pytest.param(NOW - timedelta(seconds=30), 90, id="it runs"),
        pytest.param(NOW + timedelta(seconds=30), 60, id="another clock goes ahead"),
    ],
)
def test_earlier_times_count_with_the_one_that_goes_on(
    since: datetime | None, length: int
) -> None:
    assert time_in_use(60, since=since, now=NOW) == timedelta(seconds=length)


def test_a_time_costs_what_an_hour_costs_in_proportion() -> None:
    rate = Decimal("7.20")
    assert cost_while(timedelta(minutes=15), usd_per_hour=rate) == Decimal("1.80")
    assert cost_while(timedelta(0), usd_per_hour=rate) == 0
