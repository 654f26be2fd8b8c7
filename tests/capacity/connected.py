"""The portal connected to the sandbox's Azure, with one of its clusters, and people who reserve there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from pydantic import SecretStr

from allocations import actions as allocations
from allocations.models import Allocation
from capacity import connection
from capacity.models import Reservation, Subscription
from capacity.reservations.reconcile import Names, reconcile
from capacity.subscriptions import observing
from connectors.azure.compute import AzureCompute
from connectors.azure.container_service import AzureContainerService
from fleet.models import Flavor
from tests import factories
from tests.approvals import shop
from tests.remembered import remembered
from tests.sandbox.azure.running import GROUP, HERE, SUBSCRIPTION, Running
from tests.scene import NOW, Scene, scene

EASTUS = f"{HERE}/resourceGroups/{GROUP}/providers/Microsoft.ContainerService/managedClusters/dev-eastus"
T4, A100 = "Standard_NC4as_T4_v3", "Standard_NC24ads_A100_v4"


@contextmanager
def connected(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the portal call this Azure, as its settings would."""
    given = azure.settings
    values: dict[str, Any] = {
        "azure_subscription_id": SUBSCRIPTION,
        "azure_resource_group": GROUP,
        "azure_tenant_id": given.tenant_id,
        "azure_client_id": given.client_id,
        "azure_credential": given.credential,
        "azure_arm_url": given.arm_url,
        "azure_authority": given.authority,
        "azure_prices_url": azure.azure.base,
        "ca_file": azure.ca,
    }
    for name, value in values.items():
        monkeypatch.setattr(settings.ENV, name, value)
    monkeypatch.setattr(
        settings.ENV, "azure_client_secret", SecretStr(given.client_secret)
    )
    connection.forget()
    yield
    connection.forget()


@dataclass
class Time:
    """A clock that a test sets forward."""

    at: datetime = NOW

    def __call__(self) -> datetime:
        return self.at

    def pass_(self, **length: float) -> datetime:
        """Let time go by."""
        self.at += timedelta(**length)
        return self.at


@dataclass
class Site:
    """A scene whose portal is connected to Azure: how its people ask, how workers go on, and what Azure has then."""

    scene: Scene
    azure: Running
    time: Time
    flavor: Flavor

    def grant(
        self, instances: int = 1, *, days: float = 3, **changes: Any
    ) -> Allocation:
        """Have so many machines asked for and approved."""
        now, until = self.time(), self.time() + timedelta(days=days)
        asked = shop.granted(
            self.scene,
            "reservation",
            instances=instances,
            until=until,
            now=now,
            **changes,
        )
        return Allocation.objects.get(hold__request=asked)

    def work(self, rounds: int = 20) -> None:
        """Let workers do what is due, as long as something is."""
        for _ in range(rounds):
            due = list(
                Reservation.objects.in_azure()
                .due(self.time())
                .values_list("pk", flat=True)
            )
            for pk in due:
                reconcile(pk, now=self.time)
            for pk in allocations.not_charged_yet(self.time()):
                allocations.observe(pk, now=self.time())
            self.time.pass_(seconds=15)
            if not due:
                return

    def in_azure(self) -> dict[str, int]:
        """Machines by the name of the portal's reservation, as Azure's own client sees them."""
        compute = AzureCompute(self.azure.session())
        return {
            f"{group.name}/{one.name}": one.held
            for group in compute.groups(GROUP)
            if group.name.startswith("qm-")
            for one in compute.reservations(GROUP, group.name)
        }

    def in_books(self) -> dict[str, int]:
        """The same as the portal has it."""
        rows = Reservation.objects.filter(state="reserved").select_related("team")
        return {
            f"{(names := Names.of(row)).group}/{names.reservation}": row.machines
            for row in rows
        }

    @property
    def pools(self) -> dict[str, int]:
        """The portal's pools with how far each grows."""
        found = AzureContainerService(self.azure.session()).pools(GROUP, "dev-eastus")
        return {one.name: one.limit for one in found if one.name.startswith("qm")}


def site(azure: Running) -> Site:
    """A site whose subscription has been read, with a cluster of the sandbox's and its kind of GPU."""
    scene, flavor = _read()
    # What the reading left in this process, which only the first one does.
    connection.forget()
    azure.azure.asked.clear()
    return Site(scene, azure, Time(), flavor)


@remembered
def _read() -> tuple[Scene, Flavor]:
    """The scene and the kind of GPU, with all that was read from Azure in its first state."""
    made = scene()
    cluster = factories.cluster("dev-eastus", region="eastus", azure_id=EASTUS)
    flavor = factories.flavor(
        cluster,
        "t4",
        gpus_per_node=1,
        node_labels={"qm.example/t4": "yes"},
        price_per_gpu_hour=Decimal("0.53"),
    )
    now = Time()
    observing.keep_known(now=now())
    observing.observe(SUBSCRIPTION, now=now)
    assert Subscription.objects.get().reachable
    return made, Flavor.objects.select_related("cluster").get(pk=flavor.pk)
