"""Whose queues a cluster has is chosen when it is registered, and what Volcano's cannot do is refused."""

import pytest
from django.test import Client

from accounts.roles import Role
from audit.models import Event
from fleet.clusters.actions import change_cluster
from fleet.declared import declare
from fleet.models import Cluster
from tests import factories
from tests.calling import Caller
from tests.fleet.test_api_fleet import CLUSTER, flavor
from tests.fleet.test_declared import TRAINING
from web.refusals import BadInput, Conflict

pytestmark = pytest.mark.django_db
MIG = "nvidia.com/mig-1g.10gb"


@pytest.fixture
def priya() -> Caller:
    """A platform lead."""
    return Caller(factories.person("Priya Raman", Role.PLATFORM_LEAD))


@pytest.fixture
def volcano() -> Cluster:
    """A cluster whose queues are Volcano's."""
    return factories.cluster("gang", queueing="volcano")


def test_a_cluster_has_the_queues_of_kueue_unless_it_says_otherwise(
    priya: Caller,
) -> None:
    assert priya.post("clusters/", CLUSTER).json()["queueing"] == "kueue"


def test_a_cluster_with_volcano_lends_nothing_unless_somebody_says_so_which_is_refused(
    priya: Caller,
) -> None:
    added = priya.post("clusters/", CLUSTER | {"queueing": "volcano"})
    assert (added.status_code, added.json()["borrow_percent"]) == (201, 0)
    refused = priya.post(
        "clusters/",
        CLUSTER | {"name": "b", "queueing": "volcano", "borrow_percent": 50},
    )
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (
        422,
        "/borrow_percent",
    )


def test_a_cluster_with_volcano_has_no_hub(priya: Caller) -> None:
    refused = priya.post(
        "clusters/", CLUSTER | {"queueing": "volcano", "jupyterhub_namespace": "hub"}
    )
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (
        422,
        "/jupyterhub_namespace",
    )
    assert "no notebooks" in refused.content.decode()


def test_no_other_queues_are_known(priya: Caller) -> None:
    refused = priya.post("clusters/", CLUSTER | {"queueing": "slurm"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (
        422,
        "/queueing",
    )


def test_it_is_fixed_once_it_is_registered_and_saying_the_same_is_no_change(
    priya: Caller, volcano: Cluster
) -> None:
    assert (
        priya.patch(
            "clusters/gang/", {"queueing": "volcano", "title": "Gangs"}
        ).status_code
        == 200
    )
    refused = priya.patch("clusters/gang/", {"queueing": "kueue"})
    assert (refused.status_code, refused.json()["code"]) == (409, "queueing_fixed")
    assert "chosen when it is registered" in refused.json()["detail"]
    changes = Event.objects.filter(kind="cluster.changed").count()
    assert (Cluster.objects.get().queueing, changes) == ("volcano", 1)


def test_a_declared_file_cannot_change_it_either() -> None:
    declare([TRAINING])
    with pytest.raises(Conflict) as refused:
        declare([TRAINING | {"queueing": "volcano"}])
    assert (refused.value.code, Cluster.objects.get().queueing) == (
        "queueing_fixed",
        "kueue",
    )


def test_nothing_is_delivered_to_volcano_through_git(volcano: Cluster) -> None:
    values = {"delivery": "git", "git_url": "https://github.com/platform/fleet.git"}
    lead = factories.person("Priya", Role.PLATFORM_LEAD)
    with pytest.raises(BadInput) as refused:
        change_cluster(volcano.pk, values=values, by=lead)
    assert (refused.value.code, refused.value.field) == ("not_by_git", "delivery")
    assert Cluster.objects.get().delivery == "apply"


def test_nothing_is_borrowed_with_volcano(volcano: Cluster) -> None:
    lead = factories.person("Priya", Role.PLATFORM_LEAD)
    with pytest.raises(BadInput) as refused:
        change_cluster(volcano.pk, values={"borrow_percent": 10}, by=lead)
    assert (refused.value.field, Cluster.objects.get().borrow_percent) == (
        "borrow_percent",
        0,
    )


def test_no_two_kinds_of_gpu_share_a_resource_on_volcano(
    priya: Caller, volcano: Cluster
) -> None:
    assert priya.post("flavors/", flavor(on="gang", name="a100")).status_code == 201
    refused = priya.post("flavors/", flavor(on="gang", name="h100"))
    assert (refused.status_code, refused.json()["code"]) == (409, "resource_taken")
    assert "nvidia.com/gpu" in refused.json()["detail"]
    assert "a100" in refused.json()["detail"]

    sliced = priya.post("flavors/", flavor(on="gang", name="slices", resource=MIG))
    assert sliced.status_code == 201
    again = priya.patch(
        f"flavors/{sliced.json()['id']}/", {"resource": "nvidia.com/gpu"}
    )
    assert (again.status_code, again.json()["code"]) == (409, "resource_taken")


def test_kueue_tells_kinds_of_one_resource_apart(priya: Caller) -> None:
    factories.cluster("training")
    for name in ("a100", "h100"):
        assert (
            priya.post("flavors/", flavor(on="training", name=name)).status_code == 201
        )


def test_the_page_registers_one_that_lends_nothing_though_the_field_begins_with_kueues(
    client: Client,
) -> None:
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    form = client.get("/clusters/new").context["form"]
    typed = {
        name: form[name].value()
        for name in form.fields
        if form[name].value() is not None
    }
    typed |= {
        "name": "gang",
        "title": "Gang",
        "region": "eastus",
        "purpose": "training",
        "queueing": "volcano",
    }
    assert typed["borrow_percent"] == 100
    answer = client.post("/clusters/new", typed)
    assert answer.status_code == 302, answer.context["form"].errors
    found = Cluster.objects.get()
    assert (found.queueing, found.borrow_percent) == ("volcano", 0)


def test_its_page_says_whose_queues_it_has_and_offers_no_others(
    volcano: Cluster, client: Client
) -> None:
    Cluster.objects.update(volcano_version="v1.15.1")
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))

    page = client.get("/clusters/gang/").content.decode()
    assert "Release of Volcano" in page
    assert "v1.15.1" in page
    assert "Cohort" not in page
    assert "Volcano v1.15.1" in " ".join(
        client.get("/clusters/").content.decode().split()
    )
    assert 'name="title"' in client.get("/clusters/gang/edit").content.decode()
    assert 'name="queueing"' not in client.get("/clusters/gang/edit").content.decode()
    assert 'name="queueing"' in client.get("/clusters/new").content.decode()
