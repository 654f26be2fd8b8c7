"""What giving back does, as its page shows it."""

from collections.abc import Sequence
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
    """What giving back changes, which money it frees until when, what stays, and what becomes of work that runs.

    `stops` is the notebook that was granted with all of it, which is stopped at once. `renewal` is the number of a
    request that would keep it longer, and waits.
    """

    changes: Sequence[BeforeAfter]
    freed: str
    until: str
    rest: str
    button: str
    in_use: str = ""
    stops: NotebookServer | None = None
    renewal: int | None = None


def effect(allocation: Allocation, count: int, *, now: datetime) -> Effect:
    """What changes when `count` GPUs go back now: quota, cost a day, and the money that is freed."""
    live = Allocation.objects.live().filter(team=allocation.team_id)
    here = live.filter(tenancy=allocation.tenancy_id, flavor=allocation.flavor_id)
    quota = int(here.aggregate(gpus=Sum("gpus"))["gpus"] or 0)
    per_day = live.usd_per_day()
    product = allocation.flavor.kind if allocation.flavor is not None else "GPU"
    is_charged = allocation.charged_from is not None
    less = (
        money.per_day(gpus=count, price=allocation.price_per_gpu_hour)
        if is_charged
        else Decimal(0)
    )
    freed = money.cost(
        gpus=count, price=allocation.price_per_gpu_hour, start=now, end=allocation.until
    )
    stops = _notebook_that_stops(allocation, count)
    return Effect(
        changes=[
            {
                "label": f"Quota, {product}",
                "before": gpus(quota),
                "after": gpus(quota - count),
            },
            {
                "label": "Cost a day",
                "before": usd(per_day),
                "after": usd(per_day - less),
            },
        ],
        freed=usd(freed),
        until=moment(allocation.until, now),
        rest=gpus(allocation.gpus - count, product) if count < allocation.gpus else "",
        in_use=_in_use(allocation, quota - count, stops=stops, now=now),
        stops=stops,
        renewal=allocation.hold.renewal_id,
        button=f"Give back {gpus(count, product)}",
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
