"""The pages of clusters: what is free, what is wrong, and who may change it."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.roles import Role
from audit.events import Kind
from audit.models import Event
from fleet.models import Cluster, Flavor
from tests import factories

pytestmark = pytest.mark.django_db
TRAINING = {
    "name": "training", "title": "Training East US", "region": "eastus", "purpose": "training", "kubeconfig": "",
    "context": "", "cohort": "quartermaster", "borrow_percent": "50", "storage_class": "", "enabled": "on",
}  # fmt: skip
A100 = {
    "name": "a100", "product": "A100", "memory_gb": "80", "gpus_per_node": "8", "capacity_type": "on-demand",
    "price_per_gpu_hour": "3.67", "node_labels": '{"accelerator": "nvidia-a100"}', "node_taints": "",
    "cpu_per_gpu": "8", "memory_gib_per_gpu": "64", "is_offered": "on",
}  # fmt: skip


@pytest.fixture
def priya(client: Client) -> Client:
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    return client


def test_everybody_sees_what_is_free_and_what_it_costs(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    factories.flavor(factories.cluster("training", title="Training East US"), allocated=5)
    page = client.get("/clusters/").content.decode()
    assert "Training East US" in page
    assert "Free <b>19</b>" in page
    assert "$3.67 per GPU-hour" in page
    assert "Add a cluster" not in page


def test_one_that_is_away_says_since_when_and_why_and_harms_no_other(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    factories.cluster("away", reachable=False, message="connection refused")
    factories.cluster("never", reachable=False, message="no route", last_contact_at=None)
    factories.cluster("barred", reachable=False, message="The cluster answered 401 Unauthorized")
    factories.cluster("fine")
    page = client.get("/clusters/").content.decode()
    for words in ("No answer since", "connection refused", "It has never answered", "Refuses us", "Answers"):
        assert words in page
    assert client.get("/clusters/away/").status_code == client.get("/clusters/fine/").status_code == 200


def test_a_cluster_shows_only_teams_that_the_person_may_see(client: Client) -> None:
    vision, speech = factories.team("Vision"), factories.team("Speech")
    training = factories.cluster("training")
    for team in (vision, speech):
        factories.make_true(factories.tenancy(team, training))
    client.force_login(factories.person("Ada", teams=[vision]))
    page = client.get("/clusters/training/").content.decode()
    assert "Vision" in page
    assert "All true" in page
    assert "Speech" not in page


def test_no_clusters_yet_says_what_one_is_for(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    assert "No clusters yet" in client.get("/clusters/").content.decode()


def test_a_platform_lead_adds_a_cluster_and_a_kind_of_gpu(priya: Client) -> None:
    assert priya.post("/clusters/new", TRAINING)["Location"] == "/clusters/training/"
    assert priya.post("/clusters/training/flavors/new", A100)["Location"] == "/clusters/training/"
    flavor = Flavor.objects.select_related("cluster").get()
    assert (flavor.cluster.borrow_percent, flavor.node_labels, flavor.node_taints) == (
        50, {"accelerator": "nvidia-a100"}, [],
    )  # fmt: skip
    assert Event.objects.filter(kind__in=[Kind.CLUSTER_ADDED, Kind.FLAVOR_ADDED]).count() == 2


def test_it_changes_them_but_never_their_names(priya: Client) -> None:
    flavor = factories.flavor(factories.cluster("training"), "a100")
    priya.post("/clusters/training/edit", TRAINING | {"name": "other", "title": "Training"})
    priya.post("/clusters/training/flavors/a100", A100 | {"name": "other", "price_per_gpu_hour": "4.10"})
    assert Cluster.objects.get().title == "Training"
    flavor.refresh_from_db()
    assert (flavor.name, str(flavor.price_per_gpu_hour), flavor.cluster.name) == (
        "a100",
        "4.1000",
        "training",
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "Training!"}, "letters"),
        ({"name": ""}, "required"),
        ({"kubeconfig": "../../etc/passwd"}, "without a path"),
        ({"kubeconfig": "not-there.yaml"}, "name of a file"),
        ({"borrow_percent": "101"}, "Borrow between 0 and 100"),
        ({"purpose": "mining"}, "mining"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_cluster_is_said_at_its_field(
    priya: Client, settings: Any, tmp_path: Path, change: dict[str, str], words: str
) -> None:
    settings.ENV = settings.ENV.model_copy(update={"kubeconfig_dir": tmp_path})
    answer = priya.post("/clusters/new", TRAINING | change)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert 'value="Training East US"' in answer.content.decode()
    assert not Cluster.objects.exists()


def test_a_name_that_is_taken_is_said(priya: Client) -> None:
    factories.cluster("training")
    answer = priya.post("/clusters/new", TRAINING)
    assert answer.status_code == 409
    assert "There is a cluster of this name already." in answer.content.decode()


@pytest.mark.parametrize(
    "change",
    [{"node_labels": "not json"}, {"node_labels": "[]"}, {"node_taints": '[{"key": "a"}]'}, {"price_per_gpu_hour": "0"},
     {"price_per_gpu_hour": "NaN"}, {"node_labels": '{"a b": "c"}'}],
)  # fmt: skip
def test_what_cannot_be_a_kind_of_gpu_is_refused(priya: Client, change: dict[str, str]) -> None:
    factories.cluster("training")
    assert priya.post("/clusters/training/flavors/new", A100 | change).status_code == 422
    assert not Flavor.objects.exists()


@pytest.mark.parametrize(
    "path",
    ["/clusters/new", "/clusters/training/edit", "/clusters/training/flavors/new", "/clusters/training/flavors/a100"],
)  # fmt: skip
def test_an_empty_form_is_shown_again_and_remembered(priya: Client, path: str) -> None:
    factories.flavor(factories.cluster("training"), "a100")
    answer = priya.post(path, {})
    assert answer.status_code == 422
    assert "This field is required." in answer.content.decode()
    fields = Event.objects.latest("seq").details["fields"]
    assert set(fields.values()) == {"This field is required."}
    assert (Cluster.objects.count(), Flavor.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    "path", ["/clusters/new", "/clusters/training/edit", "/clusters/training/flavors/new"]
)
@pytest.mark.parametrize(
    "role", [Role.DATA_SCIENTIST, Role.TEAM_LEAD, Role.ENGINEERING_LEADERSHIP, Role.AUDITOR]
)
def test_others_change_nothing(client: Client, path: str, role: Role) -> None:
    factories.cluster("training")
    client.force_login(factories.person("Ada", role))
    assert client.get(path).status_code == 403
    assert client.post(path, TRAINING).status_code == 403
    assert Cluster.objects.count() == 1
