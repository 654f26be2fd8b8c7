"""From when on a team holds fewer GPUs than a run takes, and where that is said before it matters."""

from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from allocations.models import Allocation
from tests import factories
from tests.scene import DAY, HOUR, NOW, Scene
from tests.scene import scene as make
from workloads.runs.held_until import (
    TooFew,
    too_few_before,
    too_few_from,
    too_few_words,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def scene() -> Scene:
    return make()


def holds(scene: Scene, gpus: int, *, until: datetime, starts: datetime = NOW) -> None:
    """GPUs of Vision, kept for an hour after their end; booked where they begin later."""
    row = factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=gpus)
    begun = None if starts > NOW else starts
    booked = {"generation": None} if begun is None else {}
    Allocation.objects.filter(pk=row.pk).update(
        **booked,
        starts_at=starts,
        begun_at=begun,
        charged_from=begun,
        until=until,
        kept_until=until + HOUR,
        remind_at=None,
    )


def found(scene: Scene, need: int) -> TooFew | None:
    return too_few_from(scene.tenancy, scene.flavor, need)


def test_it_is_when_the_last_of_enough_goes_back(scene: Scene) -> None:
    holds(scene, 1, until=NOW + DAY)
    holds(scene, 2, until=NOW + 3 * DAY)
    assert found(scene, 3) == TooFew(at=NOW + DAY + HOUR, left=2, flavor=scene.flavor)
    assert found(scene, 2) == TooFew(
        at=NOW + 3 * DAY + HOUR, left=0, flavor=scene.flavor
    )


def test_what_is_borrowed_anyway_has_no_end_of_its_own(scene: Scene) -> None:
    holds(scene, 1, until=NOW + DAY)
    assert found(scene, 2) is None


def test_what_is_booked_for_then_carries_it_on(scene: Scene) -> None:
    holds(scene, 1, until=NOW + DAY)
    holds(scene, 1, starts=NOW + DAY + HOUR, until=NOW + 3 * DAY)
    assert found(scene, 1) == TooFew(
        at=NOW + 3 * DAY + HOUR, left=0, flavor=scene.flavor
    )


@pytest.mark.parametrize(
    ("until", "is_told"),
    [(NOW + 2 * DAY, True), (None, True), (NOW + DAY + HOUR, False)],
)
def test_it_is_told_of_what_may_run_longer(
    scene: Scene, until: datetime | None, is_told: bool
) -> None:
    holds(scene, 2, until=NOW + DAY)
    found = too_few_before(scene.tenancy, scene.flavor, 2, until=until)
    words = too_few_words(found, scene.tenancy, now=NOW)
    assert words == (
        "Its GPUs end before it may: from Sat 21 Nov, 13:00 UTC on Vision holds none of them, and it can be stopped "
        "then. Keep them longer on the team’s page."
        if is_told
        else ""
    )
    assert too_few_before(scene.tenancy, None, 0, until=until) is None


def test_the_page_of_a_run_says_it_until_it_is_over(
    scene: Scene, client: Client
) -> None:
    now = timezone.now()
    holds(scene, 1, until=now + 30 * timedelta(minutes=1))
    Allocation.objects.update(kept_until=now + 30 * timedelta(minutes=1))
    run = factories.run(scene.tenancy, scene.ada, flavor=scene.flavor, gpus=1)
    client.force_login(scene.ada)
    words = "Its GPUs end before it may"
    assert words in client.get(f"/runs/{run.pk}").content.decode()
    Allocation.objects.update(until=now + DAY, kept_until=now + DAY)
    assert words not in client.get(f"/runs/{run.pk}").content.decode()


def test_nobody_is_sent_to_keep_what_cannot_be_kept(scene: Scene) -> None:
    holds(scene, 2, until=NOW + DAY)
    scene.flavor.is_offered = False
    found = too_few_before(scene.tenancy, scene.flavor, 2, until=None)
    words = too_few_words(found, scene.tenancy, now=NOW)
    assert "Keep them longer" not in words
    assert "They cannot be kept longer: A100 on Training is not offered now." in words
