"""Models of a team in the sandbox's Azure OpenAI: as they are asked for, made, and seen by its client."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from accounts.models import Team
from allocations import actions as allocations
from allocations.models import Allocation
from capacity.models import ModelAccount
from capacity.openai.reconcile import reconcile
from connectors.azure.authorization import OPENAI_USER, AzureAuthorization
from connectors.azure.cognitive_services import Account, AzureCognitiveServices
from sandbox.world import group_id
from tests.approvals import shop
from tests.capacity.connected import Time
from tests.sandbox.azure.running import GROUP, Running
from tests.scene import Scene


@dataclass
class Models:
    """A scene whose portal is connected to Azure, whose team has a group that Azure knows."""

    scene: Scene
    azure: Running
    time: Time

    def grant(
        self, thousand: int = 30, *, days: float = 3, **changes: Any
    ) -> Allocation:
        """Have so many thousand tokens a minute asked for and approved."""
        now, until = self.time(), self.time() + timedelta(days=days)
        said = {
            "model": "gpt-4o",
            "region": "eastus",
            "thousand_tokens_per_minute": thousand,
            **changes,
        }
        asked = shop.granted(self.scene, "openai", until=until, now=now, **said)
        return Allocation.objects.get(hold__request=asked)

    def work(self, rounds: int = 25) -> None:
        """Let workers do what is due, as long as something is."""
        for _ in range(rounds):
            # What was granted by the time of day is due a moment later than this clock says.
            self.time.pass_(seconds=15)
            due = list(
                ModelAccount.objects.in_azure()
                .due(self.time())
                .values_list("pk", flat=True)
            )
            for pk in due:
                reconcile(pk, now=self.time)
            for pk in allocations.not_charged_yet(self.time()):
                allocations.observe(pk, now=self.time())
            if not due:
                return

    @property
    def services(self) -> AzureCognitiveServices:
        """Azure's own client."""
        return AzureCognitiveServices(self.azure.session())

    @property
    def accounts(self) -> list[Account]:
        """The accounts that Azure has."""
        return self.services.accounts()

    @property
    def deployed(self) -> dict[str, int]:
        """Thousands of tokens a minute by deployment, of all accounts."""
        return {
            one.name: one.capacity
            for account in self.accounts
            for one in self.services.deployments(GROUP, account.name)
        }

    @property
    def callers(self) -> set[str]:
        """The groups of the sandbox's directory that may call the models of the accounts."""
        roles = AzureAuthorization(self.azure.session())
        return {
            group_id(number)
            for account in self.accounts
            for number in range(1, 10)
            for one in roles.assignments(account.id, group_id(number))
            if one.role == OPENAI_USER
        }


def models(scene: Scene, azure: Running) -> Models:
    """Nothing asked for yet."""
    Team.objects.filter(pk=scene.team.pk).update(entra_group=group_id(1))
    scene.team.refresh_from_db()
    return Models(scene, azure, Time())
