"""What each tenancy holds of a kind of GPU, how much of it work has used lately, and what the rest costs."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from allocations.budgets.money import per_day
from allocations.models import Allocation, AllocationQuerySet
from allocations.use.measuring import TENTH, Measured, of_all_held
from fleet.models import Flavor
from provisioning.models import Tenancy

# Over how many days (UTC) use is told, and for how long something is held before its use says anything.
DAYS = 7
TOLD_AFTER = timedelta(days=1)
# A queue is read every half minute; what was seen longer ago than this is not "now".
SEEN_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class Utilisation:
    """What a tenancy holds of a kind of GPU now: one allocation or several, and how much of it work has used.

    `used_now` is how many GPUs work reserved at the last look, `percent` how many of a hundred it had on the mean of
    the last days; None where nobody has looked lately, or it is held for less than a day.
    """

    tenancy: Tenancy
    flavor: Flavor
    allocations: Sequence[Allocation]
    gpus: int
    measured: Measured
    used_now: int | None
    percent: Decimal | None

    @property
    def until(self) -> datetime:
        """When the first of it ends."""
        return min(one.until for one in self.allocations)

    @property
    def idle_gpus(self) -> Decimal | None:
        """How many no work used of those that were there, on the mean, to a tenth; None where that is not known.

        What came since is not measured yet, and not called idle.
        """
        if self.percent is None:
            return None
        return self._idle.quantize(TENTH, ROUND_HALF_UP)

    @property
    def idle_usd_per_day(self) -> Decimal | None:
        """What a day of those costs in USD; None where that is not known."""
        if self.percent is None:
            return None
        hourly = sum((one.usd_per_hour for one in self.allocations), Decimal(0))
        return per_day(gpus=1, price=hourly / self.gpus * self._idle)

    @property
    def _idle(self) -> Decimal:
        return self.measured.held * (1 - (self.percent or Decimal(0)) / 100)


def utilisation_of(rows: AllocationQuerySet, *, now: datetime) -> list[Utilisation]:
    """Of allocations what is there and costs, what costs most idle first; three queries whatever their number.

    What nobody can tell the use of stands behind the rest, by what it costs in all.
    """
    held = rows.live().of_gpus().charged().filter(until__gt=now)
    by_place: dict[tuple[int, int], list[Allocation]] = defaultdict(list)
    for row in held.select_related(
        "team", "flavor__cluster", "tenancy__team", "tenancy__cluster"
    ).order_by("until", "pk"):
        if row.tenancy_id is not None and row.flavor_id is not None:
            by_place[row.tenancy_id, row.flavor_id].append(row)
    counts = {place: sum(one.gpus for one in own) for place, own in by_place.items()}
    measured = of_all_held(counts, now=now, days=DAYS) if counts else {}
    found = [
        _of_place(own, counts[place], measured[place], now=now)
        for place, own in by_place.items()
    ]
    return sorted(found, key=_most_idle_first)


@dataclass(frozen=True, kw_only=True)
class UsedNow:
    """How many GPUs work of all teams reserved at the last look, by cluster and flavor; what was borrowed counts.

    Of a `stale` cluster nobody has looked at a tenancy lately: what is missing there is not idle.
    """

    gpus: Counter[tuple[int, str]]
    stale: Collection[int]


def used_now(*, now: datetime) -> UsedNow:
    """What work of all teams reserves now; one query."""
    rows = Tenancy.objects.present().filter(used__isnull=False).order_by()
    gpus, stale = Counter[tuple[int, str]](), set[int]()
    for cluster, used, at in rows.values_list("cluster", "used", "used_at"):
        if at is None or at <= now - SEEN_WITHIN:
            stale.add(cluster)
        for flavor, count in (used or {}).items():
            gpus[cluster, flavor] += int(count)
    return UsedNow(gpus=gpus, stale=stale)


def _of_place(
    own: Sequence[Allocation], gpus: int, measured: Measured, *, now: datetime
) -> Utilisation:
    tenancy, flavor = own[0].tenancy, own[0].flavor
    assert tenancy is not None  # noqa: S101 - told to the type checker
    assert flavor is not None  # noqa: S101 - told to the type checker
    is_young = measured.since is None or measured.since > now - TOLD_AFTER
    is_seen = tenancy.used_at is not None and tenancy.used_at > now - SEEN_WITHIN
    used = (tenancy.used or {}).get(flavor.name, 0) if is_seen else None
    return Utilisation(
        tenancy=tenancy,
        flavor=flavor,
        allocations=own,
        gpus=gpus,
        measured=measured,
        # What is borrowed on top is not theirs.
        used_now=None if used is None else min(int(used), gpus),
        percent=None if is_young else measured.percent,
    )


def _most_idle_first(one: Utilisation) -> tuple[bool, Decimal, Decimal, int]:
    cost = sum((each.usd_per_hour for each in one.allocations), Decimal(0))
    idle = one.idle_usd_per_day
    return idle is None, -(idle or Decimal(0)), -cost, one.allocations[0].pk
