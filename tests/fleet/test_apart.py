"""Nodes that are one team's alone have a taint and a label of their own, and nobody else is given them later."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import Team, User
from accounts.roles import Role
from fleet.flavors.actions import add_flavor, change_flavor
from fleet.models import Cluster, Flavor
from tests import factories
from tests.calling import Caller
from web.refusals import BadInput

pytestmark = pytest.mark.django_db
GPU = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
OWN = {"key": "team", "value": "vision", "effect": "NoSchedule"}
APART: dict[str, Any] = {
    "node_labels": {"accelerator": "a100", "team": "vision"},
    "node_taints": [GPU, OWN],
    "dedicated_to": "vision",
}
NEW: dict[str, Any] = {
    "product": "A100",
    "memory_gb": 80,
    "gpus_per_node": 8,
    "price_per_gpu_hour": "3.67",
    "node_labels": {"accelerator": "a100"},
    "node_taints": [GPU],
}


@pytest.fixture
def priya() -> User:
    return factories.person("Priya", Role.PLATFORM_LEAD)


@pytest.fixture
def cluster() -> Cluster:
    """One kind of GPU that all teams share, and two teams."""
    made = factories.cluster("training")
    factories.flavor(
        made, "a100", node_labels={"accelerator": "a100"}, node_taints=[GPU]
    )
    for name in ("Vision", "Speech"):
        factories.team(name)
    return made


@pytest.fixture
def own(cluster: Cluster, priya: User) -> Flavor:
    """A kind of GPU that is Vision's alone."""
    return add_flavor(cluster, name="vision-a100", values=NEW | APART, by=priya)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"node_labels": {}, "node_taints": []}, "node_taints"),
        ({"node_taints": []}, "node_taints"),
        ({"node_taints": [GPU]}, "node_taints"),
        ({"node_taints": [OWN | {"effect": "PreferNoSchedule"}]}, "node_taints"),
        ({"node_labels": {}}, "node_labels"),
        ({"node_labels": {"accelerator": "a100"}}, "node_labels"),
    ],
)
def test_nodes_of_ones_own_need_a_taint_and_a_label_of_their_own(
    cluster: Cluster, priya: User, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadInput) as refused:
        add_flavor(cluster, name="vision-a100", values=NEW | APART | given, by=priya)
    assert (refused.value.field, refused.value.code) == (field, "not_apart")
    made = add_flavor(
        cluster,
        name="vision-a100",
        values=NEW | APART | given | {"dedicated_to": ""},
        by=priya,
    )
    with pytest.raises(BadInput) as refused:
        change_flavor(made.pk, values={"dedicated_to": "vision"}, by=priya)
    assert refused.value.field == field
    assert Flavor.objects.get(pk=made.pk).dedicated_to is None


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_that_keeps_others_away_is_enough(
    cluster: Cluster, priya: User, effect: str
) -> None:
    made = add_flavor(
        cluster,
        name="mine",
        values=NEW | APART | {"node_taints": [OWN | {"effect": effect}]},
        by=priya,
    )
    assert made.dedicated_to is not None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"node_taints": []}, "node_taints"),
        ({"node_labels": {"accelerator": "a100"}}, "node_labels"),
    ],
)
def test_what_keeps_others_off_stays_while_it_is_one_teams(
    own: Flavor, priya: User, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadInput) as refused:
        change_flavor(own.pk, values=given, by=priya)
    assert refused.value.field == field
    change_flavor(own.pk, values=given | {"dedicated_to": ""}, by=priya)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"node_taints": [GPU, OWN]}, "node_taints"),
        ({"node_labels": {"accelerator": "a100", "team": "vision"}}, "node_labels"),
    ],
)
def test_others_are_not_given_the_same_nodes_later(
    own: Flavor, cluster: Cluster, priya: User, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadInput, match="vision-a100") as refused:
        change_flavor(Flavor.objects.get(name="a100").pk, values=given, by=priya)
    assert (refused.value.field, refused.value.code) == (field, "not_apart")
    with pytest.raises(BadInput, match="vision-a100"):
        add_flavor(cluster, name="new", values=NEW | given, by=priya)


