"""From when on a place holds fewer GPUs than a run takes, as what is granted and booked stands now."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from allocations.models import Allocation
from fleet.models import Flavor
from provisioning.models import Tenancy
from ui.amounts import gpus, moment
from workloads.reasons.latest_starts import Change, changes_of_grant
from workloads.runs.planning.plan import Plan


@dataclass(frozen=True, kw_only=True)
class TooFew:
    """From when on fewer of a flavor are held than a run takes, and how many then."""

    at: datetime
    left: int
    flavor: Flavor


def too_few_from(tenancy: Tenancy, flavor: Flavor, need: int) -> TooFew | None:
    """When a tenancy first holds fewer than `need` GPUs of a flavor; None where it holds fewer now: it borrows them."""
    rows = (
        Allocation.objects.granted()
        .of_gpus()
        .filter(tenancy=tenancy, flavor=flavor)
        .select_related("flavor")
    )
    held = sum(row.gpus for row in rows if not row.is_booked)
    if held < need:
        return None
    # Of one moment, what begins counts before what ends.
    for one in sorted(changes_of(rows), key=lambda one: (one.at, -one.gpus)):
        held += one.gpus
        if held < need:
            return TooFew(at=one.at, left=held, flavor=flavor)
    return None


def changes_of(rows: Iterable[Allocation]) -> Iterator[Change]:
    """When a tenancy holds more GPUs or fewer, from what it has been granted with its flavors."""
    for row in rows:
        if row.flavor is None:
            continue
        begins = row.starts_at if row.is_booked else None
        yield from changes_of_grant(
            row.flavor.name, row.gpus, begins=begins, ends=row.kept_until
        )


def too_few_before(
    tenancy: Tenancy,
    flavor: Flavor | None,
    need: int,
    *,
    until: datetime | None,
) -> TooFew | None:
    """From when on fewer are held than a run takes, before `until` or its stop by hand; None where that is not so."""
    found = too_few_from(tenancy, flavor, need) if flavor and need else None
    if found is None or (until is not None and found.at >= until):
        return None
    return found


def too_few_for_plan(
    plan: Plan, tenancy: Tenancy, flavor: str, *, now: datetime
) -> TooFew | None:
    """The same of a run that were sent now and began at once."""
    if plan.problems or not plan.gpus:
        return None
    kind = tenancy.cluster.flavors.filter(name=flavor).first()
    until = None if plan.seconds is None else now + timedelta(seconds=plan.seconds)
    return too_few_before(tenancy, kind, plan.gpus, until=until)


def too_few_words(found: TooFew | None, tenancy: Tenancy, *, now: datetime) -> str:
    """That the GPUs of a run end before it may, and what to do; empty for None."""
    if found is None:
        return ""
    flavor = found.flavor
    left = gpus(found.left, flavor.kind) if found.left else "none of them"
    what_to_do = (
        f"They cannot be kept longer: {flavor.why_closed}."
        if flavor.why_closed
        else "Keep them longer on the team’s page."
    )
    return (
        f"Its GPUs end before it may: from {moment(found.at, now)} on {tenancy.team.name} holds {left}, and it can be "
        f"stopped then. {what_to_do}"
    )
