"""How tenancies are worked on: one worker for each, so many of a cluster at once."""

from provisioning import left_out, parking, throttle
from provisioning.enqueue import queue
from provisioning.models import Tenancy, TenancyQuerySet
from reconciling.controller import Controller
from reconciling.slots import Slots


def _rows() -> TenancyQuerySet:
    return Tenancy.objects.select_related("cluster__throttle")


def _limit(tenancy: Tenancy) -> int:
    return throttle.max_concurrent(tenancy.cluster)


CONTROLLER: Controller[Tenancy] = Controller(
    rows=_rows,
    queue=queue,
    park=parking.park,
    slots=Slots("cluster", _limit, left_out.note),
)
acquire = CONTROLLER.acquire
