"""A team on a cluster with the people around it: where most stories about asking and deciding begin."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from accounts.models import Team, User
from accounts.roles import Role
from allocations.models import Budget, LedgerEntry
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import Wanted
from fleet.models import Flavor
from provisioning.models import Tenancy
from tests import factories
from tests.remembered import remembered

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
REASON = "Retrain the detector before the review."


@dataclass(frozen=True)
class Scene:
    """Ada asks; Priya and Marcus are platform leads, Elena is of engineering leadership, Mallory a stranger."""

    ada: User
    priya: User
    marcus: User
    elena: User
    mallory: User
    team: Team
    flavor: Flavor
    tenancy: Tenancy

    def wanted(
        self,
        gpus: int = 1,
        *,
        days: float = 3,
        reason: str = REASON,
        purpose: str = "training",
    ) -> Wanted:
        """An ask of the team for its cluster's GPUs."""
        return Wanted.of_gpus(
            tenancy=self.tenancy,
            flavor=Flavor.objects.select_related("cluster").get(pk=self.flavor.pk),
            gpus=gpus,
            until=NOW + timedelta(days=days),
            purpose=purpose,
            reason=reason,
        )

    def ask(self, gpus: int = 1, *, days: float = 3, now: datetime = NOW) -> Request:
        """Ada asks for GPUs."""
        return submit(self.wanted(gpus, days=days), by=self.ada, now=now)

    def held_usd(self) -> Decimal:
        """What the team has set aside over all months."""
        return sum(
            (budget.held_usd for budget in Budget.objects.filter(team=self.team)),
            Decimal(0),
        )

    def allocated(self) -> int:
        """GPUs of the flavor that are taken."""
        return Flavor.objects.get(pk=self.flavor.pk).allocated


@remembered
def scene() -> Scene:
    """24 GPUs at $1.00, nothing held yet."""
    ada = factories.person("Ada Okafor")
    team = factories.team("Vision", by=ada)
    factories.join(team, ada)
    factories.seats_read(at=NOW - DAY)
    flavor = factories.flavor(
        factories.cluster("training"), "a100", price_per_gpu_hour=Decimal("1.00")
    )
    return Scene(
        ada=ada,
        priya=factories.person("Priya Raman", Role.PLATFORM_LEAD),
        marcus=factories.person("Marcus Weber", Role.PLATFORM_LEAD),
        elena=factories.person("Elena Petrova", Role.ENGINEERING_LEADERSHIP),
        mallory=factories.person("Mallory Finch"),
        team=team,
        flavor=flavor,
        tenancy=factories.tenancy(team, flavor.cluster),
    )


def ledger(team: Team) -> dict[str, Decimal]:
    """What the ledger's rows add up to, by month."""
    totals: dict[str, Decimal] = {}
    for row in LedgerEntry.objects.filter(budget__team=team).select_related("budget"):
        month = f"{row.budget.month:%Y-%m}"
        totals[month] = totals.get(month, Decimal(0)) + row.usd
    return totals


def books(team: Team) -> dict[str, Decimal]:
    """What the budgets say is held, by month."""
    return {
        f"{budget.month:%Y-%m}": budget.held_usd
        for budget in Budget.objects.filter(team=team)
    }
