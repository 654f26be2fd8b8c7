"""Teams are told of GPUs that they hold and no work has used for days, once a week at most."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from urllib.parse import urlencode

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from accounts.models import User
from allocations.budgets.money import cost_of
from allocations.models import Allocation, AllocationQuerySet, UseDay
from allocations.use.measuring import Measured, Place, of_all_held
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from fleet.models import Cluster, in_maintenance
from notices.actions import tell_with_channels
from notices.kinds import NoticeKind
from notices.message import Message
from provisioning.models import Tenancy
from ui.amounts import ahead, gpus, usd

# What is held for so many days and was used less than so much of them is idle. Use is kept by days of UTC, so that one
# more of them holds as many whole ones.
DAYS, BELOW_PERCENT = 3, Decimal(5)
WINDOW = DAYS + 1
TOLD_AGAIN_AFTER = timedelta(days=7)
# Fewer looks than eight hours of them say too little: the cluster was away.
LEAST_LOOKS = 480
# What goes back by itself so soon is nobody's to give back.
ENDS_ANYWAY = timedelta(days=1)


def idle(now: datetime) -> list[Place]:
    """The (tenancy id, flavor id) whose team is to be told now that the GPUs are idle; four queries in all."""
    return [*_idle(now)]


def _idle(now: datetime, *, at: int | None = None) -> Mapping[Place, Measured]:
    """Their use, of one tenancy or anywhere."""
    rows = _held(now) if at is None else _held(now).filter(tenancy=at)
    held = Counter[Place]()
    for tenancy, flavor, number in rows.values_list("tenancy_id", "flavor_id", "gpus"):
        held[tenancy, flavor] += number
    if not held:
        return {}
    told = set(_told_lately(now).values_list("tenancy_id", "flavor_id"))
    seen = of_all_held(held, now=now, days=WINDOW)
    return {
        place: seen[place]
        for place in sorted(held)
        if place not in told and _is_idle(seen[place], now)
    }


@transaction.atomic
def tell_idle(place: Place, *, now: datetime) -> bool:
    """Tell the members of a team what it holds idle, and what that has cost; False where nothing is to be told now."""
    tenancy_id, flavor_id = place
    # Two workers tell one team once.
    tenancy = (
        Tenancy.objects.locked().select_related("team", "cluster").get(pk=tenancy_id)
    )
    seen = _idle(now, at=tenancy_id).get(place)
    day = UseDay.objects.filter(tenancy=tenancy_id, flavor=flavor_id).last()
    if seen is None or day is None:
        return False
    UseDay.objects.filter(pk=day.pk).update(told_idle_at=now)
    rows = list(_held(now).filter(tenancy=tenancy_id, flavor=flavor_id).described())
    # Of what came since nobody knows yet whether it is idle.
    number = int(seen.held)
    _tell(tenancy, rows, number, seen.percent or Decimal(0), now=now)
    record(
        Kind.ALLOCATION_IDLE,
        actor=PORTAL,
        subject=("tenancy", tenancy.pk),
        team_id=tenancy.team_id,
        what=_what(rows, number),
        percent=str(seen.percent),
        days=DAYS,
    )
    return True


def _held(now: datetime) -> AllocationQuerySet:
    held = Allocation.objects.live().of_gpus().charged()
    # Where nothing may start, nobody can use what they hold.
    maintained = Cluster.objects.filter(
        in_maintenance(now, since=now - timedelta(days=DAYS))
    )
    places = Tenancy.objects.present().exclude(cluster__in=maintained)
    return held.filter(until__gt=now + ENDS_ANYWAY, tenancy__in=places.values("pk"))


def _told_lately(now: datetime) -> QuerySet[UseDay]:
    return UseDay.objects.filter(told_idle_at__gt=now - TOLD_AGAIN_AFTER)


def _is_idle(seen: Measured, now: datetime) -> bool:
    return (
        seen.percent is not None
        and seen.percent < BELOW_PERCENT
        and seen.samples >= LEAST_LOOKS
        and seen.held >= 1
        and seen.since is not None
        and seen.since <= now - timedelta(days=DAYS)
    )


def _what(rows: list[Allocation], number: int) -> str:
    flavor = rows[0].flavor
    return gpus(number, flavor.kind if flavor is not None else "GPU")


def _tell(
    tenancy: Tenancy,
    rows: list[Allocation],
    number: int,
    percent: Decimal,
    *,
    now: datetime,
) -> None:
    price = sum((row.usd_per_hour for row in rows), Decimal(0)) / sum(
        row.gpus for row in rows
    )
    hourly = price * number
    unused = hourly * (100 - percent) / 100
    start = now - timedelta(days=DAYS)
    cost = cost_of(usd_per_hour=unused, start=start, end=now)
    used = f"{percent:.0f} % of them" if percent >= 1 else "next to none of them"
    kind, about = NoticeKind.GPUS_IDLE, ("tenancy", tenancy.pk)
    link = f"{reverse('utilisation')}?{urlencode({'team': tenancy.team.slug})}"
    message = Message(
        title=f"{_what(rows, number)} of {tenancy.team.name} are idle",
        sentence=f"Work has used {used} for {DAYS} days, and the rest has cost {usd(cost)}. Give back what nobody "
        "needs: it can be asked for again at any time.",
        facts=(
            ("Cluster", tenancy.cluster.title),
            ("Namespace", tenancy.namespace),
            ("Ends in", ahead(min(row.until for row in rows), now)),
            ("Cost a day", usd(hourly * 24)),
        ),
        action="See what is in use",
    )
    members = User.objects.filter(memberships__team=tenancy.team_id)
    tell_with_channels(
        kind, to=members, subject=about, link=link, message=message, now=now
    )
