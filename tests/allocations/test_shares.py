"""A team's share of a cluster and its distance to others: set by leads, true in the queue in the same moment."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Project, User
from accounts.roles import Role
from allocations.actions import grant
from allocations.share_actions import set_shares
from allocations.sync import keep_in_step
from audit.models import Event
from fleet.clusters.actions import change_cluster
from fleet.flavors.actions import change_flavor
from fleet.models import Cluster, Flavor
from provisioning.actions import create_tenancy
from provisioning.clusters.installation import mark
from provisioning.models import Isolation, Tenancy
from tests import factories
from web.refusals import BadInput, Conflict, NoRight

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def priya() -> User:
    return factories.person("Priya", Role.PLATFORM_LEAD)


@pytest.fixture
def ada() -> User:
    return factories.person("Ada")


@pytest.fixture
def cluster() -> Cluster:
    made = factories.cluster("training")
    factories.flavor(made, "a100")
    return made


@pytest.fixture
def vision(ada: User, cluster: Cluster) -> Tenancy:
    team = factories.team("Vision", by=ada)
    factories.join(team, ada)
    return factories.tenancy(team, cluster)


@pytest.fixture
def own(cluster: Cluster, vision: Tenancy, priya: User) -> Flavor:
    """A kind of GPU that is Vision's alone."""
    taint = {"key": "team", "value": "vision", "effect": "NoSchedule"}
    made = factories.flavor(cluster, "vision-h100", node_taints=[taint])
    change_flavor(made.pk, values={"dedicated_to": vision.team}, by=priya)
    return made


def row(tenancy: Tenancy) -> Tenancy:
    return Tenancy.objects.get(pk=tenancy.pk)


def flavors(tenancy: Tenancy) -> list[str]:
    return [flavor.name for flavor in row(tenancy).desired.flavors]


def step() -> int:
    return keep_in_step(now=timezone.now)


def test_a_weight_is_in_the_queue_with_the_action_and_on_record(
    vision: Tenancy, priya: User
) -> None:
    before = row(vision).generation
    set_shares(vision.pk, weight=5, by=priya, now=NOW)
    assert (row(vision).weight, row(vision).desired.weight, row(vision).generation) == (
        5,
        5,
        before + 1,
    )
    event = Event.objects.about("tenancy", vision.pk).latest("seq")
    assert (event.details["weight"], event.details["weight_before"]) == (5, 1)
    count = Event.objects.count()
    set_shares(vision.pk, weight=5, isolation="namespace", by=priya, now=NOW)
    assert Event.objects.count() == count


@pytest.mark.parametrize("weight", [0, -1, 101, 10**6])
def test_a_weight_has_bounds(vision: Tenancy, priya: User, weight: int) -> None:
    with pytest.raises(BadInput) as refused:
        set_shares(vision.pk, weight=weight, by=priya, now=NOW)
    assert refused.value.field == "weight"


def test_only_platform_leads_set_shares(vision: Tenancy, ada: User) -> None:
    with pytest.raises(NoRight):
        set_shares(vision.pk, weight=2, by=ada, now=NOW)


def test_own_nodes_are_all_that_is_in_the_teams_queue(
    vision: Tenancy, own: Flavor, priya: User
) -> None:
    set_shares(vision.pk, isolation="node-pool", by=priya, now=NOW)
    assert flavors(vision) == ["vision-h100"]
    set_shares(vision.pk, isolation="namespace", by=priya, now=NOW)
    assert flavors(vision) == ["a100", "vision-h100"]


def test_nobody_elses_queue_names_a_teams_own_nodes(
    vision: Tenancy, own: Flavor, cluster: Cluster, ada: User
) -> None:
    speech = factories.tenancy(factories.team("Speech", by=ada), cluster)
    assert flavors(speech) == ["a100"]
    with pytest.raises(Conflict) as refused:
        grant(
            factories.granted(ada, speech, own, until=NOW + timedelta(days=1)),
            actor=ada.as_actor(),
            now=NOW,
        )
    assert refused.value.code == "not_for_this_team"


def test_own_nodes_need_nodes_that_are_the_teams(vision: Tenancy, priya: User) -> None:
    with pytest.raises(Conflict, match="alone"):
        set_shares(vision.pk, isolation="node-pool", by=priya, now=NOW)


@pytest.mark.parametrize(
    "given", [{"node_taints": []}, {"node_labels": {"accelerator": "a100"}}]
)
def test_own_nodes_need_what_keeps_others_off_them(
    vision: Tenancy, own: Flavor, priya: User, given: dict[str, Any]
) -> None:
    # As an older version may have left it.
    Flavor.objects.filter(pk=own.pk).update(**given)
    with pytest.raises(Conflict, match="vision-h100") as refused:
        set_shares(vision.pk, isolation="node-pool", by=priya, now=NOW)
    assert (refused.value.field, refused.value.code) == ("isolation", "not_apart")


def test_who_holds_shared_gpus_gives_them_back_before_moving(
    vision: Tenancy, own: Flavor, priya: User, ada: User
) -> None:
    factories.allocation(ada, vision, Flavor.objects.get(name="a100"), gpus=1, days=2)
    with pytest.raises(Conflict, match="shared nodes"):
        set_shares(vision.pk, isolation="node-pool", by=priya, now=NOW)


def test_an_own_cluster_is_one_that_is_the_teams(
    vision: Tenancy, cluster: Cluster, priya: User
) -> None:
    with pytest.raises(Conflict):
        set_shares(vision.pk, isolation="cluster", by=priya, now=NOW)
    change_cluster(cluster.pk, values={"dedicated_to": "vision"}, by=priya)
    set_shares(vision.pk, isolation="cluster", by=priya, now=NOW)
    assert row(vision).isolation == Isolation.CLUSTER


