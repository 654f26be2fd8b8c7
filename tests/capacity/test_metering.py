"""Limits as series of readings: kept hour by hour, told of once a stage, and forgotten."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from audit.models import Event
from capacity.chain.stages import Stage
from capacity.metering.actions import GONE_AFTER, Level, forget, note
from capacity.metering.fleet import note_fleet
from capacity.metering.keys import parsed_quota, quota_key
from capacity.metering.models import KEPT_FOR
from capacity.models import Meter, NodePool, Reading
from fleet.models import Cluster, Flavor
from notices.models import Notice
from tests import factories
from tests.scene import NOW, Scene, scene

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> Scene:
    return scene()


def read(used: int, *, at: datetime = NOW, limit: int = 100, **fields: Any) -> Meter:
    usual = {"key": "quota:a/eastus/b", "title": "Family B in eastus", "unit": "vCPUs"}
    return note(Level(limit=limit, used=used, **usual | fields), now=at)


def told() -> list[str]:
    """What Priya was told, the oldest first."""
    rows = Notice.objects.filter(
        kind="limit_near", person__name="Priya Raman"
    ).order_by("pk")
    return [one.message["title"] for one in rows]


def test_each_stage_is_told_once_on_the_way_up(here: Scene) -> None:
    for hour, used in enumerate((50, 61, 65, 80, 79, 81, 95, 99, 100)):
        read(used, at=NOW + timedelta(hours=hour))
    assert told() == [
        f"Family B in eastus is at {percent} %" for percent in (61, 80, 95)
    ]
    assert [
        one.details["stage"]
        for one in Event.objects.filter(kind="limit.near").order_by("seq")
    ] == [
        60,
        80,
        95,
    ]


def test_a_stage_that_is_jumped_over_is_not_told(here: Scene) -> None:
    read(97)
    assert told() == ["Family B in eastus is at 97 %"]


def test_it_is_told_again_once_it_was_left_well_behind(here: Scene) -> None:
    for hour, used in enumerate((82, 78, 76, 82, 75, 82)):
        read(used, at=NOW + timedelta(hours=hour))
    assert told() == ["Family B in eastus is at 82 %"] * 2


def test_all_platform_leads_are_told_and_nobody_else(here: Scene) -> None:
    read(82)
    people = Notice.objects.filter(kind="limit_near").values_list(
        "person__name", flat=True
    )
    assert set(people) == {"Priya Raman", "Marcus Weber"}


def test_a_raised_limit_makes_room_without_a_word(here: Scene) -> None:
    read(90)
    meter = read(90, limit=200, at=NOW + timedelta(minutes=10))
    assert (meter.percent, meter.stage, meter.told_stage, meter.left) == (
        45,
        Stage.NONE,
        Stage.NONE,
        110,
    )
    assert len(told()) == 1


@pytest.mark.parametrize(
    ("limit", "used", "percent"), [(0, 0, 100), (0, 5, 100), (3, 1, 33), (2, 5, 250)]
)
def test_percent_is_rounded_down_and_a_limit_of_nothing_is_all_used(
    here: Scene, limit: int, used: int, percent: int
) -> None:
    assert read(used, limit=limit).percent == percent


def test_an_hour_is_one_reading_with_the_most_that_was_used_in_it(here: Scene) -> None:
    for minutes, used in ((0, 40), (10, 55), (20, 30), (59, 45)):
        read(used, at=NOW + timedelta(minutes=minutes))
    read(20, at=NOW + timedelta(hours=1))
    rows = Reading.objects.values_list("at", "used")
    assert list(rows) == [(NOW, 55), (NOW + timedelta(hours=1), 20)]


def test_a_limit_that_changes_within_an_hour_is_the_newest_one(here: Scene) -> None:
    read(40)
    read(30, limit=200, at=NOW + timedelta(minutes=10))
    assert list(Reading.objects.values_list("limit", "used")) == [(200, 40)]


def test_what_was_read_before_changes_nothing(here: Scene) -> None:
    read(40, at=NOW + timedelta(minutes=10))
    assert read(99, at=NOW).used == 40
    assert told() == []
    assert Reading.objects.get().used == 40


def test_a_title_follows_what_is_read(here: Scene) -> None:
    read(40)
    assert (
        read(41, title="Family B (new)", at=NOW + timedelta(hours=1)).title
        == "Family B (new)"
    )
    assert Meter.objects.count() == 1


def test_old_readings_and_limits_that_are_there_no_more_are_forgotten(
    here: Scene,
) -> None:
    read(40, at=NOW - KEPT_FOR - timedelta(hours=1))
    read(41, at=NOW)
    read(1, key="quota:a/eastus/gone", at=NOW - GONE_AFTER - timedelta(hours=1))
    forget(NOW)
    assert list(Meter.objects.values_list("key", flat=True)) == ["quota:a/eastus/b"]
    assert list(Reading.objects.values_list("used", flat=True)) == [41]
    assert forget(NOW) == 0


def test_the_fleets_own_limits_are_read(here: Scene) -> None:
    Flavor.objects.update(allocated=6)
    cluster = here.flavor.cluster
    pool = {"cluster": cluster, "vm_size": "x", "seen_at": NOW}
    NodePool.objects.create(name="grows", nodes=3, min_nodes=0, max_nodes=12, **pool)
    NodePool.objects.create(name="stays", nodes=3, **pool)
    NodePool.objects.create(name="off", nodes=0, min_nodes=0, max_nodes=0, **pool)
    note_fleet(now=NOW)
    rows = {one.key: (one.used, one.limit, one.unit) for one in Meter.objects.all()}
    assert rows == {
        "granted:training/a100": (6, 24, "GPUs"),
        "pool:training/grows": (3, 12, "nodes"),
    }
    factories.flavor(cluster, "typo", gpus_total=0)
    Cluster.objects.update(enabled=False)
    later = NOW + timedelta(hours=1)
    note_fleet(now=later)
    assert set(Meter.objects.values_list("seen_at", flat=True)) == {later}
    factories.leave(here.tenancy, to="gone", at=later)
    note_fleet(now=later + timedelta(hours=1))
    assert set(Meter.objects.values_list("seen_at", flat=True)) == {later}


def test_a_quota_is_found_by_its_key() -> None:
    assert (
        quota_key("A-1", "EastUS", "Standard NCASv3_T4 Family")
        == "quota:a-1/eastus/standard ncasv3_t4 family"
    )
    assert parsed_quota("quota:a-1/eastus/a/b") == ("a-1", "eastus", "a/b")
    assert parsed_quota("pool:training/a100") is None
    assert parsed_quota("quota:a-1/eastus") is None
