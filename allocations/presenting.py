"""What giving GPUs or reserved machines back does, as pages and API show it before."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, TypedDict

from django.db.models import Sum

from allocations.budgets import money
from allocations.ends.notebooks import RUNS
from allocations.models import Allocation
from allocations.notices import fate_at
from capacity.models import Reservation
from notebooks.servers.models import NotebookServer
from ui.amounts import gpus, machines, moment, usd
from ui.parts import BeforeAfter


class Unit(StrEnum):
    """What goes back."""

    GPU = "gpu"
    MACHINE = "machine"


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What giving back changes: how many go and stay until when, what is held before it, and which USD it frees.

    `held` are the team's GPUs of this kind in the namespace, or all machines of the reservation; `usd_per_day` is of
    all that the team holds. `in_use` says what becomes of work, empty where nobody has looked. `stops` is the notebook
    that was granted with all of it, which is stopped at once. `renewal` is the number of a request that would keep it
    longer, and waits.
    """

    unit: ClassVar[Unit]
    count: int
    stays: int
    until: datetime
    held: int
    usd_per_day: Decimal
    usd_per_day_less: Decimal
    freed_usd: Decimal
    in_use: str = ""
    stops: NotebookServer | None = None
    renewal: int | None = None

    @property
    def held_after(self) -> int:
        """GPUs that the team may still use, or machines that stay reserved."""
        return self.held - self.count

    @property
    def usd_per_day_after(self) -> Decimal:
        """What is held costs a day from then on."""
        return self.usd_per_day - self.usd_per_day_less


@dataclass(frozen=True, kw_only=True)
class GpusEffect(Effect):
    """What giving back GPUs of a pool changes."""

    unit = Unit.GPU
    product: str

    @property
    def changes(self) -> list[BeforeAfter]:
        """Quota and cost as the page compares them."""
        return [
            {
                "label": f"Quota, {self.product}",
                "before": gpus(self.held),
                "after": gpus(self.held_after),
            },
            {
                "label": "Cost a day",
                "before": usd(self.usd_per_day),
                "after": usd(self.usd_per_day_after),
            },
        ]

    @property
    def rest(self) -> str:
        """What stays in words; empty for nothing."""
        return gpus(self.stays, self.product) if self.stays else ""

    @property
    def button(self) -> str:
        """The verb with its number."""
        return f"Give back {gpus(self.count, self.product)}"


@dataclass(frozen=True, kw_only=True)
class MachinesEffect(Effect):
    """What giving back machines of a capacity reservation changes, with what the whole of it is before."""

    unit = Unit.MACHINE
    usd_per_hour: Decimal
    usd_per_hour_less: Decimal

    @property
    def changes(self) -> list[BeforeAfter]:
        """Machines and cost as the page compares them."""
        return [
            {
                "label": "Machines reserved",
                "before": str(self.held),
                "after": str(self.held_after),
            },
            {
                "label": "Cost an hour",
                "before": usd(self.usd_per_hour),
                "after": usd(self.usd_per_hour - self.usd_per_hour_less),
            },
        ]

    @property
    def rest(self) -> str:
        """What stays of the grant in words; empty for nothing."""
        return machines(self.stays) if self.stays else ""

    @property
    def button(self) -> str:
        """The verb with its number."""
        return f"Give back {machines(self.count)}"


def effect_of_machines(
    allocation: Allocation, count: int, *, now: datetime
) -> MachinesEffect:
    """What changes when `count` machines of a grant go back now; raises ValueError for what reserves none."""
    row = allocation.reservation
    if row is None:
        raise ValueError(f"allocation {allocation.pk} is no reserved machines")
    usd_per_hour = allocation.usd_per_hour / allocation.count * count
    return MachinesEffect(
        count=count,
        stays=allocation.count - count,
        until=allocation.until,
        **_money(allocation, usd_per_hour, now=now),
        in_use=_in_use_of_machines(row, count),
        held=row.machines,
        usd_per_hour=row.usd_per_hour,
        usd_per_hour_less=row.usd_per_hour_each * count,
    )


