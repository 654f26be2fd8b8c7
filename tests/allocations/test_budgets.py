"""Money is set aside once, never twice and never beyond the limit."""

from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allocations.budgets import balances as budgets
from allocations.budgets.actions import set_budget
from allocations.budgets.money import NOTHING, Amount, Left
from allocations.models import Budget, Hold, LedgerEntry
from audit.models import Event
from tests import factories
from tests.scene import NOW, Scene, books, ledger
from web.refusals import Conflict

NOVEMBER, DECEMBER, JANUARY = date(2026, 11, 1), date(2026, 12, 1), date(2027, 1, 1)


def amount(text: str) -> Amount:
    """ "100" is USD; "100+24" has 24 GPU-hours too."""
    usd, _, hours = text.partition("+")
    return Amount(Decimal(usd), Decimal(hours or 0))


def limits(row: Budget) -> tuple[Decimal, Decimal | None, int]:
    """What is set of a month."""
    return row.limit_usd, row.gpu_hours_limit, row.soft_percent


def named(scene: Scene, name: str) -> Hold:
    """The same hold for the same name."""
    return factories.hold(scene.team, ord(name))


def hold(scene: Scene, name: str, **parts: str) -> None:
    months = {"november": NOVEMBER, "december": DECEMBER, "january": JANUARY}
    amounts = {months[name]: amount(text) for name, text in parts.items()}
    budgets.reserve(named(scene, name), parts=amounts, now=NOW)


def test_holding_exactly_the_limit_is_possible_and_a_cent_more_is_not(
    scene: Scene,
) -> None:
    hold(scene, "a", november="11999.99")
    with pytest.raises(Conflict) as refused:
        hold(scene, "b", november="0.02")
    assert (
        refused.value.message
        == "November 2026 has $0.01 left of $12,000.00; this needs $0.02."
    )
    hold(scene, "b", november="0.01")
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(12_000)}


def test_letting_go_makes_what_is_held_equal_to_what_is_needed(scene: Scene) -> None:
    hold(scene, "a", november="100", december="50")
    hold(scene, "b", november="30")
    freed = budgets.settle(
        named(scene, "a"), parts={NOVEMBER: amount("40")}, now=NOW, why="given back"
    )
    assert freed == amount("110")
    assert (
        books(scene.team)
        == ledger(scene.team)
        == {"2026-11": Decimal(70), "2026-12": Decimal(0)}
    )


def test_letting_go_twice_lets_go_once_and_never_takes_more(scene: Scene) -> None:
    hold(scene, "a", november="100")
    for freed in (60, 0):
        assert (
            budgets.settle(
                named(scene, "a"), parts={NOVEMBER: amount("40")}, now=NOW, why="x"
            ).usd
            == freed
        )
    assert (
        budgets.settle(
            named(scene, "a"), parts={NOVEMBER: amount("500")}, now=NOW, why="x"
        )
        == NOTHING
    )
    assert budgets.settle(named(scene, "b"), parts={}, now=NOW, why="x") == NOTHING
    assert [row.usd for row in LedgerEntry.objects.all()] == [100, -60]


def test_a_new_month_begins_with_the_newest_limit(scene: Scene) -> None:
    first = budgets.fresh(scene.team, NOVEMBER)
    assert not Budget.objects.exists()
    assert limits(first) == (Decimal(12_000), None, 80)
    Budget.objects.create(
        team=scene.team,
        month=NOVEMBER,
        limit_usd=700,
        gpu_hours_limit=50,
        soft_percent=60,
        held_usd=9,
    )
    made = budgets.budgets_of(scene.team, [DECEMBER, NOVEMBER])
    assert [limits(made[month]) for month in (NOVEMBER, DECEMBER)] == [
        (Decimal(700), Decimal(50), 60)
    ] * 2
    assert (made[DECEMBER].held_usd, made[DECEMBER].soft_told_at) == (Decimal(0), None)


def test_a_month_begins_with_no_limit_of_one_after_it(scene: Scene) -> None:
    Budget.objects.create(team=scene.team, month=date(2062, 1, 1), limit_usd=Decimal(1))
    december = date(2026, 12, 1)
    assert budgets.fresh(scene.team, december).limit_usd > 1
    assert budgets.budgets_of(scene.team, [december])[december].limit_usd > 1


