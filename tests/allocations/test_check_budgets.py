"""The books are checked by adding the ledger up again."""

from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from allocations.models import Budget
from tests.scene import Scene


def test_books_that_agree_are_said_to(scene: Scene) -> None:
    scene.ask(2, days=20)
    said = StringIO()
    call_command("check_budgets", stdout=said)
    assert said.getvalue() == "2 months agree with their ledger.\n"


def test_a_month_that_differs_is_named(scene: Scene) -> None:
    scene.ask(2, days=3)
    Budget.objects.update(held_gpu_hours=Decimal("144.01"))
    said = StringIO()
    with pytest.raises(CommandError, match="1 of 1 months differ"):
        call_command("check_budgets", stdout=said)
    assert said.getvalue() == (
        "vision 2026-11: the budget says 144.00 USD and 144.01 GPU-hours, the ledger 144.00 and 144.00\n"
    )
