"""The pages of clusters: what is free, what is wrong, and who may change it."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.roles import Role
from audit.events import Kind
from audit.models import Event
from fleet.forms import SECTIONS, ClusterForm
from fleet.models import Cluster, Flavor
from fleet.presenting import BROKEN, health
from provisioning.clusters import health as parts_of
from provisioning.clusters.health import silent
from tests import factories
from tests.pages import parsed

pytestmark = pytest.mark.django_db
TRAINING = {
    "name": "training",
    "title": "Training East US",
    "region": "eastus",
    "purpose": "training",
    "kubeconfig": "",
    "context": "",
    "cohort": "quartermaster",
    "borrow_percent": "50",
    "storage_class": "",
    "enabled": "on",
}
A100 = {
    "name": "a100",
    "product": "A100",
    "memory_gb": "80",
    "gpus_per_node": "8",
    "capacity_type": "on-demand",
    "price_per_gpu_hour": "3.67",
    "node_labels": '{"accelerator": "nvidia-a100"}',
    "node_taints": "",
    "cpu_per_gpu": "8",
    "memory_gib_per_gpu": "64",
    "is_offered": "on",
}


@pytest.fixture
def priya(client: Client) -> Client:
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    return client


def test_everybody_sees_what_is_free_and_what_it_costs(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    factories.flavor(
        factories.cluster("training", title="Training East US"), allocated=5
    )
    page = client.get("/clusters/").content.decode()
    assert "Training East US" in page
    assert "Free <b>19</b>" in page
    assert "$3.67 per GPU-hour" in page
    assert "Add a cluster" not in page


def test_one_that_is_away_says_since_when_and_why_and_harms_no_other(
    client: Client,
) -> None:
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    factories.cluster(
        "away", reachable=False, message="connection refused", parts=silent()
    )
    factories.cluster(
        "never", reachable=False, message="no route", last_contact_at=None
    )
    factories.cluster(
        "barred",
        reachable=False,
        message="The cluster answered 401 Unauthorized",
        failure_code="unauthorized",
    )
    factories.cluster("fine")
    page = client.get("/clusters/").content.decode()
    for words in (
        "No answer since",
        "connection refused",
        "It has never answered",
        "Refuses us",
        "Answers",
    ):
        assert words in page
    assert "API server: It does not answer" not in page, "it is said once"
    assert (
        client.get("/clusters/away/").status_code
        == client.get("/clusters/fine/").status_code
        == 200
    )
    client.force_login(factories.person("Ada"))
    page = client.get("/clusters/").content.decode()
    assert "What runs there goes on, and nothing is lost." in page
    assert "connection refused" not in page, "a data scientist can do nothing about it"


def test_platform_leads_see_why_the_pools_of_one_cannot_be_read_in_azure(
    client: Client,
) -> None:
    azure_id = (
        "/subscriptions/1/resourceGroups/gpu/providers/Microsoft.ContainerService"
        "/managedClusters/gone"
    )
    factories.cluster("gone", azure_id=azure_id, azure_message="Not found there.")
    client.force_login(factories.person("Ada"))
    assert "Not found there." not in client.get("/clusters/gone/").content.decode()
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    page = client.get("/clusters/gone/").content.decode()
    assert "Its pools cannot be read in Azure:" in page
    assert "Not found there." in page


def test_of_one_that_is_away_nobody_says_that_all_stands_as_it_was_made(
    client: Client,
) -> None:
    client.force_login(factories.person("Ada"))
    at = timezone.now() - timedelta(hours=7)
    factories.cluster("away", reachable=False, message="no route", last_contact_at=at)
    factories.cluster(
        "never", reachable=False, message="no route", last_contact_at=None
    )
    away = parsed(client.get("/clusters/away/").content.decode()).words
    assert "Everything stands as it was made" not in away
    assert "What others changed since then is not known" in away
    assert "Changed by others nothing when it last answered" in away
    never = parsed(client.get("/clusters/never/").content.decode()).words
    assert "what stands there is not known" in never
    assert "Changed by others not known yet" in never


def test_of_one_that_is_never_observed_it_is_said_whether_its_repository_answers_or_not(
    client: Client,
) -> None:
    client.force_login(factories.person("Ada"))
    factories.cluster(
        "committed",
        delivery="git",
        kubeconfig="",
        git_url="https://git.example.com/fleet.git",
        reachable=False,
        message="no route",
    )
    page = parsed(client.get("/clusters/committed/").content.decode()).words
    assert "The portal has no access to this cluster" in page
    assert "Changed by others not observed" in page


def test_a_cluster_shows_only_teams_that_the_person_may_see(client: Client) -> None:
    vision, speech = factories.team("Vision"), factories.team("Speech")
    training = factories.cluster("training")
    for team in (vision, speech):
        factories.make_true(factories.tenancy(team, training))
    client.force_login(factories.person("Ada", teams=[vision]))
    page = client.get("/clusters/training/").content.decode()
    assert "Vision" in page
    assert "All ready" in page
    assert "Speech" not in page


def test_of_a_team_that_leaves_it_says_how_far_that_is(client: Client) -> None:
    client.force_login(factories.person("Ada", Role.PLATFORM_LEAD))
    place = factories.make_true(
        factories.tenancy(factories.team("Vision"), factories.cluster("training"))
    )
    factories.leave(place, to="retained", at=timezone.now(), kept=timedelta(days=9))
    page = client.get("/clusters/training/").content.decode()
    assert "Kept for a return" in page
    assert "All ready" not in page


def test_no_clusters_yet_says_what_one_is_for(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    assert "No clusters yet" in client.get("/clusters/").content.decode()


def test_a_platform_lead_adds_a_cluster_and_a_kind_of_gpu(priya: Client) -> None:
    assert priya.post("/clusters/new", TRAINING)["Location"] == "/clusters/training/"
    assert (
        priya.post("/clusters/training/flavors/new", A100)["Location"]
        == "/clusters/training/"
    )
    flavor = Flavor.objects.select_related("cluster").get()
    assert (flavor.cluster.borrow_percent, flavor.node_labels, flavor.node_taints) == (
        50,
        {"accelerator": "nvidia-a100"},
        [],
    )
    assert (
        Event.objects.filter(kind__in=[Kind.CLUSTER_ADDED, Kind.FLAVOR_ADDED]).count()
        == 2
    )


def test_hours_between_interruptions_are_of_spot_nodes_alone(priya: Client) -> None:
    flavor = factories.flavor(
        factories.cluster("training"), "a100", capacity_type="spot"
    )
    where = "/clusters/training/flavors/a100"
    for capacity, hours in (("spot", 20), ("on-demand", 0)):
        priya.post(
            where, A100 | {"capacity_type": capacity, "interruption_hours": "20"}
        )
        flavor.refresh_from_db()
        assert (flavor.capacity_type, flavor.interruption_hours) == (capacity, hours)
        assert ("(spot)" in flavor.words) == (capacity == "spot")
        assert flavor.words in priya.get("/clusters/training/").content.decode()


def test_it_changes_them_but_never_their_names(priya: Client) -> None:
    flavor = factories.flavor(factories.cluster("training"), "a100")
    priya.post(
        "/clusters/training/edit", TRAINING | {"name": "other", "title": "Training"}
    )
    priya.post(
        "/clusters/training/flavors/a100",
        A100 | {"name": "other", "price_per_gpu_hour": "4.10"},
    )
    assert Cluster.objects.get().title == "Training"
    flavor.refresh_from_db()
    assert (flavor.name, str(flavor.price_per_gpu_hour), flavor.cluster.name) == (
        "a100",
        "4.1000",
        "training",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "Training!"}, "letters"),
        ({"name": ""}, "required"),
        ({"kubeconfig": "../../etc/passwd"}, "without a path"),
        ({"kubeconfig": "not-there.yaml"}, "has no file of this name"),
        ({"borrow_percent": "101"}, "Borrow between 0 and 100"),
        ({"purpose": "mining"}, "mining"),
    ],
)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"node_labels": "not json"},
        {"node_labels": "[]"},
        {"node_taints": '[{"key": "a"}]'},
        {"price_per_gpu_hour": "0"},
        {"price_per_gpu_hour": "NaN"},
        {"node_labels": '{"a b": "c"}'},
    ],
)
def test_what_cannot_be_a_kind_of_gpu_is_refused(
    priya: Client, change: dict[str, str]
) -> None:
    factories.cluster("training")
    assert (
        priya.post("/clusters/training/flavors/new", A100 | change).status_code == 422
    )
    assert not Flavor.objects.exists()


@pytest.mark.parametrize(
    "path",
    [
        "/clusters/new",
        "/clusters/training/edit",
        "/clusters/training/flavors/new",
        "/clusters/training/flavors/a100",
    ],
)
def test_an_empty_form_is_shown_again_and_changes_nothing(
    priya: Client, path: str
) -> None:
    factories.flavor(factories.cluster("training"), "a100")
    answer = priya.post(path, {})
    assert answer.status_code == 422
    assert "Nothing stands here yet. Fill it in." in answer.content.decode()
    assert (Cluster.objects.count(), Flavor.objects.count()) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    ["/clusters/new", "/clusters/training/edit", "/clusters/training/flavors/new"],
)
@pytest.mark.parametrize(
    "role",
    [Role.DATA_SCIENTIST, Role.TEAM_LEAD, Role.ENGINEERING_LEADERSHIP, Role.AUDITOR],
)
def test_others_change_nothing(client: Client, path: str, role: Role) -> None:
    factories.cluster("training")
    client.force_login(factories.person("Ada", role))
    assert client.get(path).status_code == 403
    assert client.post(path, TRAINING).status_code == 403
    assert Cluster.objects.count() == 1


def test_the_list_says_how_many_teams_are_there_what_is_not_so_and_what_runs(
    client: Client,
) -> None:
    client.force_login(factories.person("Ada"))
    training = factories.cluster("training", kueue_version="v0.19.2")
    factories.cluster("empty", delivery=Cluster.Delivery.GIT)
    both = factories.team("Vision")
    factories.make_true(factories.tenancy(both, training))
    factories.tenancy(on=training)
    factories.make_true(factories.tenancy(both, training, environment="test"))
    page = client.get("/clusters/").content.decode()
    for words in (
        "2 teams here",
        "1 not as wanted",
        "No team is here yet",
        "Kueue v0.19.2",
        "through Git",
        "Last contact",
    ):
        assert words in page
    page = client.get("/clusters/training/").content.decode()
    for words in (
        "3, 1 of them not as wanted",
        "v0.19.2",
        "20 a second, 4 teams at once",
        "nothing",
    ):
        assert words in page


def test_a_kueue_that_is_too_old_is_no_refusal_of_ours(client: Client) -> None:
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    factories.cluster(
        "old",
        reachable=False,
        message="Kueue v0.15.1 is too old: the portal needs 0.16 or newer.",
        failure_code="kueue_too_old",
    )
    page = client.get("/clusters/").content.decode()
    assert "Cannot be used" in page
    assert "Kueue v0.15.1 is too old" in page


def test_an_address_with_the_number_of_a_refusal_in_it_refuses_nobody() -> None:
    silent_one = Cluster(reachable=False, message="no route to 10.4.0.7:40356")
    assert health(silent_one) == ("bad", "Does not answer")


def test_every_part_of_a_cluster_has_words_for_its_badge() -> None:
    names = {value for name, value in vars(parts_of).items() if name.isupper()}
    others = {parts_of.GOOD, parts_of.BAD, parts_of.UNKNOWN, parts_of.WEBHOOK_FAILED}
    assert names - others == set(BROKEN)


def test_a_lead_sets_how_hard_a_cluster_is_worked_on(priya: Client) -> None:
    factories.cluster("training")
    page = priya.get("/clusters/training/edit").content.decode()
    assert "Writes a second" in page
    sent = {**TRAINING, "writes_per_second": "50", "most_at_once": "8"}
    assert priya.post("/clusters/training/edit", sent).status_code == 302
    assert Cluster.objects.values_list("writes_per_second", "most_at_once").get() == (
        50,
        8,
    )
    refused = priya.post("/clusters/training/edit", {**sent, "most_at_once": "0"})
    assert refused.status_code == 422
    assert Cluster.objects.get().most_at_once == 8


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("price_per_gpu_hour", "１２"),
        ("price_per_gpu_hour", "1e1"),
        ("price_per_gpu_hour", "1,5"),
        ("memory_gb", "８０"),
        ("gpus_per_node", "٨"),
        ("cpu_per_gpu", "+8"),
        ("memory_gib_per_gpu", "8_0"),
    ],
)
def test_numbers_of_a_kind_of_gpu_are_plain_digits(
    priya: Client, field: str, typed: str
) -> None:
    factories.cluster("training")
    answer = priya.post("/clusters/training/flavors/new", A100 | {field: typed})
    assert (answer.status_code, Flavor.objects.exists()) == (422, False)
    assert (
        f'id="{field}-error"' in answer.content.decode()
        or f"id_{field}" in answer.content.decode()
    )


def test_a_price_that_may_be_mistyped_is_taken_when_it_is_meant(priya: Client) -> None:
    cluster = factories.cluster("training")
    factories.flavor(cluster, "a100", price_per_gpu_hour="3.67")
    address = "/clusters/training/flavors/a100"
    form = {name: value for name, value in A100.items() if name != "name"}
    assert "I mean " not in priya.get(address).content.decode()
    answer = priya.post(address, form | {"price_per_gpu_hour": "3670"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "This is 1,000 times the price of now, $3.67. Say that it is meant." in page
    assert "I mean 3670 USD per GPU-hour" in page
    low = priya.post(address, form | {"price_per_gpu_hour": "0.0367"})
    assert "This is 1/100 of the price of now" in low.content.decode()
    assert Flavor.objects.get().price_per_gpu_hour == Decimal("3.67")
    meant = form | {"price_per_gpu_hour": "3670", "price_is_meant": "on"}
    assert priya.post(address, meant).status_code == 302
    assert Flavor.objects.get().price_per_gpu_hour == 3670


@pytest.mark.parametrize(
    "field", ["borrow_percent", "writes_per_second", "most_at_once"]
)
def test_numbers_of_a_cluster_are_plain_digits(priya: Client, field: str) -> None:
    usual = TRAINING | {"writes_per_second": "20", "most_at_once": "4"}
    answer = priya.post("/clusters/new", usual | {field: "２"})
    assert (answer.status_code, Cluster.objects.exists()) == (422, False)
    assert "Write a whole number in plain digits." in answer.content.decode()


def test_gpus_that_nobody_counts_or_tells_are_said_to_be_unknown(priya: Client) -> None:
    followed = factories.cluster(
        "west",
        delivery="git",
        kubeconfig="",
        git_url="https://git.example.com/fleet.git",
    )
    factories.flavor(followed, "l40s", gpus_total=0, gpus_seen_at=None)
    factories.flavor(
        factories.cluster("training"), "a100", gpus_total=0, gpus_seen_at=None
    )
    for path in ("/clusters/", "/clusters/west/"):
        assert "nobody has told how many there are" in priya.get(path).content.decode()
    page = priya.get("/clusters/west/").content.decode()
    assert "there is nothing to repair from here" in page
    assert "not observed" in page
    assert "nobody has told" not in priya.get("/clusters/training/").content.decode()


def test_who_leads_tells_how_many_gpus_there_are_where_the_portal_does_not_see_them(
    priya: Client,
) -> None:
    followed = factories.cluster(
        "west",
        delivery="git",
        kubeconfig="",
        git_url="https://git.example.com/fleet.git",
    )
    factories.flavor(followed, "l40s", gpus_total=0, gpus_seen_at=None, allocated=0)
    factories.flavor(factories.cluster("training"), "a100")
    assert "GPUs there are" in priya.get("/clusters/west/flavors/l40s").content.decode()
    assert (
        "GPUs there are"
        not in priya.get("/clusters/training/flavors/a100").content.decode()
    )
    values = A100 | {"gpus_total": "8"}
    assert priya.post("/clusters/west/flavors/l40s", values).status_code == 302
    assert Flavor.objects.get(name="l40s").free == 8
    page = priya.get("/clusters/west/").content.decode()
    assert "told by platform leads, not counted" in page
    priya.post("/clusters/training/flavors/a100", values)
    assert Flavor.objects.get(name="a100").gpus_total == 24


def test_every_field_of_a_cluster_stands_in_one_section() -> None:
    form = ClusterForm()
    named = [name for _, names in SECTIONS for name in names]
    assert sorted(named) == sorted(form.fields)
    shown = [
        bound.name for part in form.sections() for bound in [*part.fields, *part.long]
    ]
    assert sorted(shown) == sorted(form.fields)
