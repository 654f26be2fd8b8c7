"""How much of what is held is really used: samples of what each look at a cluster saw, added up by day."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, Sum

from allocations.models import Allocation, UseDay
from provisioning.models import Tenancy

DAYS = 14
AT_MOST_EVERY = timedelta(minutes=1)
TENTH = Decimal("0.1")
Place = tuple[int, int]


def measured(
    tenancy_id: int, flavor_id: int, *, now: datetime, days: int = DAYS
) -> Decimal | None:
    """Percent, to a tenth, of the tenancy's GPUs of a flavor that workloads reserved on the last `days` days.

    The mean over every look and GPU held, today included; None when nothing was measured.
    """
    return measured_many([(tenancy_id, flavor_id)], now=now, days=days).get(
        (tenancy_id, flavor_id)
    )


def measured_many(
    places: Iterable[Place], *, now: datetime, days: int = DAYS
) -> dict[Place, Decimal]:
    """`measured` by (tenancy id, flavor id) in one query; what was not measured is not in it."""
    wanted = set(places)
    since = now.astimezone(UTC).date() - timedelta(days=days)
    rows = (
        UseDay.objects.filter(
            tenancy__in={tenancy for tenancy, _ in wanted},
            flavor__in={flavor for _, flavor in wanted},
            day__gt=since,
        )
        .order_by()
        .values_list("tenancy_id", "flavor_id")
        .annotate(used=Sum("used_sum"), held=Sum("held_sum"))
    )
    return {
        (tenancy, flavor): (Decimal(100 * used) / held).quantize(TENTH, ROUND_HALF_UP)
        for tenancy, flavor, used, held in rows
        if (tenancy, flavor) in wanted
    }


def busy_of_cluster(cluster_id: int, *, now: datetime) -> dict[int, Decimal]:
    """Percent of what is held of each flavor of a cluster, of whatever team, that was in use today; by flavor id."""
    rows = (
        UseDay.objects.filter(
            flavor__cluster=cluster_id, day=now.astimezone(UTC).date(), held_sum__gt=0
        )
        .order_by()
        .values_list("flavor_id")
        .annotate(used=Sum("used_sum"), held=Sum("held_sum"))
    )
    return {
        flavor: (Decimal(100 * used) / held).quantize(TENTH, ROUND_HALF_UP)
        for flavor, used, held in rows
    }


@dataclass(frozen=True)
class Measured:
    """How much of what is held now is in use, over how many looks, and since when something is held without a gap."""

    percent: Decimal | None
    samples: int
    since: datetime | None


def of_held(
    tenancy_id: int, flavor_id: int, *, held: int, now: datetime, days: int = DAYS
) -> Measured:
    """Use of the `held` GPUs that a tenancy has of a flavor now, over the last `days` days.

    What was given back since counts no more: of each look at most `held` GPUs were there to be used. Something held
    goes on where one allocation follows another without a gap.
    """
    first = now.astimezone(UTC).date() - timedelta(days=days)
    rows = UseDay.objects.filter(
        tenancy=tenancy_id, flavor=flavor_id, day__gt=first
    ).order_by()
    sums = rows.aggregate(
        used=Sum("used_sum"), held=Sum("held_sum"), samples=Sum("samples")
    )
    samples = sums["samples"] or 0
    there = min(sums["held"] or 0, samples * held)
    percent = (
        min(Decimal(100 * (sums["used"] or 0)) / there, Decimal(100)) if there else None
    )
    return Measured(
        None if percent is None else percent.quantize(TENTH, ROUND_HALF_UP),
        samples,
        held_since(tenancy_id, flavor_id, now=now, days=days),
    )


def held_since(
    tenancy_id: int, flavor_id: int, *, now: datetime, days: int = DAYS
) -> datetime | None:
    """Since when a tenancy holds something of a flavor without a gap, as far as `days` days back; None for nothing."""
    rows = Allocation.objects.filter(
        tenancy=tenancy_id, flavor=flavor_id, charged_from__lte=now
    )
    recent = rows.filter(Q(ended_at=None) | Q(ended_at__gt=now - timedelta(days=days)))
    since: datetime | None = None
    for charged_from, ended_at in recent.order_by(
        F("ended_at").desc(nulls_first=True)
    ).values_list("charged_from", "ended_at"):
        if charged_from is None or (
            ended_at is not None and (since is None or ended_at < since)
        ):
            break
        since = charged_from if since is None else min(since, charged_from)
    return since


@dataclass(frozen=True)
class Trend:
    """Use of what a tenancy holds of a flavor: percent of each day, None for one without a look, and of the best one.

    `idle_gpu_hours` were held and not in use, at least: a minute for each GPU of each look.
    """

    days: tuple[Decimal | None, ...]
    best: Decimal
    idle_gpu_hours: Decimal


def trend(
    tenancy_id: int, flavor_id: int, *, now: datetime, days: int = DAYS
) -> Trend | None:
    """The last `days` days (UTC), today the last of them; None when nothing was measured."""
    today = now.astimezone(UTC).date()
    rows = UseDay.objects.filter(
        tenancy=tenancy_id, flavor=flavor_id, day__gt=today - timedelta(days=days)
    )
    found = {row.day: row for row in rows}
    if not found:
        return None
    percents = {
        day: (Decimal(100 * row.used_sum) / row.held_sum).quantize(TENTH)
        for day, row in found.items()
    }
    idle = _idle_hours(sum(row.held_sum - row.used_sum for row in found.values()))
    line = tuple(
        percents.get(today - timedelta(days=back)) for back in range(days - 1, -1, -1)
    )
    return Trend(line, max(percents.values()), idle.quantize(Decimal(1)))


def idle_by_team(
    start: datetime, end: datetime
) -> dict[tuple[int, int | None], Decimal]:
    """GPU-hours that teams held and did not use from start to end (days in UTC), at least, by (team id, flavor id).

    A minute for each GPU of each look; one query. What was not measured is not in it.
    """
    days = UseDay.objects.filter(
        day__gte=start.astimezone(UTC).date(), day__lt=end.astimezone(UTC).date()
    )
    rows = (
        days.order_by()
        .values_list("tenancy__team_id", "flavor_id")
        .annotate(idle=Sum(F("held_sum") - F("used_sum")))
    )
    return {(team, flavor): _idle_hours(idle) for team, flavor, idle in rows}


def _idle_hours(idle: int) -> Decimal:
    """GPU-hours of GPUs that looks saw idle: each look stands for the time to the next, which is a minute at least."""
    return Decimal(idle * AT_MOST_EVERY.seconds) / 3600


def due() -> list[int]:
    """The tenancies whose queue was read since their last sample, oldest reading first."""
    counted = UseDay.objects.filter(
        tenancy=OuterRef("pk"), last_at__gt=OuterRef("used_at") - AT_MOST_EVERY
    )
    held = Allocation.objects.live().of_gpus().charged().filter(tenancy=OuterRef("pk"))
    rows = Tenancy.objects.filter(Exists(held), ~Exists(counted), used_at__isnull=False)
    return list(rows.order_by("used_at").values_list("pk", flat=True))


@transaction.atomic
def sample(tenancy_id: int) -> bool:
    """Add what the newest look saw to the day it was made on; False when that look was counted or is too near.

    A look is counted once, and at most one a minute. No audit event: nothing was decided, and there are 1,440 a day.
    """
    # Locked, so that two workers count one look once.
    tenancy = Tenancy.objects.locked().order_by().get(pk=tenancy_id)
    if tenancy.used is None or tenancy.used_at is None:
        return False
    at = tenancy.used_at
    if UseDay.objects.filter(tenancy=tenancy, last_at__gt=at - AT_MOST_EVERY).exists():
        return False
    # What nobody has made yet cannot be used.
    held = (
        Allocation.objects.live()
        .of_gpus()
        .filter(tenancy=tenancy, charged_from__lte=at, until__gt=at)
    )
    rows = (
        held.order_by()
        .values_list("flavor_id", "flavor__name")
        .annotate(gpus=Sum("gpus"))
    )
    for flavor_id, name, gpus in rows:
        _add(
            tenancy.pk,
            flavor_id,
            at=at,
            held=gpus,
            used=min(int(tenancy.used.get(name, 0)), gpus),
        )
    return bool(rows)


def _add(
    tenancy_id: int, flavor_id: int, *, at: datetime, held: int, used: int
) -> None:
    day = UseDay.objects.filter(
        tenancy=tenancy_id, flavor=flavor_id, day=at.astimezone(UTC).date()
    )
    counted = day.update(
        samples=F("samples") + 1,
        held_sum=F("held_sum") + held,
        used_sum=F("used_sum") + used,
        last_at=at,
    )
    if not counted:
        UseDay.objects.create(
            tenancy_id=tenancy_id,
            flavor_id=flavor_id,
            day=at.astimezone(UTC).date(),
            held_sum=held,
            used_sum=used,
            last_at=at,
        )
