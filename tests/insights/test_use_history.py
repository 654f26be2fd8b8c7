"""The use of what teams hold and held, week by week, as it is gathered."""

from decimal import Decimal
from typing import Any

import pytest

from allocations.models import Allocation
from insights.utilisation.history import history_of
from insights.utilisation.weeks import summed
from tests import factories
from tests.insights.charged import granted
from tests.insights.used import MONDAY, four_for_weeks, held, measured, of_others
from tests.scene import DAY, NOW, Scene


def test_weeks_are_told_of_what_has_ended_too(scene: Scene) -> None:
    four_for_weeks(scene, 1)
    measured(scene, 1, weeks_ago=1)
    of_others(scene)
    speech, vision = history_of(Allocation.objects.all(), now=NOW)
    assert (speech.tenancy.team.name, vision.tenancy.team.name) == ("Speech", "Vision")
    assert [one.held for one in speech.weeks if one.held] == [Decimal(24)]
    ended, running = speech.weeks[-2], vision.weeks[-1]
    assert ended.used == Decimal(6)
    assert ended.unused_usd == Decimal(36)
    assert (vision.weeks[-2].held, vision.weeks[-2].percent) == (
        Decimal(4 * 168),
        Decimal(25),
    )
    # Held since Monday, and nobody has looked.
    assert running.held == Decimal(4 * 108)
    assert running.percent is None
    total = summed((one.weeks for one in (speech, vision)), now=NOW)
    assert total[-2].held == Decimal(696)
    assert total[-2].unused_usd == Decimal(36 + 504)


def test_grace_and_what_nobody_has_made_yet_are_not_held(scene: Scene) -> None:
    row = held(scene, 1, start=MONDAY, end=NOW + DAY)
    Allocation.objects.filter(pk=row.pk).update(until=NOW - DAY)
    unmade = held(scene, 1, start=MONDAY, end=NOW + DAY)
    Allocation.objects.filter(pk=unmade.pk).update(charged_from=None)
    [found] = history_of(Allocation.objects.all(), now=NOW)
    assert found.weeks[-1].held == 84


def test_what_was_given_back_in_part_counts_until_then(scene: Scene) -> None:
    held(scene, 1, start=MONDAY, end=MONDAY + DAY)
    held(scene, 3, start=MONDAY, end=NOW + DAY)
    [found] = history_of(Allocation.objects.all(), now=NOW)
    assert found.weeks[-1].held == 24 + 3 * 108


@pytest.mark.slow
@pytest.mark.parametrize("places", [1, 12])
def test_it_takes_two_queries_whatever_is_held(
    scene: Scene, places: int, django_assert_num_queries: Any
) -> None:
    for number in range(places):
        flavor = factories.flavor(scene.tenancy.cluster, f"kind{number}")
        granted(scene.ada, scene.tenancy, flavor, 1, start=MONDAY, end=NOW + DAY)
    with django_assert_num_queries(2):
        found = history_of(Allocation.objects.all(), now=NOW)
        assert len({(one.flavor.key, one.flavor.kind) for one in found}) == places
        assert {one.tenancy.team.name for one in found} == {"Vision"}