def test_another_team_is_not_given_the_same_nodes_either(
    own: Flavor, cluster: Cluster, priya: User
) -> None:
    with pytest.raises(BadInput) as refused:
        add_flavor(
            cluster,
            name="speech-a100",
            values=NEW | APART | {"dedicated_to": "speech"},
            by=priya,
        )
    assert refused.value.field == "node_taints"
    apart = {
        "node_labels": {"team": "speech"},
        "node_taints": [OWN | {"value": "speech"}],
    }
    made = add_flavor(
        cluster,
        name="speech-a100",
        values=NEW | {"dedicated_to": "speech"} | apart,
        by=priya,
    )
    with pytest.raises(BadInput):
        change_flavor(
            made.pk, values={"dedicated_to": "", "node_taints": [OWN]}, by=priya
        )
    change_flavor(made.pk, values={"dedicated_to": ""}, by=priya)


def test_the_same_nodes_in_slices_are_one_teams_together(
    own: Flavor, cluster: Cluster, priya: User
) -> None:
    slices = {"resource": "nvidia.com/mig-1g.10gb"}
    made = add_flavor(cluster, name="vision-1g", values=NEW | APART | slices, by=priya)
    assert made.dedicated_to == own.dedicated_to


def test_another_cluster_has_nodes_of_its_own(own: Flavor, priya: User) -> None:
    add_flavor(
        factories.cluster("other"),
        name="same",
        values=NEW | APART | {"dedicated_to": ""},
        by=priya,
    )


def test_what_was_not_apart_before_hinders_nothing_else(
    cluster: Cluster, priya: User
) -> None:
    # As an older version left it.
    mixed = factories.flavor(cluster, "mixed", node_labels={}, node_taints=[])
    Flavor.objects.filter(pk=mixed.pk).update(
        dedicated_to=Team.objects.get(slug="vision")
    )
    change_flavor(mixed.pk, values={"price_per_gpu_hour": "4"}, by=priya)
    change_flavor(
        Flavor.objects.get(name="a100").pk,
        values={"node_labels": {"accelerator": "h100"}},
        by=priya,
    )


def test_the_page_says_it_at_the_field(
    client: Client, own: Flavor, priya: User
) -> None:
    client.force_login(priya)
    found = client.get("/clusters/training/flavors/vision-a100").context["form"]
    sent = {
        name: "" if found[name].value() is None else found[name].value()
        for name in found.fields
        if not isinstance(found[name].value(), bool)
    }
    answer = client.post(
        "/clusters/training/flavors/vision-a100", sent | {"node_taints": "[]"}
    )
    assert answer.status_code == 422
    assert "NoSchedule" in answer.context["form"].errors["node_taints"][0]


def test_the_api_says_it_at_the_field(own: Flavor, priya: User) -> None:
    answer = Caller(priya).patch(
        f"flavors/{own.pk}/", {"node_labels": {"accelerator": "a100"}}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "not_apart")
    assert answer.json()["errors"][0]["pointer"] == "/node_labels"


def test_whose_own_it_is_is_named_to_those_alone_who_may_see_the_team(
    cluster: Cluster, priya: User
) -> None:
    robots = factories.team("Robotics")
    Cluster.objects.filter(pk=cluster.pk).update(dedicated_to=robots)
    own = factories.flavor(cluster, dedicated_to=robots)
    stranger, member = factories.person(), factories.person(teams=[robots])
    for user, seen in ((stranger, ""), (member, "robotics"), (priya, "robotics")):
        caller = Caller(user)
        assert caller.get(f"clusters/{cluster.name}/").json()["dedicated_to"] == seen
        flavor = caller.get(f"flavors/{own.pk}/").json()
        assert flavor["dedicated_to"] == seen
