"""What giving back is said to free is what it frees."""

from datetime import timedelta
from decimal import Decimal

import pytest

from allocations.ends.actions import give_back
from allocations.models import Allocation
from allocations.presenting import effect
from audit.models import Event
from tests.scene import scene as make

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize(
    ("is_made", "hours"),
    [
        pytest.param(True, 30, id="in its time"),
        pytest.param(True, 80, id="in its grace, which costs nothing"),
        # As while a cluster is silent: none of it has cost anything.
        pytest.param(False, 30, id="not made yet"),
    ],
)
def test_the_money_that_is_said_to_be_freed_is_freed(
    is_made: bool, hours: int, gpus: int
) -> None:
    scene = make()
    held = Allocation.objects.get(hold__request=scene.ask(2))
    Allocation.objects.filter(pk=held.pk).update(
        charged_from=held.starts_at if is_made else None,
        grace_hours=24,
        kept_until=held.until + timedelta(hours=24),
    )
    held.refresh_from_db()
    now = held.starts_at + timedelta(hours=hours)

    said = effect(held, gpus, now=now)

    give_back(held.pk, gpus=gpus, by=scene.ada, now=now)
    freed = Event.objects.filter(kind="allocation.returned").latest("seq").details
    costs = Allocation.objects.live().filter(team=held.team).usd_per_day()
    assert (said.freed_usd, said.usd_per_day_after) == (
        Decimal(freed["freed_usd"]),
        costs,
    )
