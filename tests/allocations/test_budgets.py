"""Money is set aside once, never twice and never beyond the limit."""

from datetime import date
from decimal import Decimal

import pytest

from accounts.refusals import Conflict
from allocations import budgets
from allocations.models import Budget, Hold
from tests.scene import NOW, Scene, books, ledger

NOVEMBER, DECEMBER, JANUARY = date(2026, 11, 1), date(2026, 12, 1), date(2027, 1, 1)


def hold(scene: Scene, reference: str, **parts: str) -> None:
    months = {"november": NOVEMBER, "december": DECEMBER, "january": JANUARY}
    amounts = {months[name]: Decimal(usd) for name, usd in parts.items()}
    budgets.hold(scene.team, reference=reference, parts=amounts, now=NOW)


def test_holding_exactly_the_limit_is_possible_and_a_cent_more_is_not(scene: Scene) -> None:
    hold(scene, "a", november="11999.99")
    with pytest.raises(Conflict) as refused:
        hold(scene, "b", november="0.02")
    assert refused.value.message == "November 2026 has $0.01 left of $12,000.00; this needs $0.02."
    hold(scene, "b", november="0.01")
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(12_000)}


def test_letting_go_makes_what_is_held_equal_to_what_is_needed(scene: Scene) -> None:
    hold(scene, "a", november="100", december="50")
    hold(scene, "b", november="30")
    freed = budgets.settle(reference="a", parts={NOVEMBER: Decimal(40)}, now=NOW, why="given back")
    assert freed == 110
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(70), "2026-12": Decimal(0)}


def test_letting_go_twice_lets_go_once_and_never_takes_more(scene: Scene) -> None:
    hold(scene, "a", november="100")
    for freed in (60, 0):
        assert budgets.settle(reference="a", parts={NOVEMBER: Decimal(40)}, now=NOW, why="x") == freed
    assert budgets.settle(reference="a", parts={NOVEMBER: Decimal(500)}, now=NOW, why="x") == 0
    assert budgets.settle(reference="unknown", parts={}, now=NOW, why="x") == 0
    assert [row.usd for row in Hold.objects.all()] == [100, -60]


def test_a_new_month_begins_with_the_newest_limit(scene: Scene) -> None:
    assert budgets.last_limit(scene.team) == 12_000
    Budget.objects.create(team=scene.team, month=NOVEMBER, limit_usd=700)
    made = budgets.budgets_of(scene.team, [DECEMBER, NOVEMBER])
    assert {month: budget.limit_usd for month, budget in made.items()} == {NOVEMBER: 700, DECEMBER: 700}


def test_looking_at_what_is_left_writes_nothing(scene: Scene) -> None:
    hold(scene, "a", november="100")
    left = budgets.left_by_month(scene.team, [NOVEMBER, JANUARY])
    full = Decimal(12_000)
    assert left == {NOVEMBER: (Decimal(11_900), full), JANUARY: (full, full)}
    assert list(Budget.objects.values_list("month", flat=True)) == [NOVEMBER]