class Money(TypedDict):
    """What an effect says of USD, by field."""

    usd_per_day: Decimal
    usd_per_day_less: Decimal
    freed_usd: Decimal


def _money(allocation: Allocation, usd_per_hour: Decimal, *, now: datetime) -> Money:
    """What the team pays a day, and what becomes of it and of the budget when so much an hour of a grant goes back."""
    live = Allocation.objects.live().filter(team=allocation.team_id)
    is_charged = allocation.charged_from is not None
    return {
        "usd_per_day": live.usd_per_day(),
        "usd_per_day_less": money.per_day(gpus=1, price=usd_per_hour)
        if is_charged
        else Decimal(0),
        "freed_usd": money.cost_of(
            usd_per_hour=usd_per_hour,
            start=allocation.freed_from(now),
            end=allocation.until,
        ),
    }


def _in_use_of_machines(row: Reservation, count: int) -> str:
    if row.machines > count:
        return ""
    nodes = (
        ", and the nodes that were made of it go with what runs on them"
        if row.flavor_id is not None
        else ""
    )
    return f"Nothing stays: the portal releases the reservation{nodes}."


def effect(allocation: Allocation, count: int, *, now: datetime) -> GpusEffect:
    """What changes when `count` GPUs go back now: quota, cost a day, and the money that is freed."""
    live = Allocation.objects.live().filter(team=allocation.team_id)
    here = live.filter(tenancy=allocation.tenancy_id, flavor=allocation.flavor_id)
    quota = int(here.aggregate(gpus=Sum("gpus"))["gpus"] or 0)
    stops = _notebook_that_stops(allocation, count)
    return GpusEffect(
        count=count,
        product=allocation.flavor.kind if allocation.flavor is not None else "GPU",
        held=quota,
        **_money(allocation, count * allocation.price_per_gpu_hour, now=now),
        stays=allocation.gpus - count,
        until=allocation.until,
        in_use=_in_use(allocation, quota - count, stops=stops, now=now),
        stops=stops,
        renewal=allocation.hold.renewal_id,
    )


def _notebook_that_stops(allocation: Allocation, count: int) -> NotebookServer | None:
    """The notebook that runs on GPUs of its own, where the last of those go back; its provisioner stops it at once."""
    server = allocation.notebook
    if server is None or server.state not in RUNS or count < allocation.gpus:
        return None
    others = Allocation.objects.granted().filter(notebook=server)
    return None if others.exclude(pk=allocation.pk).exists() else server


def _in_use(
    allocation: Allocation, left: int, *, stops: NotebookServer | None, now: datetime
) -> str:
    """What becomes of work on the namespace's GPUs where `left` stay; empty where nobody has looked yet.

    `stops` is a notebook that ends with what goes back, which is no work that could stay.
    """
    tenancy, flavor = allocation.tenancy, allocation.flavor
    if (
        tenancy is None
        or flavor is None
        or tenancy.used is None
        or tenancy.used_at is None
    ):
        return ""
    used = int(tenancy.used.get(flavor.name, 0))
    when = moment(tenancy.used_at, now)
    work = "work"
    if stops is not None:
        # It had its GPUs by then, where it had come up.
        was_ready = stops.ready_at is not None and stops.ready_at <= tenancy.used_at
        used, work = max(0, used - (stops.gpus if was_ready else 0)), "other work"
    if not used:
        return f"No {work} in {tenancy.namespace} used {flavor.kind} on {when}."
    seen = f"{work.capitalize()} in {tenancy.namespace} used {gpus(used, flavor.kind)} on {when}."
    allowed = left + left * tenancy.cluster.borrow_percent // 100
    if used <= left:
        return f"{seen} None of it has to stop."
    if used <= allowed:
        verb = "is" if used - left == 1 else "are"
        return f"{seen} {used - left} of them {verb} then borrowed: what runs there stops when other teams need them."
    is_written_to = tenancy.cluster.is_written_to
    terms = (
        allocation.terms
        if is_written_to
        else allocation.terms.where_nothing_is_stopped()
    )
    return f"{seen} That is {gpus(used - allowed)} too much. {fate_at(terms.stop_at(now), now=now)}"
