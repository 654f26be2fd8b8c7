"""How much of what a tenancy held of a kind of GPU its work used, week by week, also of what has ended since."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from allocations.models import Allocation, AllocationQuerySet
from allocations.use.measuring import Place, looks_by_day
from fleet.models import Flavor
from insights.utilisation.weeks import (
    Looks,
    Stretch,
    Week,
    by_week,
    empty_weeks,
    midnight,
)
from provisioning.models import Tenancy

# All that the weeks are told by: whole rows have fifteen documents.
READ = (
    *("gpus", "usd_per_hour", "charged_from", "until", "ended_at"),
    *("tenancy__namespace", "tenancy__team__slug", "tenancy__team__name"),
    *("flavor__name", "flavor__product", "flavor__resource", "flavor__memory_gb"),
    *("flavor__capacity_type", "flavor__cluster__name", "flavor__cluster__title"),
)


@dataclass(frozen=True, kw_only=True)
class History:
    """The weeks of what a tenancy holds, or held, of a kind of GPU: twelve whole ones and the one under way."""

    tenancy: Tenancy
    flavor: Flavor
    weeks: Sequence[Week]


def history_of(rows: AllocationQuerySet, *, now: datetime) -> list[History]:
    """Of allocations the weeks, by team, namespace and kind of GPU; two queries whatever their number."""
    start = midnight(empty_weeks(now)[0].begins)
    by_place: dict[Place, list[Allocation]] = defaultdict(list)
    held = rows.of_gpus().charged().charged_within(start, now)
    for row in held.select_related("tenancy__team", "flavor__cluster").only(*READ):
        if row.tenancy_id is not None and row.flavor_id is not None:
            by_place[row.tenancy_id, row.flavor_id].append(row)
    looks = _looks(by_place, start=start, now=now)
    found = [
        _of_place(own, looks.get(place, {}), now=now) for place, own in by_place.items()
    ]
    return sorted(found, key=_by_name)


def _looks(
    places: Mapping[Place, object], *, start: datetime, now: datetime
) -> Mapping[Place, Mapping[date, Looks]]:
    found: dict[Place, dict[date, Looks]] = defaultdict(dict)
    tenancies = {tenancy for tenancy, _ in places}
    for place, day, held, used in looks_by_day(tenancies, start, now):
        found[place][day] = Looks(held=held, used=used)
    return found


def _of_place(
    own: Sequence[Allocation], looks: Mapping[date, Looks], *, now: datetime
) -> History:
    tenancy, flavor = own[0].tenancy, own[0].flavor
    assert tenancy is not None  # noqa: S101 - told to the type checker
    assert flavor is not None  # noqa: S101 - told to the type checker
    held = [
        Stretch(
            start=row.charged_from,
            end=row.charged_until,
            gpus=row.gpus,
            usd_per_hour=row.usd_per_hour,
        )
        for row in own
        if row.charged_from is not None
    ]
    return History(tenancy=tenancy, flavor=flavor, weeks=by_week(held, looks, now=now))


def _by_name(one: History) -> tuple[str, str, str]:
    return one.tenancy.team.name.casefold(), one.tenancy.namespace, one.flavor.key
