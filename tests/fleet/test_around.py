"""What a cluster and a kind of GPU may be told about what is around them: hub, services, resource, and for whom."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from accounts.roles import Role
from fleet.clusters.actions import change_cluster
from fleet.flavors.actions import add_flavor, change_flavor
from fleet.models import Cluster, Flavor
from tests import factories
from web.refusals import BadInput, Conflict

pytestmark = pytest.mark.django_db
SERVICE: dict[str, Any] = {
    "name": "mlflow",
    "namespace": "mlflow",
    "labels": {"app": "mlflow"},
    "port": 5000,
}
A100: dict[str, Any] = {
    "product": "A100",
    "memory_gb": 10,
    "gpus_per_node": 56,
    "price_per_gpu_hour": "0.525",
    "node_labels": {"mig": "1g"},
}


@pytest.fixture
def priya() -> User:
    return factories.person("Priya", Role.PLATFORM_LEAD)


@pytest.mark.parametrize(
    "name", ["a b", "-a", "a\n", "A", "a.b", "qm-vision-main-0a1b2c", "a" * 64]
)
def test_a_hub_lives_in_a_namespace_that_is_no_teams(priya: User, name: str) -> None:
    with pytest.raises(BadInput) as refused:
        change_cluster(
            factories.cluster().pk, values={"jupyterhub_namespace": name}, by=priya
        )
    assert refused.value.field == "jupyterhub_namespace"


@pytest.mark.parametrize(
    "services",
    [
        {},
        "mlflow",
        7,
        [{}],
        ["mlflow"],
        [SERVICE | {"labels": {}}],
        [SERVICE | {"labels": {"a b": "c"}}],
        [SERVICE | {"labels": {"app": ""}}],
        [SERVICE | {"port": 0}],
        [SERVICE | {"port": "5000"}],
        [SERVICE | {"namespace": "qm-vision-main-0a1b2c"}],
        [SERVICE | {"namespace": ""}],
        [SERVICE, SERVICE],
        [SERVICE | {"name": "a b"}],
        [SERVICE | {"more": 1}],
        [SERVICE | {"name": f"s{n}"} for n in range(21)],
    ],
)
def test_what_is_no_shared_service_is_refused_at_its_field(
    priya: User, services: Any
) -> None:
    cluster = factories.cluster()
    with pytest.raises(BadInput) as refused:
        change_cluster(cluster.pk, values={"shared_services": services}, by=priya)
    assert refused.value.field == "shared_services"
    assert Cluster.objects.get(pk=cluster.pk).shared_services == []


def test_a_shared_service_is_kept_as_it_was_said(priya: User) -> None:
    made = change_cluster(
        factories.cluster().pk, values={"shared_services": [SERVICE]}, by=priya
    )
    assert Cluster.objects.get(pk=made.pk).shared_services == [SERVICE]


@pytest.mark.parametrize(
    "resource",
    [
        "cpu",
        "nvidia.com/mig",
        "nvidia.com/mig-0g.5gb",
        "amd.com/gpu",
        "nvidia.com/gpu\n",
        "requests.x",
    ],
)
def test_a_resource_is_what_nodes_count_gpus_as(priya: User, resource: str) -> None:
    with pytest.raises(BadInput) as refused:
        add_flavor(
            factories.cluster(),
            name="mig",
            values=A100 | {"resource": resource},
            by=priya,
        )
    assert refused.value.field == "resource"


@pytest.mark.parametrize(
    "resource",
    ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb.me"],
)
def test_whole_gpus_and_slices_are_resources(priya: User, resource: str) -> None:
    made = add_flavor(
        factories.cluster(), name="mig", values=A100 | {"resource": resource}, by=priya
    )
    assert Flavor.objects.get(pk=made.pk).resource == resource


def test_what_is_held_keeps_its_resource_and_its_nodes(priya: User) -> None:
    ada = factories.person("Ada")
    vision, speech = factories.team("Vision", by=ada), factories.team("Speech", by=ada)
    factories.join(vision, ada)
    flavor = factories.flavor(name="a100")
    factories.allocation(
        ada, factories.tenancy(vision, flavor.cluster), flavor, gpus=1, days=1
    )
    with pytest.raises(Conflict) as refused:
        change_flavor(
            flavor.pk, values={"resource": "nvidia.com/mig-1g.10gb"}, by=priya
        )
    assert refused.value.field == "resource"
    with pytest.raises(Conflict) as refused:
        change_flavor(flavor.pk, values={"dedicated_to": speech}, by=priya)
    assert refused.value.field == "dedicated_to"
    assert (
        change_flavor(
            flavor.pk, values={"dedicated_to": "vision"}, by=priya
        ).dedicated_to
        == vision
    )


def test_a_team_is_named_by_its_slug_and_nothing_frees_it_again(priya: User) -> None:
    factories.team("Vision")
    cluster = factories.cluster()
    with pytest.raises(BadInput) as refused:
        change_cluster(cluster.pk, values={"dedicated_to": "nobody"}, by=priya)
    assert refused.value.field == "dedicated_to"
    assert (
        change_cluster(
            cluster.pk, values={"dedicated_to": "vision"}, by=priya
        ).dedicated_to
        is not None
    )
    assert (
        change_cluster(cluster.pk, values={"dedicated_to": ""}, by=priya).dedicated_to
        is None
    )


def test_what_is_one_teams_alone_is_offered_to_no_other() -> None:
    vision, speech = factories.team("Vision"), factories.team("Speech")
    mine = factories.flavor(name="mine", dedicated_to=vision)
    there = factories.flavor(factories.cluster("own", dedicated_to=vision), "there")
    shared = factories.flavor(name="shared")
    assert set(Flavor.objects.offered_to(vision)) == {mine, there, shared}
    assert (
        set(Flavor.objects.offered_to(speech))
        == set(Flavor.objects.offered_to(None))
        == {shared}
    )


def test_the_form_takes_services_and_keeps_whole_gpus_when_nothing_is_said(
    client: Client, priya: User
) -> None:
    client.force_login(priya)
    cluster = factories.cluster("training")
    factories.team("Vision")
    page = client.get("/clusters/training/edit").content.decode()
    assert all(
        words in page
        for words in (
            "Namespace of JupyterHub",
            "For one team alone",
            "Grafana dashboards",
        )
    )
    sent = {
        "title": "Training",
        "region": "eastus",
        "purpose": "training",
        "cohort": "quartermaster",
        "borrow_percent": "0",
        "enabled": "on",
        "jupyterhub_namespace": "jupyterhub",
        "shared_services": '[{"name": "mlflow", "namespace": "mlflow", "labels": {"app": "mlflow"}, "port": 5000}]',
    }
    found = client.get("/clusters/training/edit").context["form"]
    everything = {
        name: "" if found[name].value() is None else found[name].value()
        for name in found.fields
        if not isinstance(found[name].value(), bool)
    }
    answer = client.post("/clusters/training/edit", everything | sent)
    assert answer.status_code == 302, answer.content.decode()
    now = Cluster.objects.get(pk=cluster.pk)
    assert (now.jupyterhub_namespace, now.shared_services, now.dashboards) == (
        "jupyterhub",
        [SERVICE],
        False,
    )
