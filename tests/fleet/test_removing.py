"""Removing clusters and kinds of GPU: what nobody has used goes, what was used stays."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from allocations.models import Allocation
from allocations.sync import keep_in_step
from approvals.models import Request
from audit.models import Event
from fleet.models import Cluster, Flavor
from fleet.removing import remove_cluster, remove_flavor
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.scene import Scene
from tests.scene import scene as make
from web.refusals import Conflict, NoRight

pytestmark = pytest.mark.django_db


@pytest.fixture
def scene() -> Scene:
    return make()


@pytest.fixture
def mistyped(scene: Scene) -> Cluster:
    """A cluster with a kind of GPU that somebody registered by mistake."""
    cluster = factories.cluster("trainign", title="Trainign")
    factories.flavor(cluster, "t4")
    return cluster


def test_what_nobody_has_used_goes_with_its_kinds(
    scene: Scene, mistyped: Cluster
) -> None:
    remove_cluster(mistyped.pk, by=scene.priya)
    remove_cluster(mistyped.pk, by=scene.priya)
    assert list(Cluster.objects.values_list("name", flat=True)) == ["training"]
    event = Event.objects.get(kind="cluster.removed")
    assert (event.subject_id, event.details["name"]) == (str(mistyped.pk), "trainign")


def test_a_kind_that_nobody_asked_for_leaves_the_places_of_its_cluster(
    scene: Scene,
) -> None:
    spare = factories.flavor(scene.flavor.cluster, "h100")
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=2)
    remove_flavor(spare.pk, by=scene.priya)
    keep_in_step(now=timezone.now)
    desired = Tenancy.objects.get(pk=scene.tenancy.pk).desired
    assert [one.name for one in desired.flavors] == ["a100"]
    assert Event.objects.get(kind="flavor.removed").details["name"] == "h100"


def test_what_was_used_stays(scene: Scene) -> None:
    Allocation.objects.all().delete()
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=16)
    with pytest.raises(Conflict) as refused:
        remove_flavor(scene.flavor.pk, by=scene.priya)
    assert refused.value.code == "was_used"
    with pytest.raises(Conflict):
        remove_cluster(scene.flavor.cluster.pk, by=scene.priya)
    assert Request.objects.get(pk=asked.pk).flavor == scene.flavor
    empty = factories.cluster("empty")
    factories.tenancy(scene.team, empty)
    with pytest.raises(Conflict):
        remove_cluster(empty.pk, by=scene.priya)
    assert Flavor.objects.count() == 1


def test_a_kind_whose_nodes_were_reserved_stays(
    scene: Scene, mistyped: Cluster
) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=16)
    kind = mistyped.flavors.get()
    Request.objects.filter(pk=asked.pk).update(spec={"nodes_for": kind.key})
    for remove, pk in ((remove_flavor, kind.pk), (remove_cluster, mistyped.pk)):
        with pytest.raises(Conflict) as refused:
            remove(pk, by=scene.priya)
        assert refused.value.code == "was_used"
    assert Cluster.objects.filter(pk=mistyped.pk).exists()


def test_only_platform_leads_remove(scene: Scene, mistyped: Cluster) -> None:
    with pytest.raises(NoRight):
        remove_cluster(mistyped.pk, by=scene.ada)
    with pytest.raises(NoRight):
        remove_flavor(mistyped.flavors.get().pk, by=scene.ada)


def test_a_namespace_that_was_asked_for_there_cannot_be_granted_any_more(
    scene: Scene, mistyped: Cluster
) -> None:
    lead = Caller(scene.priya)
    asked = Caller(scene.ada).post(
        "requests/",
        {
            "team": scene.team.slug,
            "offering": "namespace",
            "until": (timezone.now() + timedelta(days=30)).isoformat(),
            "reason": "A place of its own for the second project.",
            "spec": {
                "cluster": mistyped.name,
                "project": "second",
                "environment": "production",
            },
        },
    )
    assert asked.status_code == 201, asked.content
    number = asked.json()["id"]
    remove_cluster(mistyped.pk, by=scene.priya)
    decided = lead.post(
        f"requests/{number}/approve/", {"expected_version": asked.json()["version"]}
    )
    assert decided.status_code in (409, 422), decided.content
    assert Request.objects.get(pk=number).state == "waiting"
    client = Client()
    for person in (scene.ada, scene.priya):
        client.force_login(person)
        assert client.get(f"/requests/{number}/").status_code == 200
    shown = client.get(f"/approvals/{number}/").content.decode()
    assert "It cannot be granted any more" in shown


@pytest.mark.slow
def test_over_api_and_page(scene: Scene, mistyped: Cluster) -> None:
    lead = Caller(scene.priya)
    kind = mistyped.flavors.get()
    assert Caller(scene.ada).delete(f"flavors/{kind.pk}/").status_code == 403
    assert lead.delete(f"flavors/{kind.pk}/").status_code == 204
    used = lead.delete(f"clusters/{scene.flavor.cluster.name}/")
    assert (used.status_code, used.json()["code"]) == (409, "was_used")
    client = Client()
    client.force_login(scene.priya)
    page = client.get(f"/clusters/{mistyped.name}/edit").content.decode()
    assert f'href="/clusters/{mistyped.name}/remove"' in page
    assert (
        "On the cluster itself nothing changes."
        in client.get(f"/clusters/{mistyped.name}/remove").content.decode()
    )
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=2)
    used = client.post(f"/clusters/{scene.flavor.cluster.name}/flavors/a100/remove")
    assert used.status_code == 409
    assert "was asked for or held here" in used.content.decode()
    client.post(f"/clusters/{mistyped.name}/remove")
    assert not Cluster.objects.filter(pk=mistyped.pk).exists()
