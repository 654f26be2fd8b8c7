"""What each allocation costs its team in a month (UTC), on which cost centre, and how much of that no work used."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal

from django.db.models import Q, QuerySet
from django.db.models.functions import Lower

from accounts.cost_centres.models import CostCentre
from accounts.models import Team, User
from accounts.roles import Permission
from allocations.budgets.money import (
    CENT,
    Amount,
    hours_between,
    month_of,
    next_month,
    part_of,
)
from allocations.models import Allocation, AllocationQuerySet
from allocations.use.measuring import AnyPlace, idle_by_day
from audit.events import Kind
from audit.models import Event
from insights.costs.spans import Change, spans

# All that a charge is told by. Whole rows have fifteen documents, and reading those takes as long as all the rest.
READ = (
    *("offering", "gpus", "usd_per_hour", "title", "place"),
    *("starts_at", "begun_at", "charged_from", "until", "ended_at"),
    *("team__slug", "team__name", "team__cost_centre"),
    *("flavor__name", "flavor__product", "flavor__resource", "flavor__memory_gb"),
    *("flavor__capacity_type", "flavor__cluster__name", "flavor__cluster__title"),
    *("tenancy__namespace", "tenancy__environment", "tenancy__project__slug"),
    *("tenancy__cluster__name", "tenancy__cluster__title", "tenancy__cluster__region"),
    *("requester__oid", "requester__name", "hold__request__id"),
)
TIMES = ("before", "after")
DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Month:
    """A month (UTC) from its first moment to that of the next; `until` is how far it has come."""

    first: date
    start: datetime
    end: datetime
    until: datetime

    @property
    def is_over(self) -> bool:
        """Whether nothing in it is spent any more."""
        return self.until == self.end


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What one allocation costs in a month, or in the part of it for which its team had one cost centre.

    `spent` is from `start` to `end`, in the month under way until now; `to_end` is what it will be at the end of the
    month if the allocation ends on its date: of a booking that begins later that is all. Of what is spent `idle_usd`
    was held and used by no work, at least. `is_of_part` where other charges of its team are left out.
    """

    allocation: Allocation
    cost_centre: str
    start: datetime
    end: datetime
    spent: Amount
    to_end: Amount
    idle_usd: Decimal = Decimal(0)
    is_of_part: bool = False


def month_at(first: date, now: datetime) -> Month:
    """The month that begins on a day, as far as it has come; it must have begun."""
    start = datetime(first.year, first.month, 1, tzinfo=UTC)
    end = next_month(start)
    return Month(first=first, start=start, end=end, until=min(now, end))


def first_month(user: User, now: datetime) -> date:
    """The first month in which anything was charged of what the person may see; the one under way for nothing."""
    rows = _visible(user, codes_of(user)).charged().order_by("charged_from")
    first = rows.values_list("charged_from", flat=True).first()
    return month_of(min(first or now, now))


def charges_of(user: User, month: Month) -> Sequence[Charge]:
    """What a person may see of a month's charges, in the order of their allocations.

    These are all charges of the teams that they may see and, of every team, those on cost centres that are theirs.
    """
    codes = codes_of(user)
    rows = _visible(user, codes).charged_within(month.start, month.end)
    found = list(
        rows.select_related(
            "team",
            "flavor__cluster",
            "tenancy__cluster",
            "tenancy__project",
            "requester",
            "hold__request",
        )
        .only(*READ)
        .order_by("pk")
    )
    changes = _changes_by_team({row.team_id for row in found}, since=month.start)
    charges = [
        charge
        for row in found
        for charge in _charges(row, month, changes.get(row.team_id, ()))
    ]
    tenancies = {row.tenancy_id for row in found if row.tenancy_id is not None}
    idle = idle_by_day(tenancies, month.start, month.end)
    every = _with_idle(charges, idle)
    if codes is None:
        return every
    return narrowed_to(
        every,
        lambda one: (
            one.allocation.team_id in user.team_ids
            or one.cost_centre.casefold() in codes
        ),
    )


def narrowed_to(
    every: Iterable[Charge], is_kept: Callable[[Charge], bool]
) -> Sequence[Charge]:
    """Those that are kept, marked as part of what their team is charged where others of the team are left out."""
    found: list[Charge] = []
    cut: set[int] = set()
    for one in every:
        if is_kept(one):
            found.append(one)
        else:
            cut.add(one.allocation.team_id)
    return [
        replace(one, is_of_part=True) if one.allocation.team_id in cut else one
        for one in found
    ]


def sees_cost_centre(user: User, code: str) -> bool:
    """Whether the person knows a cost centre of this code, whatever is charged on it: theirs, or that of a team."""
    if Team.objects.visible_to(user).filter(cost_centre__iexact=code).exists():
        return True
    codes = codes_of(user)
    if codes is None:
        return CostCentre.objects.filter(code__iexact=code).exists()
    # A team that went to another cost centre since still knows the one it had.
    once = (
        row.details["before"]["cost_centre"].casefold()
        for row in _changes().filter(team_id__in=user.team_ids)
    )
    return code.casefold() in {*codes, *once}