def test_each_missing_month_starts_with_the_limits_of_the_newest_one_before_it(
    scene: Scene,
) -> None:
    months = [date(2026, 10, 1), NOVEMBER, DECEMBER, JANUARY, date(2027, 2, 1)]
    for month, usd in ((NOVEMBER, 300), (JANUARY, 50_000)):
        Budget.objects.create(team=scene.team, month=month, limit_usd=usd)
    known = {row.month: row for row in Budget.objects.all()}
    expected = [12_000, 300, 300, 50_000, 50_000]
    unlocked, locked = (
        budgets.left_by_month(scene.team, months, locked=rows) for rows in (None, known)
    )
    for left in (unlocked, locked):
        assert [left[month].usd_limit for month in months] == expected
    assert budgets.fresh(scene.team, DECEMBER).limit_usd == 300
    made = budgets.budgets_of(scene.team, months)
    assert [made[month].limit_usd for month in months] == expected


def set_limit(scene: Scene, usd: int, month: date = NOVEMBER) -> None:
    set_budget(scene.team, month=month, by=scene.priya, limit_usd=Decimal(usd))


def limits_by_month(scene: Scene) -> dict[int, Decimal]:
    """The limits in USD that there are, by the number of the month."""
    rows = Budget.objects.filter(team=scene.team).order_by("month")
    return {row.month.month: row.limit_usd for row in rows}


def test_a_later_month_that_a_request_has_reached_follows_a_new_limit(
    scene: Scene,
) -> None:
    budgets.budgets_of(scene.team, [NOVEMBER, DECEMBER, JANUARY])
    set_limit(scene, 900)
    assert limits_by_month(scene) == {11: 900, 12: 900, 1: 900}
    event = Event.objects.get(kind="budget.set")
    assert event.details["followed_by"] == [
        {"month": "2026-12-01", "limit_usd_before": "12000.00"},
        {"month": "2027-01-01", "limit_usd_before": "12000.00"},
    ]


def test_the_log_says_what_changed_of_a_month_and_of_those_that_follow(
    scene: Scene,
) -> None:
    budgets.budgets_of(scene.team, [NOVEMBER, DECEMBER])
    set_budget(
        scene.team,
        month=NOVEMBER,
        by=scene.priya,
        limit_usd=Decimal(12_000),
        soft_percent=70,
        gpu_hours_limit=None,
    )
    details = Event.objects.get(kind="budget.set").details
    assert details == {
        "month": "2026-11-01",
        "soft_percent_before": "80",
        "soft_percent": "70",
        "followed_by": [{"month": "2026-12-01", "soft_percent_before": "80"}],
    }


def test_a_month_with_limits_of_its_own_keeps_them_and_so_do_those_after_it(
    scene: Scene,
) -> None:
    set_limit(scene, 500, DECEMBER)
    budgets.budgets_of(scene.team, [NOVEMBER, JANUARY])
    set_limit(scene, 900)
    assert limits_by_month(scene) == {11: 900, 12: 500, 1: 500}


def test_a_later_month_keeps_its_limit_where_more_is_set_aside(scene: Scene) -> None:
    set_limit(scene, 1000)
    budgets.budgets_of(scene.team, [DECEMBER, JANUARY])
    Budget.objects.filter(month=DECEMBER).update(held_usd=800)
    set_limit(scene, 700)
    assert limits_by_month(scene) == {11: 700, 12: 1000, 1: 1000}


def test_looking_at_what_is_left_is_one_query_that_writes_nothing(
    scene: Scene, django_assert_num_queries: Any
) -> None:
    hold(scene, "a", november="100+24")
    with django_assert_num_queries(1):
        left = budgets.left_by_month(scene.team, [NOVEMBER, JANUARY])
    full = Decimal(12_000)
    assert left == {NOVEMBER: Left(Decimal(11_900), full), JANUARY: Left(full, full)}
    assert list(Budget.objects.values_list("month", flat=True)) == [NOVEMBER]


def test_what_a_request_has_set_aside_itself_counts_as_left_to_it(scene: Scene) -> None:
    limit_hours(scene, 100, soft_percent=70)
    hold(scene, "a", november="100+24")
    hold(scene, "b", november="50+6")
    assert budgets.left_by_month(
        scene.team, [NOVEMBER, DECEMBER], own=named(scene, "a").pk
    ) == {
        NOVEMBER: Left(Decimal(11_950), Decimal(12_000), Decimal(94), Decimal(100), 70),
        DECEMBER: Left(
            Decimal(12_000), Decimal(12_000), Decimal(100), Decimal(100), 70
        ),
    }


