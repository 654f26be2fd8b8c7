"""What was rejected because too few were free is offered again when there are enough, once, to the longest waiting."""

from dataclasses import replace
from datetime import timedelta

import pytest

from allocations.ends.actions import give_back
from allocations.models import Allocation, Budget
from approvals.decisions.actions import reject
from approvals.fulfilment import free_again
from approvals.models import Request
from approvals.requests.actions import submit
from audit.models import Event
from fleet.models import Cluster, Flavor
from notices.kinds import NoticeKind
from notices.models import Notice
from tests import factories
from tests.scene import DAY, NOW, Scene


def rejected(scene: Scene, gpus: int = 6, *, because: str = "capacity") -> Request:
    request = scene.ask(gpus)
    return reject(
        request.pk,
        by=scene.priya,
        expected_version=1,
        reason="Too few are free.",
        because=because,
        now=NOW,
    )


def free(scene: Scene, gpus: int) -> None:
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=24 - gpus)


def test_it_is_offered_once_when_there_are_enough(scene: Scene) -> None:
    request = rejected(scene)
    free(scene, 5)
    assert free_again.sweep(NOW + DAY) == []
    free(scene, 6)
    assert free_again.sweep(NOW + DAY) == [request.pk]
    assert free_again.sweep(NOW + DAY) == []
    request.refresh_from_db()
    assert (request.offered_again_at, request.state) == (NOW + DAY, "rejected")
    notice = Notice.objects.get(kind=NoticeKind.REQUEST_OFFERED_AGAIN)
    assert (notice.person, notice.link) == (scene.ada, f"/requests/{request.pk}/")
    assert "Nothing is kept for you until then." in notice.said.sentence
    assert Event.objects.latest("seq").kind == "request.offered_again"
    assert not Allocation.objects.exists()
    assert scene.held_usd() == 0


def test_gpus_that_are_given_back_make_it_possible(scene: Scene) -> None:
    scene.ask(2)
    Flavor.objects.update(gpus_total=7)
    request = rejected(scene)
    assert free_again.sweep(NOW + DAY) == []
    give_back(Allocation.objects.get().pk, gpus=None, by=scene.ada, now=NOW + DAY)
    assert free_again.sweep(NOW + DAY) == [request.pk]


def test_who_waits_longest_is_offered_first_and_no_gpu_to_two(scene: Scene) -> None:
    first, second = rejected(scene), rejected(scene)
    free(scene, 11)
    assert free_again.sweep(NOW + DAY) == [first.pk]
    assert free_again.sweep(NOW + DAY + timedelta(minutes=1)) == [second.pk]


def test_what_an_older_ask_needs_is_not_offered_however_long_ago_it_was_rejected(
    scene: Scene,
) -> None:
    free(scene, 0)
    person = factories.person("Cy")
    team = factories.team("Speech", by=person)
    factories.join(team, person)
    place = factories.tenancy(team, scene.flavor.cluster)
    wanted = replace(scene.wanted(2, days=9), team=team, tenancy=place)
    waits = submit(wanted, by=person, now=NOW)
    request = reject(
        scene.ask(1, days=13).pk,
        by=scene.priya,
        expected_version=1,
        reason="Too few are free.",
        because="capacity",
        now=NOW,
    )
    free(scene, 2)
    # From now on it would end more than fourteen days after it was asked for.
    assert free_again.sweep(NOW + 2 * DAY) == []
    free(scene, 3)
    assert free_again.sweep(NOW + 2 * DAY) == [request.pk]
    assert waits.state == "waiting"


@pytest.mark.slow
def test_those_that_stay_impossible_keep_nobody_from_an_offer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_again, "MAX_JUDGED", 2)
    free(scene, 0)
    for _ in range(4):
        rejected(scene, 1)
    person = factories.person("Cy")
    team = factories.team("Speech", by=person)
    factories.join(team, person)
    place = factories.tenancy(team, scene.flavor.cluster)
    wanted = replace(scene.wanted(1), team=team, tenancy=place)
    theirs = submit(wanted, by=person, now=NOW)
    reject(
        theirs.pk,
        by=scene.priya,
        expected_version=1,
        reason="Too few are free.",
        because="capacity",
        now=NOW + timedelta(minutes=1),
    )
    Budget.objects.filter(team=scene.team).update(limit_usd=0)
    free(scene, 24)
    moments = [NOW + DAY + timedelta(minutes=number) for number in range(3)]
    assert [len(free_again.due(moment)) for moment in moments] == [2, 2, 2]
    assert theirs.pk in [pk for moment in moments for pk in free_again.sweep(moment)]


def test_what_was_rejected_for_something_else_or_long_ago_is_not_offered(
    scene: Scene,
) -> None:
    rejected(scene, because="budget")
    old = rejected(scene)
    assert free_again.sweep(NOW + 30 * DAY) == []
    assert free_again.sweep(NOW + 30 * DAY - timedelta(seconds=1)) == [old.pk]


def test_nothing_is_offered_that_the_budget_would_not_bear_or_that_is_offered_no_more(
    scene: Scene,
) -> None:
    request = rejected(scene)
    Budget.objects.update(limit_usd=100)
    assert free_again.sweep(NOW + DAY) == []
    Budget.objects.update(limit_usd=10_000)
    Cluster.objects.update(enabled=False)
    assert free_again.sweep(NOW + DAY) == []
    Cluster.objects.update(enabled=True)
    assert free_again.sweep(NOW + DAY) == [request.pk]


def test_who_left_the_team_is_offered_nothing(scene: Scene) -> None:
    rejected(scene)
    scene.ada.memberships.all().delete()
    assert free_again.sweep(NOW + DAY) == []