def codes_of(user: User) -> Collection[str] | None:
    """The cost centres that are a person's, in lower case; None for who sees all teams anyway."""
    if user.may(Permission.SEE_ALL_TEAMS):
        return None
    owned = CostCentre.objects.filter(owner=user).values_list("code", flat=True)
    return frozenset(code.casefold() for code in owned)


def _visible(user: User, codes: Collection[str] | None) -> AllocationQuerySet:
    """Allocations of which the person may see any charge."""
    rows = Allocation.objects.all()
    if codes is None:
        return rows
    if not codes:
        return rows.visible_to(user)
    now = Team.objects.annotate(code=Lower("cost_centre")).filter(code__in=codes)
    # Teams that went to another cost centre since stay with what they cost before.
    once = {
        row.team_id
        for row in _changes()
        if row.details["before"]["cost_centre"].casefold() in codes
    }
    return rows.filter(
        Q(team__in=user.team_ids) | Q(team__in=now.values("pk")) | Q(team__in=once)
    )


def _changes() -> QuerySet[Event]:
    """The events of teams that changed their cost centre, oldest first."""
    rows = Event.objects.filter(subject_type="team", kind=Kind.TEAM_CHANGED)
    return rows.filter(
        outcome=Event.Outcome.DONE, details__after__has_key="cost_centre"
    ).order_by("seq")


def _changes_by_team(
    teams: Collection[int], *, since: datetime
) -> Mapping[int, Sequence[Change]]:
    found: dict[int, list[Change]] = defaultdict(list)
    for row in _changes().filter(subject_id__in=map(str, teams), at__gte=since):
        before, after = (row.details[when]["cost_centre"] for when in TIMES)
        found[int(row.subject_id)].append(Change(row.at, before, after))
    return found


def _charges(
    row: Allocation, month: Month, changes: Sequence[Change]
) -> Iterator[Charge]:
    """The parts of what an allocation costs in a month, one for each cost centre that its team had."""
    begins = row.charge_start(month.until)
    for span in spans(
        max(begins, month.start),
        min(row.charged_until, month.end),
        at_present=row.team.cost_centre,
        changes=changes,
    ):
        until = max(min(span.end, month.until), span.start)
        yield Charge(
            allocation=row,
            cost_centre=span.cost_centre,
            start=span.start,
            end=until,
            spent=_amount(row, begins, span.start, until),
            to_end=_amount(row, begins, span.start, span.end),
        )


def _amount(
    row: Allocation, begins: datetime, first: datetime, last: datetime
) -> Amount:
    return part_of(
        gpus=row.gpus,
        usd_per_hour=row.usd_per_hour,
        start=begins,
        first=first,
        last=last,
    )


def _with_idle(
    charges: Sequence[Charge], idle: Mapping[AnyPlace, Mapping[date, Decimal]]
) -> list[Charge]:
    """The same with what of each was idle: of the GPUs of a place, one hour of a day is as idle as another.

    `idle` are GPU-hours by tenancy and flavor, of all charges of these together. It is shared day by day, so that what
    is idle on later days changes nothing of a charge that has ended.
    """
    parts = [_gpu_hours_by_day(one, idle.get(_place(one), ())) for one in charges]
    held: dict[tuple[AnyPlace, date], Decimal] = defaultdict(Decimal)
    for one, part in zip(charges, parts, strict=True):
        for day, hours in part.items():
            held[_place(one), day] += hours

    def idle_hours(one: Charge, part: Mapping[date, Decimal]) -> Decimal:
        """Of each day as much as the charge has of what was held on it."""
        place = _place(one)
        return sum(
            (
                min(idle[place][day], held[place, day]) * hours / held[place, day]
                for day, hours in part.items()
            ),
            Decimal(0),
        )

    return [
        replace(one, idle_usd=_usd_of(one, idle_hours(one, part))) if part else one
        for one, part in zip(charges, parts, strict=True)
    ]


def _gpu_hours_by_day(charge: Charge, days: Iterable[date]) -> Mapping[date, Decimal]:
    """The charge's GPU-hours on those of the days (UTC) on which it lasted."""
    found = {}
    for day in days:
        start = datetime.combine(day, time.min, UTC)
        first, last = max(charge.start, start), min(charge.end, start + DAY)
        # Less than a second is nothing: hours are counted in whole ones.
        if first < last and (hours := hours_between(first, last)):
            found[day] = charge.allocation.gpus * hours
    return found


def _usd_of(charge: Charge, gpu_hours: Decimal) -> Decimal:
    """What so many of a charge's GPU-hours cost, in cents; it has some."""
    lasted = hours_between(charge.start, charge.end) * charge.allocation.gpus
    return (charge.spent.usd * gpu_hours / lasted).quantize(CENT, ROUND_HALF_UP)


def _place(charge: Charge) -> AnyPlace:
    return charge.allocation.tenancy_id, charge.allocation.flavor_id
