"""A cluster that is added lends idle GPUs, up to as much again as a team holds; it may say otherwise."""

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from allocations.sync import keep_in_step
from fleet.clusters.actions import add_cluster
from fleet.models import Cluster
from provisioning.desired.manifests import GPU, tenancy_objects
from provisioning.desired.quantities import counted
from provisioning.desired.spec import FlavorQuota
from tests import factories
from tests.provisioning.specs import sample

VALUES = {"title": "Lab", "region": "eastus", "purpose": "training"}


@pytest.fixture
def priya(db: None) -> User:
    return factories.person("Priya Raman", Role.PLATFORM_LEAD)


@pytest.mark.parametrize(
    ("said", "percent"),
    [({}, 100), ({"borrow_percent": 0}, 0), ({"borrow_percent": 25}, 25)],
)
def test_a_new_cluster_lends_unless_it_says_otherwise(
    priya: User, said: dict[str, int], percent: int
) -> None:
    add_cluster(name="lab", values=VALUES | said, by=priya)
    assert Cluster.objects.get(name="lab").borrow_percent == percent


def test_the_form_of_a_new_cluster_proposes_it_and_that_of_another_shows_its_own(
    priya: User, client: Client
) -> None:
    client.force_login(priya)
    assert (
        'name="borrow_percent" value="100"'
        in client.get("/clusters/new").content.decode()
    )
    cluster = factories.cluster(borrow_percent=25)
    page = client.get(f"/clusters/{cluster.name}/edit").content.decode()
    assert 'name="borrow_percent" value="25"' in page


@pytest.mark.parametrize(("held", "borrow"), [(4, 4), (4, 1), (0, 0)])
def test_the_quota_has_room_for_what_the_queue_may_borrow(
    held: int, borrow: int
) -> None:
    objects = tenancy_objects(
        sample(flavors=(FlavorQuota(name="a100", gpus=held, borrow=borrow),))
    )
    [quota] = [one for one in objects if one["metadata"]["name"] == "team-quota"]
    [queue] = [one for one in objects if one["kind"] == "ClusterQueue"]
    [group] = queue["spec"]["resourceGroups"]
    [gpus] = [one for one in group["flavors"][1]["resources"] if one["name"] == GPU]
    assert (gpus["nominalQuota"], gpus["borrowingLimit"]) == (str(held), str(borrow))
    assert counted(quota["spec"]["hard"][f"requests.{GPU}"]) >= held + borrow


def test_what_is_set_reaches_the_teams_that_are_there(priya: User) -> None:
    cluster = factories.cluster(borrow_percent=0)
    tenancy = factories.tenancy(factories.team("Vision"), cluster)
    cluster.borrow_percent = 100
    cluster.save()
    keep_in_step(now=timezone.now)
    tenancy.refresh_from_db()
    assert all(flavor.borrow == flavor.gpus for flavor in tenancy.desired.flavors)
