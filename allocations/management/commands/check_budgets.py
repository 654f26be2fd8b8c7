"""Adding every team's ledger up again: do the budgets hold what it says?"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Team
from allocations.budgets.balances import replay


class Command(BaseCommand):
    """One line a month that differs, and an exit status other than 0 if one does."""

    help = "Replay the ledger of every team and compare it with the budgets."

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError when a month differs."""
        months = wrong = 0
        for team in Team.objects.order_by("slug"):
            for seen in replay(team):
                months += 1
                if not seen.agrees:
                    wrong += 1
                    self.stdout.write(
                        f"{team.slug} {seen.month:%Y-%m}: the budget says {seen.held.usd} USD and "
                        f"{seen.held.gpu_hours} GPU-hours, the ledger {seen.ledger.usd} and {seen.ledger.gpu_hours}"
                    )
        if wrong:
            raise CommandError(f"{wrong} of {months} months differ from their ledger.")
        self.stdout.write(f"{months} months agree with their ledger.")
