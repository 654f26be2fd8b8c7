"""What becomes of teams' places on a cluster that is written off: what they hold ends, then a worker lets go of them.

Safe to repeat, to interrupt and to begin late: a place is let go of last, so that what it holds is found until then.
"""

from datetime import datetime
from functools import partial

from django.db import transaction

from approvals.fulfilment import leaving as requests
from approvals.shares import actions as apart
from audit.actors import PORTAL
from offboarding import notices as telling
from offboarding.sweep import end_what_has_data, give_back
from provisioning import leaving
from provisioning.models import Tenancy
from reconciling.sweeping import for_each

WHY = "its cluster is gone for good"


def sweep(*, now: datetime) -> None:
    """End what is held at each place on a cluster that is written off; one at which it fails keeps no other from it."""
    lost = Tenancy.objects.present().filter(cluster__written_off_at__isnull=False)
    for_each(lost.order_by("pk").values_list("pk", flat=True), partial(let_go, now=now))


def let_go(tenancy_id: int, *, now: datetime) -> None:
    """End what is asked for, booked and held at one place, and have it let go of; its team is told once."""
    team = Tenancy.objects.select_related("team").get(pk=tenancy_id).team
    waiting = requests.waiting(team, [tenancy_id], whole=False)
    for request_id in list(waiting.values_list("pk", flat=True)):
        requests.drop(request_id, actor=PORTAL, now=now, why=WHY)
    apart.drop(tenancy_id, now=now)
    give_back(team, [tenancy_id], whole=False, why=WHY, now=now)
    end_what_has_data([tenancy_id], why=WHY, now=now)
    _lose(tenancy_id, now=now)


@transaction.atomic
def _lose(tenancy_id: int, *, now: datetime) -> None:
    place = leaving.locked(tenancy_id)
    if place.stands:
        telling.lost(place, now=now)
    leaving.lose(tenancy_id, actor=PORTAL, now=now)
