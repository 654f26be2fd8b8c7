"""A departure goes on by itself, step by step as its dates come: safe to repeat, to interrupt and to begin late.

What is to be done is read from the database each time; each step is an action in a transaction of its own.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from accounts.models import Team
from allocations.bookings import actions as bookings
from allocations.ends import actions as ends
from allocations.models import Allocation
from approvals.fulfilment import leaving as requests
from approvals.shares import actions as apart
from audit.actors import PORTAL
from offboarding import actions as leaving_actions
from offboarding.models import Departure, DeparturePlace
from offboarding.plan import Due, held_back_of, may_delete
from provisioning import leaving
from provisioning.models import Tenancy
from provisioning.stages import Stage
from reconciling.sweeping import for_each

WHY = "the team leaves"


def sweep(*, now: datetime) -> None:
    """Take every departure one step further where its date has come, then delete what was kept long enough.

    A departure or a place at which it fails keeps no other from going on.
    """
    under_way = Departure.objects.under_way().order_by("pk")
    try:
        for_each(under_way.values_list("pk", flat=True), partial(advance, now=now))
    finally:
        try:
            delete_due(now=now)
        finally:
            for_each(under_way.all(), partial(_end_places, now=now))


def advance(departure_id: int, *, now: datetime) -> None:
    """Withdraw what is asked, and from its date on drain its places and give back what they hold."""
    found = (
        Departure.objects.under_way()
        .select_related("team")
        .filter(pk=departure_id)
        .first()
    )
    if found is None:
        return
    _drop_requests(found, now=now)
    if found.leaves_at > now:
        return
    for tenancy_id in _places(found, Stage.LEAVING):
        leaving.drain(
            tenancy_id, retained_until=found.retained_until, actor=PORTAL, now=now
        )
    give_back(
        found.team,
        _places(found, Stage.RETAINED),
        whole=found.is_whole,
        why=WHY,
        now=now,
    )


def delete_due(*, now: datetime) -> None:
    """Begin to delete what was kept until its date; when that is too much at once, only what a person agreed to."""
    held_back = held_back_of(_due(now), present=Tenancy.objects.present().count())
    if held_back:
        leaving_actions.hold_back(held_back, now=now)
    for_each(may_delete(_due(now)), partial(leaving.remove, actor=PORTAL, now=now))


def _due(now: datetime) -> list[Due]:
    rows = (
        DeparturePlace.objects.filter(
            is_open=True,
            tenancy__stage=Stage.RETAINED,
            tenancy__retained_until__lte=now,
            tenancy__drained_at__isnull=False,
        )
        .select_related("tenancy", "departure")
        .order_by("tenancy__retained_until", "tenancy")
    )
    return [
        Due(
            row.tenancy_id,
            row.departure_id,
            row.departure.held_back_at is not None,
            row.departure.agreed_at is not None,
        )
        for row in rows
        if (until := row.tenancy.kept_until) is not None and until <= now
    ]


def _places(found: Departure, *stages: Stage) -> list[int]:
    rows = Tenancy.objects.filter(
        departures__departure=found, departures__is_open=True, stage__in=stages
    )
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _drop_requests(found: Departure, *, now: datetime) -> None:
    tenancies = list(found.places.values_list("tenancy_id", flat=True))
    waiting = requests.waiting(found.team, tenancies, whole=found.is_whole)
    for request_id in list(waiting.values_list("pk", flat=True)):
        requests.drop(request_id, actor=PORTAL, now=now, why=WHY)
    for tenancy_id in tenancies:
        apart.drop(tenancy_id, now=now)


def give_back(
    team: Team, tenancies: Sequence[int], *, whole: bool, why: str, now: datetime
) -> None:
    """Give back the GPUs of these places, and end what else is held there, or anywhere, but what has data."""
    held = (
        Allocation.objects.live().of_gpus().filter(tenancy__in=tenancies).order_by("pk")
    )
    for allocation_id in list(held.values_list("pk", flat=True)):
        ends.take_back(allocation_id, actor=PORTAL, now=now, why=why)
    booked = (
        Allocation.objects.booked()
        .of_gpus()
        .filter(tenancy__in=tenancies)
        .order_by("pk")
    )
    for allocation_id in list(booked.values_list("pk", flat=True)):
        bookings.cancel(allocation_id, actor=PORTAL, now=now, why=why)
    if tenancies:
        others = requests.ending_with_work(team, tenancies, whole=whole)
        for request_id in list(others.values_list("pk", flat=True)):
            requests.let_go(request_id, actor=PORTAL, now=now, why=why)


def _end_places(found: Departure, *, now: datetime) -> None:
    """End what has data at places that are deleted, or gone already, and then the departure.

    Before that, all of it could be restored.
    """
    tenancies = _places(found, Stage.REMOVING, Stage.GONE)
    end_what_has_data(tenancies, why=WHY, now=now)
    leaving_actions.finish(found.pk, actor=PORTAL, now=now)


def end_what_has_data(tenancies: Sequence[int], *, why: str, now: datetime) -> None:
    """End what has data at places that nobody can come back to."""
    for request_id in list(
        requests.ending_with_places(tenancies).values_list("pk", flat=True)
    ):
        requests.let_go(request_id, actor=PORTAL, now=now, why=why)
    for tenancy_id in tenancies:
        ends.drop_take_downs(tenancy_id, now=now)
