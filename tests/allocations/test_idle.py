"""Teams are told of GPUs that they hold and no work uses: what counts as idle, how often, and in which words."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client

from allocations import tasks
from allocations.models import Allocation, UseDay
from allocations.use.idle import LEAST_LOOKS, idle, tell_idle
from audit import clock
from audit.models import Event
from fleet.models import Cluster
from notices.kinds import NoticeKind
from notices.models import Notice
from offboarding.models import Departure
from provisioning.models import Tenancy
from provisioning.stages import Stage
from tests import factories
from tests.insights.charged import held
from tests.scene import DAY, NOW, Scene
from tests.subscribed import channel_of

LATER = NOW + 4 * DAY


@pytest.fixture
def place(scene: Scene) -> tuple[int, int]:
    """Two GPUs of Vision from NOW on for ten days, of which no work has used any until LATER."""
    held(scene, 2, start=NOW, end=NOW + 10 * DAY)
    for day in range(5):
        looked(scene, used=0, day=day)
    return scene.tenancy.pk, scene.flavor.pk


def looked(scene: Scene, *, used: int, day: int, looks: int = LEAST_LOOKS) -> None:
    """A day of looks, of which each saw so many of the two GPUs in use on the mean of a hundred looks."""
    UseDay.objects.update_or_create(
        tenancy=scene.tenancy,
        flavor=scene.flavor,
        day=(NOW + day * DAY).date(),
        defaults={
            "samples": looks,
            "held_sum": 2 * looks,
            "used_sum": 2 * looks * used // 100,
            "last_at": NOW + day * DAY,
        },
    )


def test_the_team_is_told_once_a_week_what_it_cost(
    scene: Scene,
    place: tuple[int, int],
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "now", lambda: LATER)
    channel = channel_of(NoticeKind.GPUS_IDLE)
    tasks.tell_idle()
    tasks.tell_idle()
    told, in_channel = Notice.objects.filter(kind="gpus_idle").order_by("id")
    assert (in_channel.channel, in_channel.message) == (channel, told.message)
    assert told.person == scene.ada
    assert told.message["title"] == "2 × A100 of Vision are idle"
    assert told.message["sentence"] == (
        "Work has used next to none of them for 3 days, and the rest has cost $144. Give back what nobody needs: it "
        "can be asked for again at any time."
    )
    [event] = Event.objects.filter(kind="allocation.idle")
    assert (event.details["what"], event.details["percent"]) == ("2 × A100", "0.0")
    client.force_login(scene.ada)
    assert client.get(told.link).status_code == 200
    Allocation.objects.update(until=NOW + 20 * DAY, kept_until=NOW + 20 * DAY)
    for day in range(5, 13):
        looked(scene, used=0, day=day)
    assert idle(LATER + 7 * DAY - timedelta(seconds=1)) == []
    assert idle(LATER + 7 * DAY) == [place]


@pytest.mark.parametrize(("percent", "is_idle"), [(4, True), (5, False), (60, False)])
def test_what_is_hardly_used_is_idle(
    scene: Scene, place: tuple[int, int], percent: int, is_idle: bool
) -> None:
    for day in range(5):
        looked(scene, used=percent, day=day, looks=1000)
    assert bool(idle(LATER)) is is_idle
    assert tell_idle(place, now=LATER) is is_idle
    assert Notice.objects.filter(kind="gpus_idle").exists() is is_idle


def test_what_was_used_before_the_last_days_is_idle_all_the_same(
    scene: Scene, place: tuple[int, int]
) -> None:
    looked(scene, used=100, day=0)
    assert idle(LATER) == [place]
    looked(scene, used=100, day=1)
    assert idle(LATER) == []


def test_three_days_are_three_whole_ones_just_after_midnight(
    scene: Scene, place: tuple[int, int]
) -> None:
    looked(scene, used=100, day=1)
    midnight = LATER.replace(hour=0, minute=10)
    assert idle(midnight) == []


def test_what_came_since_is_not_called_idle(
    scene: Scene, place: tuple[int, int]
) -> None:
    # Idle GPUs are a reason to give nobody more: these came when nothing was known yet.
    days = list(UseDay.objects.all())
    UseDay.objects.all().delete()
    held(scene, 2, start=LATER - timedelta(minutes=15), end=NOW + 10 * DAY)
    UseDay.objects.bulk_create(days)
    UseDay.objects.filter(day=LATER.date()).update(
        samples=F("samples") + 15, held_sum=F("held_sum") + 15 * 4
    )
    assert tell_idle(place, now=LATER)
    [told] = Notice.objects.filter(kind="gpus_idle")
    assert told.message["title"] == "2 × A100 of Vision are idle"
    assert "has cost $144" in told.message["sentence"]


def test_what_is_held_for_less_than_three_days_is_not_told(
    scene: Scene, place: tuple[int, int]
) -> None:
    Allocation.objects.update(begun_at=NOW + 2 * DAY, charged_from=NOW + 2 * DAY)
    assert idle(LATER) == []
    assert idle(LATER + DAY) == [place]


def test_too_few_looks_say_nothing(scene: Scene, place: tuple[int, int]) -> None:
    for day in range(5):
        looked(scene, used=0, day=day, looks=LEAST_LOOKS // 4 - 1)
    assert idle(LATER) == []


def test_what_goes_back_by_itself_is_left_alone(
    scene: Scene, place: tuple[int, int]
) -> None:
    until = LATER + DAY
    Allocation.objects.update(until=until, kept_until=until)
    assert idle(LATER) == []
    assert idle(LATER - timedelta(seconds=1)) == [place]


def test_a_team_that_has_left_is_not_told(scene: Scene, place: tuple[int, int]) -> None:
    factories.leave(scene.tenancy, to="gone", at=NOW)
    assert Tenancy.objects.get(pk=scene.tenancy.pk).stage == Stage.GONE
    assert not Departure.objects.exists() or idle(LATER) == []
    assert idle(LATER) == []


def test_what_nobody_may_use_for_a_maintenance_is_not_idle(
    scene: Scene, place: tuple[int, int]
) -> None:
    for ended, found in ((DAY / 2, []), (2.9 * DAY, []), (3.1 * DAY, [place])):
        ends = LATER - ended
        Cluster.objects.update(maintenance_starts_at=NOW, maintenance_ends_at=ends)
        assert idle(LATER) == found, ended


def test_places_are_told_apart(
    scene: Scene, place: tuple[int, int], django_assert_num_queries: object
) -> None:
    speech = factories.team("Speech")
    other = factories.tenancy(speech, scene.tenancy.cluster)
    row = factories.allocation(
        factories.person("Ben", teams=[speech]), other, scene.flavor, gpus=1
    )
    Allocation.objects.filter(pk=row.pk).update(
        starts_at=NOW,
        begun_at=NOW,
        charged_from=NOW,
        until=NOW + 10 * DAY,
        kept_until=NOW + 10 * DAY,
        remind_at=None,
    )
    with django_assert_num_queries(4):  # type: ignore[operator]
        assert idle(LATER) == [place]
