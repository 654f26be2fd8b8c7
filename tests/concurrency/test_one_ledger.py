"""Whoever sets aside and lets go at the same moment: neither unit is overspent, and nothing is let go twice."""

from collections.abc import Callable
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import TypeVar

import pytest
from django.db import connection, transaction

from allocations.budgets import balances as budgets
from allocations.budgets.money import NOTHING, Amount
from allocations.models import Budget
from tests import factories
from tests.faults.calling import at_once
from tests.scene import NOW
from web.refusals import Conflict

T = TypeVar("T")
NOVEMBER, DECEMBER = date(2026, 11, 1), date(2026, 12, 1)
AT_ONCE = 16
HOURS, MONEY = Amount(Decimal(1), Decimal(10)), Amount(Decimal(10), Decimal(1))


def alone(action: Callable[[], T]) -> T:
    """Run in a transaction and on a connection of this thread."""
    try:
        with transaction.atomic():
            return action()
    finally:
        connection.close()


@pytest.mark.parametrize("part", [HOURS, MONEY])
def test_a_month_is_spent_to_the_last_whole_part_in_either_unit(
    transactional_db: None, part: Amount
) -> None:
    team = factories.team()
    Budget.objects.create(team=team, month=NOVEMBER, limit_usd=105, gpu_hours_limit=105)

    def take(number: int) -> bool:
        with suppress(Conflict):
            alone(
                lambda: budgets.reserve(
                    factories.hold(team), parts={NOVEMBER: part}, now=NOW
                )
            )
            return True
        return False

    got = at_once([lambda n=number: take(n) for number in range(AT_ONCE)])  # type: ignore[misc]
    row = Budget.objects.get()
    assert sum(got) == 10
    assert (row.held_usd, row.held_gpu_hours) == (10 * part.usd, 10 * part.gpu_hours)
    assert all(seen.agrees for seen in budgets.replay(team))


def test_what_many_let_go_at_once_is_let_go_once(transactional_db: None) -> None:
    team = factories.team()
    whole = Amount(Decimal(50), Decimal(20))
    with transaction.atomic():
        hold = factories.hold(team)
        budgets.reserve(hold, parts={NOVEMBER: whole, DECEMBER: whole}, now=NOW)

    def let_go() -> Amount:
        return alone(
            lambda: budgets.settle(
                hold, parts={DECEMBER: HOURS}, now=NOW, why="given back"
            )
        )

    freed = [amount for amount in at_once([let_go] * AT_ONCE) if amount != NOTHING]
    assert freed == [Amount(Decimal(99), Decimal(30))]
    assert all(seen.agrees for seen in budgets.replay(team))


def test_a_month_that_many_begin_at_once_is_begun_once(transactional_db: None) -> None:
    team = factories.team()
    hold = factories.hold(team)

    def take() -> None:
        alone(
            lambda: budgets.reserve(
                hold, parts={NOVEMBER: HOURS, DECEMBER: HOURS}, now=NOW
            )
        )

    at_once([take] * AT_ONCE)
    assert [row.held_gpu_hours for row in Budget.objects.order_by("month")] == [
        160,
        160,
    ]
