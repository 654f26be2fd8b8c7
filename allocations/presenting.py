"""What giving back does, as page and API show it before."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Sum

from allocations.budgets import money
from allocations.ends.notebooks import RUNS
from allocations.models import Allocation
from allocations.notices import fate_at
from notebooks.servers.models import NotebookServer
from ui.amounts import gpus, moment, usd
from ui.parts import BeforeAfter


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What giving GPUs back changes, which USD it frees until the end, what stays, and what becomes of work that runs.

    `quota` and `usd_per_day` are the team's before it, of this kind in the namespace and of all that it holds. `stops`
    is the notebook that was granted with all of it, which is stopped at once. `renewal` is the number of a request that
    would keep it longer, and waits.
    """

    gpus: int
    product: str
    quota: int
    usd_per_day: Decimal
    usd_per_day_less: Decimal
    freed_usd: Decimal
    stays: int
    until: datetime
    in_use: str = ""
    stops: NotebookServer | None = None
    renewal: int | None = None

    @property
    def quota_after(self) -> int:
        """GPUs that the team may still use."""
        return self.quota - self.gpus

    @property
    def usd_per_day_after(self) -> Decimal:
        """What is held costs a day from then on."""
        return self.usd_per_day - self.usd_per_day_less

    @property
    def changes(self) -> list[BeforeAfter]:
        """Quota and cost as the page compares them."""
        return [
            {
                "label": f"Quota, {self.product}",
                "before": gpus(self.quota),
                "after": gpus(self.quota_after),
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
        return f"Give back {gpus(self.gpus, self.product)}"


def effect(allocation: Allocation, count: int, *, now: datetime) -> Effect:
    """What changes when `count` GPUs go back now: quota, cost a day, and the money that is freed."""
    live = Allocation.objects.live().filter(team=allocation.team_id)
    here = live.filter(tenancy=allocation.tenancy_id, flavor=allocation.flavor_id)
    quota = int(here.aggregate(gpus=Sum("gpus"))["gpus"] or 0)
    price = allocation.price_per_gpu_hour
    is_charged = allocation.charged_from is not None
    stops = _notebook_that_stops(allocation, count)
    return Effect(
        gpus=count,
        product=allocation.flavor.kind if allocation.flavor is not None else "GPU",
        quota=quota,
        usd_per_day=live.usd_per_day(),
        usd_per_day_less=money.per_day(gpus=count, price=price)
        if is_charged
        else Decimal(0),
        freed_usd=money.cost(gpus=count, price=price, start=now, end=allocation.until),
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
