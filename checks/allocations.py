"""I1, I2, I4, I11 in the books: what is held, what it is worth, and that it ends."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Count, F, Q, Sum
from django.urls import reverse

from allocations.budgets.totals import in_cents
from allocations.models import Allocation, Brake, Budget, LedgerEntry
from approvals.models import Request
from approvals.states import State
from checks.findings import Finding
from fleet.models import Flavor
from provisioning.models import Tenancy
from ui.amounts import cents, moment

LATE = timedelta(seconds=60)
REFRESH = "Set its budget or give something back to have it added up again; tell the developers."


def granted_once(now: datetime) -> Iterator[Finding]:
    """I1: one live allocation for a request; a flavor counts what is held of it, and promises what can be had."""
    live = Allocation.objects.live()
    granted = live.order_by().values("hold__request").annotate(number=Count("pk"))
    for row in granted.filter(number__gt=1):
        words = f"It is granted {row['number']} times."
        yield Finding(
            "I1", f"request-{row['hold__request']}", words, "Give all but one back."
        )
    counted = Flavor.objects.annotate(
        held=Sum(
            "allocations__gpus",
            filter=Q(allocations__ended_at=None, allocations__begun_at__isnull=False),
            default=0,
        )
    )
    for wrong in counted.exclude(allocated=F("held")).values(
        "cluster__name", "name", "allocated", "held"
    ):
        yield Finding(
            "I1",
            f"flavor {wrong['cluster__name']}/{wrong['name']}",
            f"{wrong['allocated']} GPUs are counted as taken, {wrong['held']} are held.",
            "Stop the workers, set `allocated` to what is held, and tell the developers.",
        )
    yield from _promises_what_can_be_had()


def _promises_what_can_be_had() -> Iterator[Finding]:
    """Of a flavor that is counted: what is ready, or what its pool may grow to."""
    for flavor in Flavor.objects.select_related("cluster"):
        if flavor.cluster.is_observed and flavor.gpus_total != flavor.gpus_obtainable:
            yield Finding(
                "I1",
                f"flavor {flavor.key}",
                f"{flavor.gpus_total} GPUs are offered, {flavor.gpus_obtainable} can be had.",
                "It is counted again at the next look, which takes half a minute; tell the developers if it is not.",
            )


def desired_is_held(now: datetime) -> Iterator[Finding]:
    """I2: what is desired of a tenancy is the sum of its live allocations, flavor by flavor."""
    held: dict[int, dict[str, int]] = {}
    rows = (
        Allocation.objects.live()
        .of_gpus()
        .order_by()
        .values("tenancy_id", "flavor__name")
        .annotate(sum=Sum("gpus"))
    )
    for row in rows:
        held.setdefault(row["tenancy_id"], {})[row["flavor__name"]] = row["sum"]
    for tenancy in (
        Tenancy.objects.order_by()
        .exclude(generation=0)
        .only("namespace", "spec")
        .iterator()
    ):
        wanted = {
            f["name"]: f["gpus"] for f in tenancy.spec.get("flavors", []) if f["gpus"]
        }
        if wanted != held.get(tenancy.pk, {}):
            yield Finding(
                "I2",
                f"tenancy {tenancy.namespace}",
                f"{_sum(wanted)} are desired, {_sum(held.get(tenancy.pk, {}))} are held.",
                "Ask for a GPU there or give one back: either has it added up again.",
            )


def _sum(gpus: dict[str, int]) -> str:
    return (
        " and ".join(f"{number} × {name}" for name, number in sorted(gpus.items()))
        or "no GPUs"
    )


def books_agree(now: datetime) -> Iterator[Finding]:
    """I4: within the limits, equal to the ledger, and nothing set aside for what was never granted."""
    over = Q(held_usd__gt=F("limit_usd")) | Q(held_gpu_hours__gt=F("gpu_hours_limit"))
    for budget in Budget.objects.filter(over).select_related("team"):
        yield Finding(
            "I4",
            _name(budget),
            f"{cents(budget.held_usd)} of {cents(budget.limit_usd)} are set aside.",
            "Raise the limit, or give something back.",
        )
    summed = Budget.objects.annotate(
        usd=in_cents(Sum("entries__usd", default=Decimal(0))),
        hours=in_cents(Sum("entries__gpu_hours", default=Decimal(0))),
    ).exclude(held_usd=F("usd"), held_gpu_hours=F("hours"))
    for row in summed.values(
        "team__slug", "month", "held_usd", "held_gpu_hours", "usd", "hours"
    ):
        yield Finding(
            "I4",
            f"budget of {row['team__slug']}, {row['month']:%Y-%m}",
            f"The budget says {cents(row['held_usd'])} and {row['held_gpu_hours']} GPU-hours, its ledger "
            f"{cents(row['usd'])} and {row['hours']}.",
            "Run manage.py check_budgets, and set the budget to what the ledger says.",
        )
    yield from _held_for_nothing()


def _held_for_nothing() -> Iterator[Finding]:
    sums = (
        LedgerEntry.objects.order_by()
        .values("hold")
        .annotate(usd=in_cents(Sum("usd")), hours=in_cents(Sum("gpu_hours")))
    )
    left = {row["hold"]: row["usd"] for row in sums.exclude(usd=0, hours=0)}
    over = Request.objects.filter(
        state__in=[State.REJECTED, State.WITHDRAWN, State.LAPSED]
    )
    for pk, hold in over.order_by().values_list("pk", "hold").iterator():
        if (usd := left.get(hold)) is not None:
            yield Finding(
                "I4",
                f"request-{pk}",
                f"It is over, and {cents(usd)} are still set aside for it.",
                REFRESH,
            )


def _name(budget: Budget) -> str:
    return f"budget of {budget.team.slug}, {budget.month:%Y-%m}"


def has_ended(now: datetime) -> Iterator[Finding]:
    """I11: nothing is held more than a minute past its end; what a brake holds back is one finding, for a person."""
    late = Allocation.objects.over(now - LATE).select_related(
        "tenancy", "hold__request"
    )
    brake, confirmed = Brake.objects.open().first(), Brake.objects.confirmed_until()
    held_back = [
        a for a in late if brake and (confirmed is None or a.kept_until > confirmed)
    ]
    if brake and held_back:
        yield Finding(
            "I11",
            f"brake {brake.pk}",
            f"Held back past their end since {moment(brake.clock, now)}, because so many at once may be a clock that "
            f"is wrong: {len(held_back)}, the first of them {held_back[0].hold}.",
            f"Say on {reverse('ends-held-back')} whether it is right.",
        )
    for allocation in late:
        if allocation in held_back:
            continue
        seconds = (now - allocation.until).total_seconds()
        yield Finding(
            "I11",
            allocation.hold.reference,
            f"It should have ended {seconds:,.0f} seconds ago and is still held{_in(allocation)}.",
            "See whether a worker with its clock runs (celery worker -B), and what it logs of ends.",
        )


def _in(allocation: Allocation) -> str:
    return (
        f" in {allocation.tenancy.namespace}" if allocation.tenancy is not None else ""
    )
