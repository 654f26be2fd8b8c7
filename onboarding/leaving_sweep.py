"""A departure goes on by itself, step by step as its dates come: safe to repeat, to interrupt and to begin late.

What is to be done is read from the database each time; each step is an action in a transaction of its own.
"""

from datetime import datetime

from django.db import transaction

from allocations import actions as allocations
from allocations.models import Allocation
from approvals import apart
from approvals import leaving as requests
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from audit.models import Event
from onboarding import leaving_actions
from onboarding.leaving_model import Departure
from onboarding.leaving_plan import may_delete
from provisioning import leaving
from provisioning.models import Tenancy
from provisioning.stages import Stage


def sweep(*, now: datetime) -> None:
    """Take every departure one step further where its date has come, then delete what was kept long enough."""
    for departure_id in Departure.objects.under_way().order_by("pk").values_list("pk", flat=True):
        advance(departure_id, now=now)
    delete_due(now=now)
    for departure_id in Departure.objects.under_way().order_by("pk").values_list("pk", flat=True):
        leaving_actions.finish(departure_id, actor=PORTAL, now=now)


def advance(departure_id: int, *, now: datetime) -> None:
    """Withdraw what is asked, and from its date on drain its places and give back what they hold."""
    found = Departure.objects.under_way().select_related("team").filter(pk=departure_id).first()
    if found is None:
        return
    _drop_requests(found, now=now)
    if found.leaves_at > now:
        return
    for tenancy_id in _places(found, Stage.LEAVING):
        leaving.drain(tenancy_id, retained_until=found.retained_until, actor=PORTAL, now=now)
    _give_back(found, now=now)


def delete_due(*, now: datetime) -> None:
    """Begin to delete what was kept until its date; when that is too much at once, only what a person agreed to."""
    rows = Tenancy.objects.filter(stage=Stage.RETAINED, retained_until__lte=now, departures__is_open=True)
    due = list(rows.order_by("retained_until", "pk").values_list("pk", "departures__departure__agreed_at"))
    agreed = [pk for pk, agreed_at in due if agreed_at is not None]
    pks = [pk for pk, _ in due]
    chosen = may_delete(pks, agreed, present=Tenancy.objects.present().count())
    for tenancy_id in chosen:
        leaving.remove(tenancy_id, actor=PORTAL, now=now)
    if len(chosen) < len(pks):
        _say_braked(len(pks), now=now)


def is_braked(*, now: datetime) -> bool:
    """Whether so much is to be deleted now that a person must agree."""
    due = Tenancy.objects.filter(stage=Stage.RETAINED, retained_until__lte=now).values_list("pk", flat=True)
    pks = list(due)
    return bool(pks) and not may_delete(pks, [], present=Tenancy.objects.present().count())


def _places(found: Departure, stage: Stage) -> list[int]:
    rows = Tenancy.objects.filter(departures__departure=found, departures__is_open=True, stage=stage)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _drop_requests(found: Departure, *, now: datetime) -> None:
    tenancies = list(found.places.values_list("tenancy_id", flat=True))
    waiting = requests.waiting(found.team, tenancies, whole=found.is_whole)
    for request_id in list(waiting.values_list("pk", flat=True)):
        requests.drop(request_id, actor=PORTAL, now=now)
    for tenancy_id in tenancies:
        apart.drop(tenancy_id, now=now)


def _give_back(found: Departure, *, now: datetime) -> None:
    """Give back the GPUs of drained places, and end what else is held there."""
    tenancies = _places(found, Stage.RETAINED)
    held = Allocation.objects.live().filter(tenancy__in=tenancies).order_by("pk")
    for allocation_id in list(held.values_list("pk", flat=True)):
        allocations.take_back(allocation_id, actor=PORTAL, now=now)
    if tenancies:
        others = requests.held(found.team, tenancies, whole=found.is_whole)
        for request_id in list(others.values_list("pk", flat=True)):
            requests.let_go(request_id, actor=PORTAL, now=now)


@transaction.atomic
def _say_braked(due: int, *, now: datetime) -> None:
    """Once a day, however often it is swept."""
    day = now.date().isoformat()
    if not Event.objects.filter(kind=Kind.DEPARTURE_BRAKED, details__day=day).exists():
        record(Kind.DEPARTURE_BRAKED, actor=PORTAL, subject=("departure", 0), due=due, day=day)
