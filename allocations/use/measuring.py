"""How much of what is held is really used: samples of what each look at a cluster saw, added up by day."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, Sum

from allocations.models import Allocation, AllocationQuerySet, UseDay
from provisioning.models import Tenancy

DAYS = 14
AT_MOST_EVERY = timedelta(minutes=1)
TENTH = Decimal("0.1")
Place = tuple[int, int]
# The same of an allocation, which may stand on no cluster or be of no GPUs: nothing of those is measured.
AnyPlace = tuple[int | None, int | None]


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
    """How much of what is held now is in use, over how many looks, and since when something is held without a gap.

    `held` is how many of the GPUs were there on the mean of those looks: what came since is not measured yet.
    """

    percent: Decimal | None
    samples: int
    since: datetime | None
    held: Decimal


def of_held(
    tenancy_id: int, flavor_id: int, *, held: int, now: datetime, days: int = DAYS
) -> Measured:
    """Use of the `held` GPUs that a tenancy has of a flavor now, over the last `days` days (UTC), today included.

    What was given back since counts no more: of each look at most `held` GPUs were there to be used. Something held
    goes on where one allocation follows another without a gap.
    """
    place = (tenancy_id, flavor_id)
    return of_all_held({place: held}, now=now, days=days)[place]


def of_all_held(
    held: Mapping[Place, int], *, now: datetime, days: int = DAYS
) -> Mapping[Place, Measured]:
    """`of_held` of every (tenancy id, flavor id) with the GPUs held there; two queries whatever their number."""
    of = {
        "tenancy__in": {tenancy for tenancy, _ in held},
        "flavor__in": {flavor for _, flavor in held},
    }
    first = now.astimezone(UTC).date() - timedelta(days=days)
    rows = (
        UseDay.objects.filter(**of, day__gt=first)
        .order_by()
        .values_list("tenancy_id", "flavor_id")
        .annotate(used=Sum("used_sum"), there=Sum("held_sum"), looks=Sum("samples"))
    )
    sums = {(tenancy, flavor): rest for tenancy, flavor, *rest in rows}
    charged = Allocation.objects.filter(**of, charged_from__lte=now)
    since = _held_since(charged, after=now - timedelta(days=days))
    found = {}
    for place, gpus in held.items():
        used, there, looks = sums.get(place, (0, 0, 0))
        there = min(there, looks * gpus)
        percent = min(Decimal(100 * used) / there, Decimal(100)) if there else None
        found[place] = Measured(
            None if percent is None else percent.quantize(TENTH, ROUND_HALF_UP),
            looks,
            since.get(place),
            Decimal(there) / looks if looks else Decimal(0),
        )
    return found


def together(found: Iterable[Measured]) -> Measured:
    """What was measured in several places as one: each counts by the GPUs that its looks saw there.

    It was looked at as often, and is held for as long, as the place where that is most.
    """
    known = list(found)
    there = [one.held * one.samples for one in known]
    used = sum(
        (
            one.percent * part
            for one, part in zip(known, there, strict=True)
            if one.percent is not None
        ),
        Decimal(0),
    )
    looks = max((one.samples for one in known), default=0)
    return Measured(
        (used / sum(there)).quantize(TENTH, ROUND_HALF_UP) if any(there) else None,
        looks,
        min((one.since for one in known if one.since is not None), default=None),
        sum((one.held for one in known), Decimal(0)),
    )


def _held_since(
    charged: AllocationQuerySet, *, after: datetime
) -> Mapping[Place, datetime]:
    """Since when each tenancy holds something of a flavor without a gap; an end before `after` is one."""
    recent = charged.filter(Q(ended_at=None) | Q(ended_at__gt=after))
    newest_end_first = recent.order_by(F("ended_at").desc(nulls_first=True))
    found: dict[Place, datetime] = {}
    broken: set[Place] = set()
    for tenancy, flavor, charged_from, ended_at in newest_end_first.values_list(
        "tenancy_id", "flavor_id", "charged_from", "ended_at"
    ):
        place = (tenancy, flavor)
        since = found.get(place)
        if ended_at is not None and (since is None or ended_at < since):
            broken.add(place)
        if charged_from is not None and place not in broken:
            found[place] = charged_from if since is None else min(since, charged_from)
    return found


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


def idle_by_day(
    tenancies: Collection[int], start: datetime, end: datetime
) -> Mapping[AnyPlace, Mapping[date, Decimal]]:
    """GPU-hours held and not used on each day (UTC) from start to end, at least, by (tenancy id, flavor id).

    A minute for each GPU of each look; one query. A day that was not measured is not in it.
    """
    rows = UseDay.objects.filter(
        tenancy__in=tenancies,
        day__gte=start.astimezone(UTC).date(),
        day__lt=end.astimezone(UTC).date(),
    )
    found: dict[AnyPlace, dict[date, Decimal]] = defaultdict(dict)
    for tenancy, flavor, day, idle in rows.order_by().values_list(
        "tenancy_id", "flavor_id", "day", F("held_sum") - F("used_sum")
    ):
        found[tenancy, flavor][day] = _idle_hours(idle)
    return found


def looks_by_day(
    tenancies: Collection[int], start: datetime, end: datetime
) -> Iterator[tuple[Place, date, int, int]]:
    """What the looks of each day (UTC) from start to end saw: (tenancy id, flavor id), day, GPUs held, GPUs used.

    The day of `end` is one of them; one that was not measured is not. One query.
    """
    rows = UseDay.objects.filter(
        tenancy__in=tenancies,
        day__gte=start.astimezone(UTC).date(),
        day__lte=end.astimezone(UTC).date(),
    )
    for tenancy, flavor, day, held, used in rows.order_by().values_list(
        "tenancy_id", "flavor_id", "day", "held_sum", "used_sum"
    ):
        yield (tenancy, flavor), day, held, used


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
