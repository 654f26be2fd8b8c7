"""How much of what teams hold is in use: what is told of it, by page and over the API, and to whom."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine
from django.test import Client

from allocations.models import Allocation, UseDay
from allocations.use import measuring
from insights.utilisation.gathering import Utilisation, utilisation_of
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.insights.charged import held
from tests.pages import parsed
from tests.scene import DAY, HOUR, NOW, Scene

PAGE = "/capacity/utilisation"


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    """Pages and calls are made at NOW."""
    with time_machine.travel(NOW, tick=False):
        yield


def looked(scene: Scene, used: int, *, days_ago: int = 1) -> None:
    """One look at the queue of Vision, when so many of its GPUs were reserved."""
    at = NOW - days_ago * DAY
    Tenancy.objects.filter(pk=scene.tenancy.pk).update(used={"a100": used}, used_at=at)
    assert measuring.sample(scene.tenancy.pk)


def everything() -> list[Utilisation]:
    return utilisation_of(Allocation.objects.all(), now=NOW)


def two_for_days(scene: Scene) -> Allocation:
    return held(scene, 2, start=NOW - 5 * DAY, end=NOW + 2 * DAY)


def test_what_no_work_uses_is_told_in_gpus_and_money(scene: Scene) -> None:
    two_for_days(scene)
    looked(scene, 1, days_ago=2)
    looked(scene, 0, days_ago=1)
    [one] = everything()
    assert (one.gpus, one.percent) == (2, Decimal(25))
    assert (one.idle_gpus, one.idle_usd_per_day) == (Decimal("1.5"), Decimal(36))
    assert (one.measured.since, one.until) == (NOW - 5 * DAY, NOW + 2 * DAY)


def test_several_of_one_kind_are_one_line_and_one_that_goes_on_has_been_held_since(
    scene: Scene,
) -> None:
    first = held(scene, 1, start=NOW - 6 * DAY, end=NOW - 2 * DAY)
    second = held(scene, 1, start=NOW - 2 * DAY, end=NOW + DAY)
    third = held(scene, 2, start=NOW - 2 * HOUR, end=NOW + 3 * DAY)
    looked(scene, 1, days_ago=1)
    [one] = everything()
    assert [row.pk for row in one.allocations] == [second.pk, third.pk]
    assert first.ended_at is not None
    assert (one.measured.since, one.until) == (NOW - 6 * DAY, NOW + DAY)


def test_older_looks_than_a_week_say_nothing_of_now(scene: Scene) -> None:
    held(scene, 2, start=NOW - 20 * DAY, end=NOW + DAY)
    looked(scene, 2, days_ago=8)
    [one] = everything()
    assert (one.percent, one.idle_usd_per_day) == (None, None)
    looked(scene, 0, days_ago=6)
    [one] = everything()
    assert (one.percent, one.idle_usd_per_day) == (Decimal(0), Decimal(48))


@pytest.mark.parametrize(
    ("since", "is_told"),
    [(DAY - timedelta(seconds=1), False), (DAY, True)],
)
def test_what_is_held_for_less_than_a_day_is_not_called_idle(
    scene: Scene, since: timedelta, is_told: bool
) -> None:
    held(scene, 2, start=NOW - since, end=NOW + DAY)
    Tenancy.objects.update(used={"a100": 0}, used_at=NOW - HOUR)
    measuring.sample(scene.tenancy.pk)
    [one] = everything()
    assert (one.percent is not None) is is_told


@pytest.mark.parametrize(
    ("used", "seen", "told"),
    [
        ({"a100": 1}, timedelta(minutes=2), 1),
        ({"a100": 9}, timedelta(minutes=2), 2),
        ({}, timedelta(minutes=2), 0),
        ({"a100": 1}, timedelta(minutes=11), None),
        (None, None, None),
    ],
)
def test_in_use_now_is_what_was_seen_lately_of_what_is_held(
    scene: Scene,
    used: dict[str, int] | None,
    seen: timedelta | None,
    told: int | None,
) -> None:
    two_for_days(scene)
    Tenancy.objects.update(used=used, used_at=NOW - seen if seen else None)
    [one] = everything()
    assert one.used_now == told


def test_what_came_since_is_not_called_idle(scene: Scene) -> None:
    two_for_days(scene)
    looked(scene, 0)
    held(scene, 2, start=NOW - HOUR, end=NOW + DAY)
    [one] = everything()
    assert (one.gpus, one.percent) == (4, Decimal(0))
    assert (one.idle_gpus, one.idle_usd_per_day) == (Decimal(2), Decimal(48))


def test_what_costs_nothing_is_not_there(scene: Scene) -> None:
    row = two_for_days(scene)
    Allocation.objects.filter(pk=row.pk).update(charged_from=None)
    assert everything() == []


def test_what_costs_most_idle_comes_first_and_what_nobody_can_tell_last(
    scene: Scene, django_assert_num_queries: object
) -> None:
    two_for_days(scene)
    looked(scene, 1)
    expensive = factories.flavor(
        scene.tenancy.cluster, "h100", price_per_gpu_hour="2.00"
    )
    young = factories.flavor(scene.tenancy.cluster, "b200", price_per_gpu_hour="1.00")
    for flavor, start in ((expensive, NOW - 3 * DAY), (young, NOW - HOUR)):
        row = factories.allocation(scene.ada, scene.tenancy, flavor, gpus=1)
        Allocation.objects.filter(pk=row.pk).update(
            starts_at=start, begun_at=start, charged_from=start
        )
    UseDay.objects.create(
        tenancy=scene.tenancy,
        flavor=expensive,
        day=NOW.date(),
        held_sum=1,
        used_sum=0,
        last_at=NOW - HOUR,
    )
    with django_assert_num_queries(3):  # type: ignore[operator]
        found = everything()
    assert [one.flavor.name for one in found] == ["h100", "a100", "b200"]


# The page


def words(client: Client, path: str = PAGE) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return parsed(answer.content.decode()).words


def test_a_lead_takes_back_and_a_member_gives_back(
    scene: Scene, client: Client
) -> None:
    row = two_for_days(scene)
    looked(scene, 1)
    client.force_login(scene.priya)
    page = words(client)
    assert "Take back : 2 × A100 of Vision" in page
    assert "50 %" in page
    assert "$24" in page
    assert (
        f'href="/allocations/{row.pk}/give-back"' in client.get(PAGE).content.decode()
    )
    client.force_login(scene.ada)
    assert "Give back : 2 × A100 of Vision" in words(client)
    client.force_login(scene.mallory)
    assert "Vision" not in words(client)
    assert "No GPUs are held" in words(client)


def test_what_was_idle_on_the_mean_is_not_said_of_what_is_held_now(
    scene: Scene, client: Client
) -> None:
    two_for_days(scene)
    looked(scene, 0)
    held(scene, 2, start=NOW - HOUR, end=NOW + DAY)
    client.force_login(scene.ada)
    page = words(client)
    assert "$48 2.0 on average" in page
    assert "Idle, 7 days 2.0 GPUs, on average" in page


def test_who_may_not_give_back_is_offered_nothing_to_press(
    scene: Scene, client: Client
) -> None:
    two_for_days(scene)
    client.force_login(scene.elena)
    page = words(client)
    assert "Vision" in page
    assert "ake back" not in page
    assert "ive back" not in page


def test_of_several_the_team_page_chooses(scene: Scene, client: Client) -> None:
    two_for_days(scene)
    held(scene, 2, start=NOW - DAY, end=NOW + DAY)
    client.force_login(scene.ada)
    link = "/teams/vision/#what-the-team-holds"
    assert f'href="{link}"' in client.get(PAGE).content.decode()
    assert 'id="what-the-team-holds"' in client.get("/teams/vision/").content.decode()


@pytest.mark.slow
def test_the_list_is_narrowed_to_a_team_and_a_kind(
    scene: Scene, client: Client
) -> None:
    two_for_days(scene)
    speech = factories.team("Speech")
    factories.join(speech, scene.ada)
    other = factories.tenancy(speech, scene.tenancy.cluster)
    factories.allocation(scene.ada, other, scene.flavor, gpus=1)
    client.force_login(scene.priya)
    rows = client.get(f"{PAGE}?team=speech").context["rows"]
    assert [row["cells"][0]["text"] for row in rows] == ["Speech"]
    assert len(client.get(f"{PAGE}?flavor=training/a100").context["rows"]) == 2
    none = client.get(f"{PAGE}?team=nobody")
    assert none.context["rows"] == []
    assert "Nothing is held like this" in none.content.decode()
    factories.team("Empty")
    empty = client.get(f"{PAGE}?team=empty")
    assert "This team holds no GPUs" in empty.content.decode()
    assert empty.context["filter"].errors == {}
    client.force_login(scene.ada)
    strange = client.get(f"{PAGE}?team=empty").content.decode()
    assert "Nothing is held like this" in strange
    assert "Empty" not in strange


def test_what_is_held_is_found_from_where_people_look_for_it(
    scene: Scene, client: Client
) -> None:
    two_for_days(scene)
    client.force_login(scene.ada)
    for path in ("/capacity/", "/costs/"):
        assert f'href="{PAGE}"' in client.get(path).content.decode()
    assert f'href="{PAGE}?team=vision"' in client.get("/teams/vision/").content.decode()
    assert f'href="{PAGE}"' in client.get("/palette?q=idle").content.decode()


# Over the API


def test_the_api_tells_the_same(scene: Scene) -> None:
    row = two_for_days(scene)
    looked(scene, 1)
    [found] = Caller(scene.ada).get("utilisation/").json()["results"]
    assert found == {
        "team": {"slug": "vision", "name": "Vision"},
        "tenancy": scene.tenancy.pk,
        "namespace": scene.tenancy.namespace,
        "flavor": "training/a100",
        "gpus": 2,
        "used_now": None,
        "used_percent": "50.0",
        "idle_gpus": "1.0",
        "idle_usd_per_day": "24.00",
        "held_since": (NOW - 5 * DAY).isoformat().replace("+00:00", "Z"),
        "until": (NOW + 2 * DAY).isoformat().replace("+00:00", "Z"),
        "allocations": [row.pk],
    }
    assert Caller(scene.mallory).get("utilisation/").json()["results"] == []


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("team=nobody", 422, "no_such_team"),
        ("flavor=training/none", 422, "no_such_flavor"),
        ("flavor=none", 422, "no_such_flavor"),
        ("cluster=training", 400, "unknown_field"),
    ],
)
def test_a_filter_that_names_nothing_is_refused(
    scene: Scene, query: str, status: int, code: str
) -> None:
    answer = Caller(scene.ada).get(f"utilisation/?{query}")
    assert answer.status_code == status
    assert answer.json()["errors"][0]["code"] == code


def test_the_api_is_narrowed(scene: Scene) -> None:
    two_for_days(scene)
    caller = Caller(scene.priya)
    for query, number in (
        ("team=vision", 1),
        ("flavor=training/a100", 1),
        ("team=vision&flavor=training/a100", 1),
    ):
        assert len(caller.get(f"utilisation/?{query}").json()["results"]) == number
