"""Where a month leads, told from what is held: pure numbers, then words."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.budgets.pacing import Course, Holding, Pace, pace, pace_words
from tests.scene import DAY, HOUR, NOW

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
LEFT = 252  # hours from NOW, noon of the 20th, to the end of November


def holding(
    start: datetime = NOW - DAY,
    end: datetime = NOW + DAY,
    *,
    gpus: int = 2,
    usd: str = "10",
) -> Holding:
    return Holding(gpus=gpus, usd_per_hour=Decimal(usd), start=start, end=end)


def paced(
    *rows: Holding, limit: str = "12000", hours: str | None = None, now: datetime = NOW
) -> Pace:
    return pace(
        rows,
        usd_limit=Decimal(limit),
        gpu_hours_limit=None if hours is None else Decimal(hours),
        now=now,
    )


def test_a_month_without_holdings_costs_nothing_and_lasts() -> None:
    seen = paced()
    assert seen.usd == Course(Decimal(12_000), Decimal(0), Decimal(0), Decimal(0), None)
    assert seen.gpu_hours is None
    assert seen.percent_gone == 65


def test_what_ends_on_its_date_and_what_goes_on_are_told_apart() -> None:
    course = paced(holding()).usd
    assert [course.spent, course.held_to_end, course.at_pace] == [
        240,
        480,
        240 + 10 * LEFT,
    ]
    assert course.used_up is None


def test_the_day_on_which_todays_rate_uses_the_budget_up_is_named() -> None:
    course = paced(holding(), limit="1200").usd
    assert course.used_up == NOW + 96 * HOUR
    assert (
        pace_words(course, now=NOW)
        == "At this pace the budget is used up on Tue 24 Nov, if everything held now goes on."
    )


def test_what_lasts_says_where_the_month_ends() -> None:
    course = paced(holding(usd="31.1904761905")).usd
    assert (
        pace_words(course, now=NOW)
        == "At this pace the month ends at $8,609 of $12,000, if everything held now goes on."
    )


def test_gpu_hours_have_their_own_course() -> None:
    course = paced(holding(), hours="100").gpu_hours
    assert course is not None
    assert [course.spent, course.at_pace] == [48, 48 + 2 * LEFT]
    assert course.used_up == NOW + 26 * HOUR
    assert pace_words(course, now=NOW, unit="h") == (
        "At this pace the allowance of GPU-hours is used up on Sat 21 Nov, if everything held now goes on."
    )
    lasting = paced(holding(), hours="1000").gpu_hours
    assert lasting is not None
    assert pace_words(lasting, now=NOW, unit="h") == (
        "At this pace the month ends at 552 of 1,000 GPU-hours, if everything held now goes on."
    )


def test_other_months_do_not_count() -> None:
    course = paced(
        holding(START - 5 * DAY, START + DAY), holding(NOW + DAY, END + 9 * DAY)
    ).usd
    assert [course.spent, course.at_pace] == [240, 240]
    assert course.held_to_end == 240 + 10 * (LEFT - 24)


def test_what_is_spent_to_the_last_cent_is_used_up_now_while_something_is_held() -> (
    None
):
    assert paced(holding(), limit="240").usd.used_up == NOW
    assert paced(holding(NOW - DAY, NOW), limit="240").usd.used_up is None


MOMENTS = st.integers(-40, 40).map(lambda days: NOW + days * DAY)
ROWS = st.lists(
    st.builds(
        lambda start, length, gpus, usd: Holding(gpus, usd, start, start + length),
        MOMENTS,
        st.timedeltas(timedelta(hours=1), timedelta(days=60)),
        st.integers(0, 16),
        st.decimals("0.01", 80, places=2),
    ),
    max_size=5,
)


@given(ROWS, st.decimals(0, 20_000, places=2))
def test_the_numbers_never_contradict_each_other(
    rows: list[Holding], limit: Decimal
) -> None:
    course = paced(*rows, limit=str(limit)).usd
    assert 0 <= course.spent <= course.at_pace
    assert course.spent <= course.held_to_end
    assert (course.used_up is None) is (course.at_pace <= limit)
    assert course.used_up is None or NOW <= course.used_up <= END


@pytest.mark.parametrize(
    ("now", "percent"), [(START, 0), (END - HOUR, 99), (START + 15 * DAY, 50)]
)
def test_the_share_of_the_month_that_is_gone(now: datetime, percent: int) -> None:
    assert paced(now=now).percent_gone == percent
