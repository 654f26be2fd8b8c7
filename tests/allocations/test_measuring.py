"""What is held is measured look by look: each counted once, by its day, of what was held then."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from allocations import tasks
from allocations.ends.actions import give_back
from allocations.models import Allocation, UseDay
from allocations.use import measuring as use
from allocations.use.measuring import Measured
from provisioning.models import Tenancy
from tests.scene import DAY, HOUR, NOW, Scene

MINUTE = timedelta(minutes=1)


@pytest.fixture
def held(scene: Scene) -> Allocation:
    """Two GPUs for three days from NOW on."""
    return Allocation.objects.get(hold=scene.ask(2, days=3).hold_id)


def look(scene: Scene, used: int | None, at: datetime) -> None:
    """What a worker leaves that has read the queue."""
    seen = None if used is None else {"a100": used, "h100": 5}
    Tenancy.objects.filter(pk=scene.tenancy.pk).update(used=seen, used_at=at)


def measured(scene: Scene, *, now: datetime, days: int = 14) -> Decimal | None:
    """Of all that was ever held."""
    return use.of_held(
        scene.tenancy.pk, scene.flavor.pk, held=16, now=now, days=days
    ).percent


def sampled(scene: Scene, used: int | None, at: datetime) -> bool:
    look(scene, used, at)
    return use.sample(scene.tenancy.pk)


def test_the_mean_is_over_all_looks(scene: Scene, held: Allocation) -> None:
    for number, used in enumerate((2, 0, 1)):
        assert sampled(scene, used, NOW + number * MINUTE)
    assert measured(scene, now=NOW + HOUR) == 50
    row = UseDay.objects.get()
    assert (row.samples, row.held_sum, row.used_sum, row.last_at) == (
        3,
        6,
        3,
        NOW + 2 * MINUTE,
    )


def test_a_look_is_counted_once_and_at_most_one_a_minute(
    scene: Scene, held: Allocation
) -> None:
    assert sampled(scene, 2, NOW)
    for at in (NOW, NOW + MINUTE / 2, NOW - HOUR):
        assert not sampled(scene, 0, at)
    assert measured(scene, now=NOW) == 100


def test_what_is_borrowed_does_not_count_above_what_is_held(
    scene: Scene, held: Allocation
) -> None:
    assert sampled(scene, 16, NOW)
    assert measured(scene, now=NOW) == 100


def test_nothing_measured_is_not_nothing_used(scene: Scene, held: Allocation) -> None:
    assert measured(scene, now=NOW) is None
    assert not use.sample(scene.tenancy.pk)
    assert not sampled(scene, None, NOW)
    assert measured(scene, now=NOW) is None
    assert sampled(scene, 0, NOW)
    assert measured(scene, now=NOW) == 0


def test_only_what_is_held_is_measured(scene: Scene) -> None:
    assert not sampled(scene, 3, NOW)
    assert measured(scene, now=NOW) is None


def test_a_part_given_back_is_measured_no_more(scene: Scene, held: Allocation) -> None:
    sampled(scene, 1, NOW)
    give_back(held.pk, gpus=1, by=scene.ada, now=NOW + HOUR)
    sampled(scene, 1, NOW + HOUR)
    row = UseDay.objects.get()
    assert (row.held_sum, row.used_sum) == (3, 2)
    assert measured(scene, now=NOW + HOUR) == Decimal("66.7")


def test_only_the_last_days_count(scene: Scene, held: Allocation) -> None:
    sampled(scene, 0, NOW)
    sampled(scene, 2, NOW + DAY)
    assert UseDay.objects.count() == 2
    assert measured(scene, now=NOW + DAY, days=1) == 100
    assert measured(scene, now=NOW + DAY, days=2) == 50
    assert measured(scene, now=NOW + 13 * DAY) == 50
    assert measured(scene, now=NOW + 14 * DAY) == 100
    assert measured(scene, now=NOW + 15 * DAY) is None


def test_many_are_asked_for_at_once(
    scene: Scene, held: Allocation, django_assert_num_queries: object
) -> None:
    sampled(scene, 1, NOW)
    place, other = (
        (scene.tenancy.pk, scene.flavor.pk),
        (scene.tenancy.pk, scene.flavor.pk + 1),
    )
    with django_assert_num_queries(2):  # type: ignore[operator]
        found = use.of_all_held({place: 2, other: 1}, now=NOW)
    assert found == {
        place: Measured(Decimal(50), 1, NOW, Decimal(2)),
        other: Measured(None, 0, None, Decimal(0)),
    }


def test_the_sweep_counts_what_is_due_and_nothing_twice(
    scene: Scene, held: Allocation
) -> None:
    look(scene, 1, NOW)
    assert use.due() == [scene.tenancy.pk]
    for _ in range(2):
        tasks.sample_use()
    assert use.due() == []
    assert UseDay.objects.get().samples == 1


def test_several_places_together_count_by_the_gpus_that_were_seen_there() -> None:
    idle = use.Measured(Decimal(0), 100, NOW, Decimal(2))
    busy = use.Measured(Decimal(100), 50, NOW - DAY, Decimal(4))
    new = use.Measured(None, 0, None, Decimal(0))
    assert use.together([idle, busy, new]) == use.Measured(
        Decimal("50.0"), 100, NOW - DAY, Decimal(6)
    )
    assert use.together([new]) == new
