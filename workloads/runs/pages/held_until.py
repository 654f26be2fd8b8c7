"""From when on a place holds fewer GPUs than a run takes, as what is granted and booked stands now."""

from dataclasses import dataclass
from datetime import datetime

from allocations.models import Allocation
from fleet.models import Flavor
from provisioning.models import Tenancy
from ui.amounts import gpus, moment


@dataclass(frozen=True, kw_only=True)
class TooFew:
    """From when on fewer are held than a run takes, and how many then."""

    at: datetime
    left: int


def too_few_from(
    tenancy: Tenancy, flavor: Flavor, need: int, *, now: datetime
) -> TooFew | None:
    """When a tenancy first holds fewer than `need` GPUs of a flavor; None where it holds fewer now: it borrows them."""
    rows = Allocation.objects.granted().of_gpus().filter(tenancy=tenancy, flavor=flavor)
    held, changes = 0, list[tuple[datetime, int]]()
    for row in rows:
        changes.append((row.kept_until, -row.gpus))
        if row.is_booked:
            changes.append((row.starts_at, row.gpus))
        else:
            held += row.gpus
    if held < need:
        return None
    # Of one moment, what begins counts before what ends.
    for at, change in sorted(changes, key=lambda one: (one[0], -one[1])):
        held += change
        if held < need:
            return TooFew(at=at, left=held)
    return None


def too_few_words(
    tenancy: Tenancy,
    flavor: Flavor | None,
    need: int,
    *,
    until: datetime | None,
    now: datetime,
) -> str:
    """That the GPUs of a run end before `until`, or its stop by hand, and what to do; empty where they do not."""
    found = too_few_from(tenancy, flavor, need, now=now) if flavor and need else None
    if found is None or flavor is None or (until is not None and found.at >= until):
        return ""
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
