"""How many GPUs there are on a cluster that nobody observes: platform leads tell, and teams ask for those."""

import pytest

from accounts.models import User
from accounts.roles import Role
from allocations.models import Allocation
from audit.models import Event
from fleet.flavors.actions import add_flavor, change_flavor
from fleet.models import Cluster, Flavor
from fleet.presenting import bar
from provisioning.models import Tenancy
from tests import factories
from web.refusals import BadInput

pytestmark = pytest.mark.django_db

L4 = {
    "product": "L4",
    "memory_gb": 24,
    "gpus_per_node": 4,
    "price_per_gpu_hour": 1,
    "node_labels": {},
}


@pytest.fixture
def priya() -> User:
    return factories.person("Priya", Role.PLATFORM_LEAD)


@pytest.fixture
def west() -> Cluster:
    return factories.cluster(
        "west", delivery="git", git_url="https://git.example.com/fleet.git"
    )


def test_what_is_told_is_asked_for_held_and_wanted_in_the_repository(
    west: Cluster, priya: User
) -> None:
    flavor = add_flavor(west, name="l4", values={**L4, "gpus_total": 4}, by=priya)
    tenancy = factories.tenancy(on=west)
    asked = factories.request(
        factories.person(teams=[tenancy.team]), tenancy, flavor, gpus=2
    )
    assert Allocation.objects.get(hold=asked.hold_id).gpus == 2
    assert Flavor.objects.get(pk=flavor.pk).free == 2
    assert [
        (one.name, one.gpus)
        for one in Tenancy.objects.get(pk=tenancy.pk).desired.flavors
    ] == [("l4", 2)]


def test_no_fewer_are_told_than_are_held(west: Cluster, priya: User) -> None:
    flavor = factories.flavor(west, "l4", gpus_total=8, gpus_seen_at=None, allocated=3)
    with pytest.raises(BadInput) as refused:
        change_flavor(flavor.pk, values={"gpus_total": 2}, by=priya)
    assert (refused.value.code, refused.value.field) == (
        "below_what_is_held",
        "gpus_total",
    )
    assert change_flavor(flavor.pk, values={"gpus_total": 3}, by=priya).free == 0
    assert Event.objects.get(kind="flavor.changed").details["gpus_total"] == 3


def test_what_was_counted_is_said_to_be_told_only_when_somebody_told_it(
    west: Cluster, priya: User
) -> None:
    flavor = factories.flavor(west, "l4", gpus_total=8)
    assert "counted when the portal still saw the nodes" in bar(flavor)["note"]
    told = change_flavor(flavor.pk, values={"gpus_total": 9}, by=priya)
    told.refresh_from_db()
    assert told.gpus_seen_at is None
    assert "told by platform leads" in bar(told)["note"]


@pytest.mark.parametrize(
    "known", [{"delivery": "apply"}, {"delivery": "git", "kubeconfig": "west.yaml"}]
)
def test_what_is_counted_is_not_told(
    known: dict[str, str], west: Cluster, priya: User
) -> None:
    Cluster.objects.filter(pk=west.pk).update(**known)
    west.refresh_from_db()
    flavor = factories.flavor(west, "l4", gpus_total=8)
    with pytest.raises(BadInput) as refused:
        change_flavor(flavor.pk, values={"gpus_total": 64}, by=priya)
    assert (refused.value.code, refused.value.field) == ("counted", "gpus_total")
    with pytest.raises(BadInput, match="counts"):
        add_flavor(west, name="t4", values={**L4, "gpus_total": 64}, by=priya)
    assert Flavor.objects.get().gpus_total == 8


@pytest.mark.parametrize("number", [-1, 100_001])
def test_a_number_that_no_cluster_has_is_refused(
    number: int, west: Cluster, priya: User
) -> None:
    with pytest.raises(BadInput) as refused:
        add_flavor(west, name="l4", values={**L4, "gpus_total": number}, by=priya)
    assert refused.value.field == "gpus_total"
