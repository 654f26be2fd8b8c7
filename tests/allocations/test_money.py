"""What GPUs cost, to the cent, whatever the clock on the wall says."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.budgets import money
from allocations.budgets.money import Amount, Left


def utc(year: int, month: int, day: int, hour: int = 0) -> datetime:
    return datetime(year, month, day, hour, tzinfo=UTC)


def same(number: int) -> Amount:
    """As many USD as GPU-hours: a dollar an hour."""
    return Amount(Decimal(number), Decimal(number))


NEW_YORK = ZoneInfo("America/New_York")
MOMENTS = st.integers(0, 12 * 366 * 86_400_000_000).map(
    lambda us: utc(2020, 1, 1) + timedelta(microseconds=us)
)
LENGTHS = st.timedeltas(timedelta(0), timedelta(days=400))
PRICES = st.decimals("0.0001", 100, places=4)
GPUS = st.integers(1, 500)


@given(GPUS, PRICES, MOMENTS, LENGTHS)
def test_the_months_add_up_to_the_cost_to_the_cent_and_to_the_gpu_hours_to_the_hundredth(
    gpus: int, price: Decimal, start: datetime, length: timedelta
) -> None:
    span = {"start": start, "end": start + length}
    parts = money.by_month(gpus=gpus, usd_per_hour=gpus * price, **span)
    whole = reduce(Amount.plus, parts.values(), money.NOTHING)
    hours = gpus * money.hours_between(**span)
    assert whole == (
        money.cost(gpus=gpus, price=price, **span),
        hours.quantize(Decimal("0.01"), ROUND_HALF_UP),
    )
    assert whole.usd == money.cost_of(usd_per_hour=gpus * price, **span)
    assert all(part.usd >= 0 and part.gpu_hours >= 0 for part in parts.values())
    assert list(parts) == sorted(parts)
    assert all(number == number.quantize(Decimal("0.01")) for number in whole)


@given(GPUS, PRICES, MOMENTS, LENGTHS)
def test_every_month_that_is_touched_has_a_part(
    gpus: int, price: Decimal, start: datetime, length: timedelta
) -> None:
    parts = money.by_month(
        gpus=gpus, usd_per_hour=price, start=start, end=start + length
    )
    if not length:
        assert parts == {}
        return
    last = start + length - timedelta(microseconds=1)
    months = (last.year - start.year) * 12 + last.month - start.month + 1
    assert len(parts) == months
    assert (next(iter(parts)), next(reversed(list(parts)))) == (
        money.month_of(start),
        money.month_of(last),
    )


@given(
    MOMENTS,
    LENGTHS,
    st.integers(-14, 14),
    st.sampled_from(["America/New_York", "Asia/Kolkata", "Europe/Berlin"]),
)
def test_a_moment_costs_the_same_in_whatever_zone_it_is_written(
    start: datetime, length: timedelta, offset: int, zone: str
) -> None:
    end = start + length
    here = money.by_month(gpus=3, usd_per_hour=Decimal("11.01"), start=start, end=end)
    whole = sum((part.usd for part in here.values()), Decimal(0))
    for where in (timezone(timedelta(hours=offset)), ZoneInfo(zone)):
        there = {"start": start.astimezone(where), "end": end.astimezone(where)}
        assert money.by_month(gpus=3, usd_per_hour=Decimal("11.01"), **there) == here
        assert money.cost(gpus=3, price=Decimal("3.67"), **there) == whole


@pytest.mark.parametrize(
    ("month", "day", "hours"), [(3, 8, 23), (11, 1, 25), (6, 1, 24)]
)
def test_a_day_on_which_clocks_change_has_its_real_hours(
    month: int, day: int, hours: int
) -> None:
    start = datetime(2026, month, day, tzinfo=NEW_YORK)
    end = datetime(2026, month, day + 1, tzinfo=NEW_YORK)
    assert money.hours_between(start, end) == hours
    part = money.part_of(
        gpus=2, usd_per_hour=Decimal(3), start=start, first=start, last=end
    )
    assert part == Amount(Decimal(3 * hours), Decimal(2 * hours))


@given(GPUS, PRICES, MOMENTS, st.lists(LENGTHS, min_size=1, max_size=6))
def test_parts_that_follow_each_other_add_up_to_the_whole(
    gpus: int, price: Decimal, start: datetime, lengths: list[timedelta]
) -> None:
    def part(first: datetime, last: datetime) -> Amount:
        rate = gpus * price
        return money.part_of(
            gpus=gpus, usd_per_hour=rate, start=start, first=first, last=last
        )

    cuts = [start, *(start + length for length in sorted(lengths))]
    parts = [part(first, last) for first, last in pairwise(cuts)]
    whole = part(start, cuts[-1])
    assert reduce(Amount.plus, parts, money.NOTHING) == whole
    assert whole.usd == money.cost_of(
        usd_per_hour=gpus * price, start=start, end=cuts[-1]
    )


@pytest.mark.parametrize(
    ("year", "hours"),
    [(2027, 28 * 24), (2028, 29 * 24), (2100, 28 * 24), (2000, 29 * 24)],
)
def test_february_has_its_days(year: int, hours: int) -> None:
    parts = money.by_month(
        gpus=1, usd_per_hour=Decimal(1), start=utc(year, 1, 31), end=utc(year, 3, 2)
    )
    assert [(month.month, *part) for month, part in parts.items()] == [
        (1, *same(24)),
        (2, *same(hours)),
        (3, *same(24)),
    ]


def test_a_part_ends_where_the_month_does() -> None:
    span = {"start": utc(2026, 11, 20, 12), "end": utc(2027, 1, 2)}
    assert money.by_month(gpus=2, usd_per_hour=Decimal("7.34"), **span) == {
        date(2026, 11, 1): Amount(Decimal("1849.68"), Decimal(504)),
        date(2026, 12, 1): Amount(Decimal("5460.96"), Decimal(1488)),
        date(2027, 1, 1): Amount(Decimal("176.16"), Decimal(48)),
    }
    assert money.cost(gpus=2, price=Decimal("3.67"), **span) == Decimal("7486.80")


def test_until_the_first_moment_of_a_month_is_not_of_that_month() -> None:
    parts = money.by_month(
        gpus=1, usd_per_hour=Decimal(1), start=utc(2026, 11, 30), end=utc(2026, 12, 1)
    )
    assert parts == {date(2026, 11, 1): same(24)}


def test_what_has_no_gpus_has_its_price_all_the_same() -> None:
    span = {"start": utc(2026, 11, 30), "end": utc(2026, 12, 2)}
    assert money.by_month(gpus=0, usd_per_hour=Decimal("0.25"), **span) == {
        date(2026, 11, 1): Amount(Decimal(6)),
        date(2026, 12, 1): Amount(Decimal(6)),
    }


def test_nothing_is_paid_for_no_time_or_less() -> None:
    now = utc(2026, 11, 20)
    for end in (now, now - timedelta(days=3)):
        assert money.cost(gpus=5, price=Decimal(3), start=now, end=end) == 0
        assert money.by_month(gpus=5, usd_per_hour=Decimal(3), start=now, end=end) == {}


@pytest.mark.parametrize(
    ("price", "usd"), [("0.0049", "0.00"), ("0.0050", "0.01"), ("0.0150", "0.02")]
)
def test_half_a_cent_is_rounded_up(price: str, usd: str) -> None:
    now = utc(2026, 11, 20)
    span = {"start": now, "end": now + timedelta(hours=1)}
    assert money.cost(gpus=1, price=Decimal(price), **span) == Decimal(usd)


def test_a_day_is_twenty_four_hours() -> None:
    assert money.per_day(gpus=2, price=Decimal("3.67")) == Decimal("176.16")


def test_the_month_of_a_moment_is_the_one_in_utc() -> None:
    assert money.month_of(datetime(2026, 11, 30, 22, tzinfo=NEW_YORK)) == date(
        2026, 12, 1
    )
    assert money.month_of(utc(2026, 12, 1)) == date(2026, 12, 1)


@pytest.mark.parametrize(
    ("gpu_hours", "then"),
    [(Decimal(5), Decimal(7)), (None, None)],
    ids=["counted in GPU-hours", "in money alone"],
)
def test_what_comes_back_is_left_again(
    gpu_hours: Decimal | None, then: Decimal | None
) -> None:
    left = Left(Decimal(10), Decimal(100), gpu_hours, gpu_hours, 80)
    more = left.and_freed(Amount(usd=Decimal(3), gpu_hours=Decimal(2)))
    assert (more.usd, more.gpu_hours) == (Decimal(13), then)
    assert (more.usd_limit, more.soft_percent) == (Decimal(100), 80)


def test_what_was_let_go_adds_to_a_budget_in_cents() -> None:
    left = Left(Decimal("100.00"), Decimal("900.00"), Decimal("40.00"))
    trifles = Amount(Decimal("840.120000000000"), Decimal("9.999999999999"))
    more = left.and_freed(trifles)
    assert (str(more.usd), str(more.gpu_hours)) == ("940.12", "50.00")


def test_months_are_counted_from_the_first_to_the_last() -> None:
    assert money.months_between(date(2026, 11, 1), date(2027, 1, 1)) == [
        date(2026, 11, 1),
        date(2026, 12, 1),
        date(2027, 1, 1),
    ]
    assert money.months_between(date(2026, 11, 1), date(2026, 11, 1)) == [
        date(2026, 11, 1)
    ]
    assert money.months_between(date(2026, 11, 1), date(2026, 10, 1)) == []