def test_a_subscription_is_noted(vision: Tenancy, priya: User) -> None:
    generation = row(vision).generation
    set_shares(vision.pk, isolation="subscription", by=priya, now=NOW)
    assert (row(vision).isolation, row(vision).generation) == (
        "subscription",
        generation,
    )
    assert (
        Event.objects.about("tenancy", vision.pk).latest("seq").details["isolation"]
        == "subscription"
    )


def test_nobody_else_gets_a_place_on_a_teams_own_cluster(
    ada: User, priya: User
) -> None:
    mine, theirs = factories.team("Vision", by=ada), factories.team("Speech", by=ada)
    cluster = factories.cluster("own")
    change_cluster(cluster.pk, values={"dedicated_to": mine}, by=priya)
    made = factories.tenancy(mine, cluster)
    assert made.isolation == Isolation.CLUSTER
    project = Project.objects.get(team=theirs)
    with pytest.raises(Conflict) as refused:
        create_tenancy(
            team=theirs, cluster=cluster, project=project, environment="dev", now=NOW
        )
    assert (refused.value.code, refused.value.field) == ("not_for_this_team", "cluster")
    assert list(Cluster.objects.open_to(theirs).filter(name="own")) == []
    assert list(Cluster.objects.open_to(None).filter(name="own")) == []
    assert list(Cluster.objects.open_to(mine).filter(name="own")) == [cluster]


def test_a_cluster_with_other_teams_cannot_become_one_teams_own(
    vision: Tenancy, cluster: Cluster, priya: User, ada: User
) -> None:
    factories.tenancy(factories.team("Speech", by=ada), cluster)
    with pytest.raises(Conflict, match="Other teams are on this cluster"):
        change_cluster(cluster.pk, values={"dedicated_to": vision.team}, by=priya)


def test_a_cluster_that_others_have_left_becomes_one_teams_own(
    vision: Tenancy, cluster: Cluster, priya: User, ada: User
) -> None:
    speech = factories.tenancy(factories.team("Speech", by=ada), cluster)
    factories.leave(speech, to="gone", at=NOW)
    assert (
        change_cluster(
            cluster.pk, values={"dedicated_to": vision.team}, by=priya
        ).dedicated_to
        == vision.team
    )


def test_what_changes_about_a_cluster_reaches_every_tenancy_once(
    vision: Tenancy, cluster: Cluster, priya: User
) -> None:
    assert step() == 0
    service = {
        "name": "mlflow",
        "namespace": "mlflow",
        "labels": {"app": "mlflow"},
        "port": 5000,
    }
    values: dict[str, Any] = {
        "jupyterhub_namespace": "jupyterhub",
        "shared_services": [service],
        "dashboards": False,
    }
    change_cluster(cluster.pk, values=values, by=priya)
    assert (step(), step()) == (1, 0)
    spec = row(vision).desired
    assert (spec.jupyterhub_namespace, spec.services[0].name, spec.dashboards) == (
        "jupyterhub",
        "mlflow",
        False,
    )
    factories.flavor(cluster, "h100")
    assert (step(), step()) == (1, 0)
    assert flavors(vision) == ["a100", "h100"]


def test_a_clusters_new_storage_class_is_for_new_teams(
    vision: Tenancy, cluster: Cluster, priya: User, ada: User
) -> None:
    # No claim can change its class: wanted otherwise, it would be refused for ever.
    change_cluster(cluster.pk, values={"storage_class": "fast"}, by=priya)
    assert step() == 0
    factories.request(ada, row(vision), Flavor.objects.get(name="a100"))
    speech = factories.tenancy(
        factories.team("Speech", by=ada), Cluster.objects.get(pk=cluster.pk)
    )
    assert (row(vision).desired.storage_class, row(speech).desired.storage_class) == (
        "",
        "fast",
    )


def test_what_is_lent_follows_the_clusters_share(
    vision: Tenancy, cluster: Cluster, priya: User, ada: User
) -> None:
    factories.allocation(ada, vision, Flavor.objects.get(name="a100"), gpus=2, days=2)
    change_cluster(cluster.pk, values={"borrow_percent": 50}, by=priya)
    assert (step(), step()) == (1, 0)
    assert row(vision).desired.flavors[0].borrow == 1


@pytest.mark.parametrize("tenancies", [1, 4])
def test_keeping_in_step_asks_twice_however_many_there_are(
    vision: Tenancy,
    cluster: Cluster,
    ada: User,
    tenancies: int,
    django_assert_num_queries: Any,
) -> None:
    for number in range(1, tenancies):
        factories.tenancy(factories.team(f"Team {number}", by=ada), cluster)
    mark()  # is read once per process
    with django_assert_num_queries(2):
        step()


def test_the_page_sets_both_and_says_what_is_wrong(
    client: Client, vision: Tenancy, priya: User
) -> None:
    client.force_login(priya)
    address = f"/tenancies/{vision.pk}/shares"
    assert "Own subscription" in client.get(address).content.decode()
    wrong = client.post(address, {"weight": "3", "isolation": "cluster"})
    assert (wrong.status_code, row(vision).weight) == (409, 1)
    assert "is for all teams" in wrong.content.decode()
    assert (
        client.post(address, {"weight": "3", "isolation": "namespace"})["Location"]
        == "/teams/vision/"
    )
    assert row(vision).weight == 3


def test_the_page_is_for_leads(client: Client, vision: Tenancy, ada: User) -> None:
    client.force_login(ada)
    assert client.get(f"/tenancies/{vision.pk}/shares").status_code == 403
    client.force_login(factories.person("Mallory"))
    assert client.get(f"/tenancies/{vision.pk}/shares").status_code == 404
