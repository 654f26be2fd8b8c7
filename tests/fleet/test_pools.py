"""What can be had of a pool that an autoscaler looks after: said by platform leads, where the portal sees the nodes."""

from typing import Any

import pytest

from accounts.models import User
from accounts.roles import Role
from audit.models import Event
from fleet.flavors.actions import add_flavor, change_flavor
from fleet.models import Cluster, Flavor
from fleet.presenting import bar
from tests import factories
from tests.calling import Caller
from web.refusals import BadInput, NoRight

pytestmark = pytest.mark.django_db

H100 = {
    "product": "H100",
    "memory_gb": 94,
    "gpus_per_node": 2,
    "price_per_gpu_hour": 7,
    "node_labels": {"gpu": "h100"},
}


@pytest.fixture
def priya() -> User:
    return factories.person("Priya", Role.PLATFORM_LEAD)


@pytest.fixture
def east() -> Cluster:
    return factories.cluster("east", kubeconfig="east.yaml")


def test_a_pool_without_a_node_can_be_had_as_far_as_it_grows(
    east: Cluster, priya: User
) -> None:
    values = {**H100, "max_nodes": 4, "growing_minutes": 6}
    flavor = Flavor.objects.get(
        pk=add_flavor(east, name="h100", values=values, by=priya).pk
    )
    assert (flavor.gpus_ready, flavor.can_grow_to, flavor.gpus_total, flavor.free) == (
        0,
        8,
        8,
        8,
    )
    assert (flavor.free_and_ready, flavor.free_words) == (
        0,
        "8 can be had, 0 ready now",
    )
    assert "0 ready now, grows to 8, usually within 6 minutes" in bar(flavor)["note"]
    assert flavor.take(8)
    assert not flavor.take(1)


def test_a_changed_maximum_changes_what_can_be_had_and_is_audited(
    east: Cluster, priya: User
) -> None:
    flavor = factories.flavor(east, "h100", gpus_per_node=2, gpus_total=2)
    assert change_flavor(flavor.pk, values={"max_nodes": 3}, by=priya).free == 6
    details = Event.objects.get(kind="flavor.changed").details
    assert (details["max_nodes_before"], details["max_nodes"]) == (0, 3)
    assert change_flavor(flavor.pk, values={"max_nodes": 0}, by=priya).free == 2
    assert Flavor.objects.get().gpus_total == 2


def test_cordoned_gpus_are_not_had_and_take_a_place_in_the_pool(
    east: Cluster, priya: User
) -> None:
    flavor = factories.flavor(
        east, "h100", gpus_per_node=2, gpus_total=2, gpus_cordoned=4
    )
    grown = change_flavor(flavor.pk, values={"max_nodes": 5}, by=priya)
    assert (grown.gpus_total, grown.gpus_at_most, grown.can_grow_to) == (6, 10, 10)
    assert (bar(grown)["total"], bar(grown)["blocked"]) == (10, 4)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"gpus_ready": 2, "gpus_total": 8}, "2 ready now, grows to 8"),
        ({"gpus_ready": 8, "gpus_total": 8}, "all ready now"),
        ({"gpus_ready": 12, "gpus_total": 12}, "all ready now"),
        ({"gpus_total": 8, "allocated": 10}, "2 held beyond what it grows to"),
        (
            {"gpus_total": 4, "gpus_cordoned": 4, "allocated": 6},
            "2 held on nodes that are cordoned or not ready",
        ),
        (
            {"max_nodes": 0, "gpus_total": 0, "gpus_cordoned": 4, "allocated": 3},
            "3 held on nodes that are cordoned or not ready",
        ),
        (
            {"max_nodes": 0, "gpus_total": 0, "allocated": 3},
            "3 held on nodes that are gone",
        ),
        (
            {"max_nodes": 0, "gpus_total": 0, "node_labels": {"gpu": "h10O"}},
            "no node with GPUs has gpu=h10O",
        ),
    ],
)
def test_the_bar_says_what_is_ready_and_what_is_held_beyond_it(
    numbers: dict[str, int], words: str, east: Cluster
) -> None:
    flavor = factories.flavor(
        east,
        "h100",
        **({"gpus_per_node": 2, "max_nodes": 4, "gpus_ready": 0} | numbers),
    )
    assert words in bar(flavor)["note"].split(" · ")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"max_nodes": 1001}, "max_nodes"),
        ({"min_nodes": 1}, "min_nodes"),
        ({"min_nodes": 3, "max_nodes": 2}, "min_nodes"),
        ({"max_nodes": 2, "growing_minutes": 241}, "growing_minutes"),
        ({"max_nodes": -1}, "max_nodes"),
    ],
)
def test_what_no_autoscaler_does_is_refused_at_its_field(
    values: dict[str, Any], field: str, east: Cluster, priya: User
) -> None:
    flavor = factories.flavor(east, "h100")
    with pytest.raises(BadInput) as refused:
        change_flavor(flavor.pk, values=values, by=priya)
    assert refused.value.field == field
    assert not Event.objects.filter(kind="flavor.changed").exists()


def test_where_nobody_sees_the_nodes_the_number_is_told_and_no_autoscaler(
    priya: User,
) -> None:
    west = factories.cluster(
        "west", delivery="git", git_url="https://git.example.com/fleet.git"
    )
    flavor = factories.flavor(west, "h100", gpus_total=4, gpus_seen_at=None)
    with pytest.raises(BadInput) as refused:
        change_flavor(flavor.pk, values={"max_nodes": 2}, by=priya)
    assert (refused.value.code, refused.value.field) == ("not_observed", "max_nodes")
    told = change_flavor(flavor.pk, values={"gpus_total": 8}, by=priya)
    assert (told.gpus_total, told.gpus_ready, told.can_grow_to) == (8, 8, None)


def test_others_than_platform_leads_say_nothing_about_it(east: Cluster) -> None:
    flavor = factories.flavor(east, "h100")
    with pytest.raises(NoRight):
        change_flavor(flavor.pk, values={"max_nodes": 2}, by=factories.person("Ada"))


def test_other_nodes_may_leave_so_that_the_list_of_before_says_nothing(
    east: Cluster, priya: User
) -> None:
    flavor = factories.flavor(east, "h100")
    Cluster.objects.update(nodes_seen=6)
    change_flavor(flavor.pk, values={"price_per_gpu_hour": 8}, by=priya)
    assert Cluster.objects.get().nodes_seen == 6
    change_flavor(flavor.pk, values={"max_nodes": 2}, by=priya)
    assert Cluster.objects.get().nodes_seen == 0


def test_the_api_takes_and_shows_the_numbers(east: Cluster, priya: User) -> None:
    flavor = factories.flavor(
        east, "h100", gpus_per_node=2, gpus_total=2, gpus_cordoned=2, allocated=3
    )
    path = f"flavors/{flavor.pk}/"
    shown = (
        Caller(priya)
        .patch(path, {"min_nodes": 1, "max_nodes": 4, "growing_minutes": 6})
        .json()
    )
    numbers = (
        "ready",
        "cordoned",
        "can_grow_to",
        "growing_minutes",
        "gpus_total",
        "free",
        "free_and_ready",
    )
    assert [shown[name] for name in numbers] == [2, 2, 8, 6, 6, 3, 0]
    assert (shown["min_nodes"], shown["max_nodes"]) == (1, 4)
    assert Caller(priya).patch(path, {"max_nodes": -1}).status_code == 422
    fixed = factories.flavor(east, "a100")
    assert Caller(priya).get(f"flavors/{fixed.pk}/").json()["can_grow_to"] is None