def limit_hours(scene: Scene, gpu_hours: int, **fields: Any) -> Budget:
    return Budget.objects.create(
        team=scene.team,
        month=NOVEMBER,
        **{"limit_usd": 12_000, "gpu_hours_limit": gpu_hours} | fields,
    )


def test_gpu_hours_have_a_limit_of_their_own(scene: Scene) -> None:
    limit_hours(scene, 500)
    hold(scene, "a", november="1+499.5")
    with pytest.raises(Conflict) as refused, transaction.atomic():
        hold(scene, "b", november="1+1")
    assert refused.value.code == "gpu_hours_too_few"
    assert (
        refused.value.message
        == "November 2026 has 0.5 GPU-hours left of 500 GPU-hours; this needs 1 GPU-hour."
    )
    hold(scene, "b", november="1+0.5")
    assert Budget.objects.get().left_gpu_hours == 0


def test_where_both_run_out_the_money_is_named(scene: Scene) -> None:
    limit_hours(scene, 10, limit_usd=10)
    with pytest.raises(Conflict) as refused:
        hold(scene, "a", november="11+11")
    assert refused.value.code == "budget_too_small"


def test_hours_and_money_are_let_go_each_by_itself(scene: Scene) -> None:
    hold(scene, "a", november="100+24", december="10+2")
    needed = {NOVEMBER: amount("100+20"), DECEMBER: amount("4+5")}
    assert budgets.settle(
        named(scene, "a"), parts=needed, now=NOW, why="given back"
    ) == amount("6+4")
    rows = [
        Amount(row.held_usd, row.held_gpu_hours)
        for row in Budget.objects.order_by("month")
    ]
    assert rows == [amount("100+20"), amount("4+2")]
    assert all(month.agrees for month in budgets.replay(scene.team))


def test_setting_nothing_aside_leaves_no_line_in_the_ledger(scene: Scene) -> None:
    hold(scene, "a", november="0")
    assert not LedgerEntry.objects.exists()


NAMES = st.sampled_from(["a", "b", "c"])
MONTHS = st.dictionaries(
    st.sampled_from([NOVEMBER, DECEMBER, JANUARY]),
    st.builds(Amount, st.decimals(0, 400, places=2), st.decimals(0, 60, places=2)),
    max_size=3,
)
STEPS = st.lists(st.tuples(st.booleans(), NAMES, MONTHS), max_size=12)


@pytest.mark.slow
@given(steps=STEPS)
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_whatever_happens_the_ledger_adds_up_to_the_budgets_and_no_limit_is_passed(
    scene: Scene, steps: list[tuple[bool, str, dict[date, Amount]]]
) -> None:
    point = transaction.savepoint()
    limit_hours(scene, 100, limit_usd=700)
    for sets_aside, name, parts in steps:
        with suppress(Conflict), transaction.atomic():
            if sets_aside:
                budgets.reserve(named(scene, name), parts=parts, now=NOW)
            else:
                budgets.settle(
                    named(scene, name), parts=parts, now=NOW, why="given back"
                )
    assert all(month.agrees for month in budgets.replay(scene.team))
    assert all(
        row.left_usd >= 0 and (row.left_gpu_hours or 0) >= 0
        for row in Budget.objects.all()
    )
    transaction.savepoint_rollback(point)


def test_a_budget_is_close_from_its_soft_stage_on_in_either_unit(scene: Scene) -> None:
    row = limit_hours(scene, 10, limit_usd=1000, soft_percent=75)
    for usd, hours, close in [
        ("749.99", "7.49", False),
        ("750", "0", True),
        ("1", "7.5", True),
        ("0", "0", False),
    ]:
        row.held_usd, row.held_gpu_hours = Decimal(usd), Decimal(hours)
        row.save()
        assert row.is_close is close
        assert Budget.objects.close().exists() is close


def test_a_month_without_any_money_is_not_close(scene: Scene) -> None:
    row = limit_hours(scene, 0, limit_usd=0)
    assert not row.is_close
    assert not Budget.objects.close().exists()
