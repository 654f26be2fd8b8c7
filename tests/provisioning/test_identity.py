"""A kubeconfig that leads to another cluster, and a list of nodes that is too short: nothing follows from either."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from accounts.models import User
from accounts.roles import Role
from audit.models import Event
from fleet.clusters.actions import accept_capacity, accept_identity
from fleet.models import Cluster, Flavor
from notices.models import Notice
from provisioning.clusters.capacity import LOOKS_UNTIL_BELIEVED, doubt
from provisioning.clusters.observe import look_at
from provisioning.drift import cluster_sweep
from provisioning.models import Drift
from tests import factories
from tests.calling import Caller
from tests.provisioning.conftest import Place
from tests.provisioning.kubernetes import Kubernetes, served
from web.refusals import Conflict, NoRight, Stale

pytestmark = pytest.mark.django_db
SYSTEM, NODE = "kube-system", ("v1", "Node")


@pytest.fixture
def priya(db: None) -> User:
    return factories.person("Priya Raman", Role.PLATFORM_LEAD)


@pytest.fixture(scope="module")
def second_server() -> Iterator[Kubernetes]:
    """The other cluster that these tests share; use `other_server` instead."""
    with served() as running:
        yield running


@pytest.fixture
def other_server(second_server: Kubernetes) -> Iterator[Kubernetes]:
    """Another cluster, without a tenancy."""
    state = second_server.snapshot()
    second_server.cluster.requests.clear()
    yield second_server
    second_server.restore(state)


@pytest.fixture
def known(place: Place) -> Place:
    """A settled tenancy on a cluster that was looked at."""
    assert look_at(place.cluster.pk, now=place.now)
    place.reconcile()
    assert place.row.is_settled
    return place


def lead_to(place: Place, server: Kubernetes, folder: Path) -> None:
    """Somebody puts another cluster's kubeconfig into the file."""
    name = Cluster.objects.values_list("kubeconfig", flat=True).get(pk=place.cluster.pk)
    text = (folder / server.kubeconfig(folder)).read_text()
    (folder / name).write_text(text)


def row(place: Place) -> Cluster:
    return Cluster.objects.get(pk=place.cluster.pk)


def totals() -> dict[str, int]:
    return dict(Flavor.objects.values_list("name", "gpus_total"))


def uid_of(server: Kubernetes) -> str:
    found = server.get(("v1", "Namespace"), SYSTEM)
    assert found is not None
    return str(found["metadata"]["uid"])


def test_which_cluster_it_is_is_kept_at_the_first_contact(place: Place) -> None:
    place.reconcile()
    assert row(place).identity == uid_of(place.kubernetes)
    assert look_at(place.cluster.pk, now=place.now)
    assert (row(place).identity_found, row(place).reachable) == ("", True)


def test_a_kubeconfig_that_leads_to_another_cluster_stops_everything_there(
    known: Place, other_server: Kubernetes, tmp_path: Path
) -> None:
    before, name = totals(), known.tenancy.namespace
    lead_to(known, other_server, tmp_path)
    other_server.cluster.requests.clear()
    for _ in range(3):
        known.later(seconds=61)
        assert not look_at(known.cluster.pk, now=known.now)
        cluster_sweep.sweep(known.cluster.pk, now=known.now)
        known.reconcile()
    assert other_server.writes == 0
    assert totals() == before
    assert row(known).message.startswith(
        "The kubeconfig leads to another cluster than before."
    )
    assert (row(known).identity, row(known).identity_found) == (
        uid_of(known.kubernetes),
        uid_of(other_server),
    )
    assert "leads to another cluster" in known.row.ready["message"]
    assert not Drift.objects.exists()
    assert known.kubernetes.get(("v1", "Namespace"), name) is not None


def test_once_the_file_is_mended_it_goes_on_where_it_was(
    known: Place, other_server: Kubernetes, tmp_path: Path
) -> None:
    lead_to(known, other_server, tmp_path)
    look_at(known.cluster.pk, now=known.now)
    lead_to(known, known.kubernetes, tmp_path)
    assert look_at(known.cluster.pk, now=known.now)
    assert (row(known).identity_found, row(known).message) == ("", "")
    known.later(seconds=61)
    assert known.reconcile() == 0


def test_a_lead_accepts_the_other_cluster_and_everything_is_made_there(
    known: Place, other_server: Kubernetes, tmp_path: Path, priya: User
) -> None:
    lead_to(known, other_server, tmp_path)
    look_at(known.cluster.pk, now=known.now)
    found = row(known).identity_found
    with pytest.raises(NoRight):
        accept_identity(known.cluster.pk, found=found, by=known.ada)
    with pytest.raises(Stale):
        accept_identity(known.cluster.pk, found="another", by=priya)
    accept_identity(known.cluster.pk, found=found, by=priya)
    assert Event.objects.latest("seq").details["identity"] == found
    assert look_at(known.cluster.pk, now=known.now)
    with pytest.raises(Conflict):
        accept_identity(known.cluster.pk, found=found, by=priya)
    known.later(seconds=61)
    known.reconcile()
    assert other_server.get(("v1", "Namespace"), known.tenancy.namespace) is not None


def test_one_api_server_is_registered_once(known: Place) -> None:
    twin = factories.cluster(
        "twin", kubeconfig=known.cluster.kubeconfig, cohort="other"
    )
    written = known.kubernetes.writes
    assert not look_at(twin.pk, now=known.now)
    message = Cluster.objects.get(pk=twin.pk).message
    assert message == f"This API server is registered as {known.cluster.title} already."
    assert known.kubernetes.writes == written


def test_a_cluster_that_shows_no_system_namespace_is_not_believed(known: Place) -> None:
    before = totals()
    known.kubernetes.fail(
        where=f"namespaces/{SYSTEM}$", method="GET", times=1, status=404
    )
    written = known.kubernetes.writes
    assert not look_at(known.cluster.pk, now=known.now)
    assert "is not believed" in row(known).message
    assert (known.kubernetes.writes, totals()) == (written, before)


def remove_nodes(place: Place, keep: int) -> None:
    for name in sorted(place.kubernetes.names(NODE))[keep:]:
        place.kubernetes.delete(NODE, name)


def test_an_empty_list_of_nodes_changes_no_number_and_leads_are_told_once(
    known: Place, priya: User
) -> None:
    before = totals()
    assert before["a100"] == 24
    remove_nodes(known, 0)
    for _ in range(3):
        assert look_at(known.cluster.pk, now=known.now)
    assert totals() == before
    assert row(known).capacity_doubt == "The cluster listed no nodes at all; it had 6."
    [notice] = Notice.objects.filter(kind="cluster_braked", person=priya)
    assert "are not believed" in notice.message["title"]


@pytest.mark.slow
def test_a_short_list_is_believed_when_it_lasts(known: Place) -> None:
    remove_nodes(known, 0)
    for _ in range(LOOKS_UNTIL_BELIEVED - 1):
        look_at(known.cluster.pk, now=known.now)
    assert totals()["a100"] == 24
    look_at(known.cluster.pk, now=known.now)
    assert (totals()["a100"], row(known).capacity_doubt, row(known).nodes_seen) == (
        0,
        "",
        0,
    )


def test_a_full_list_ends_the_doubt(known: Place) -> None:
    state = known.kubernetes.snapshot()
    remove_nodes(known, 0)
    look_at(known.cluster.pk, now=known.now)
    known.kubernetes.restore(state)
    look_at(known.cluster.pk, now=known.now)
    assert (row(known).capacity_doubt, row(known).doubted_looks, totals()["a100"]) == (
        "",
        0,
        24,
    )


def test_a_lead_accepts_a_short_list_at_once(known: Place, priya: User) -> None:
    remove_nodes(known, 0)
    look_at(known.cluster.pk, now=known.now)
    with pytest.raises(NoRight):
        accept_capacity(known.cluster.pk, by=known.ada)
    accept_capacity(known.cluster.pk, by=priya)
    look_at(known.cluster.pk, now=known.now)
    assert totals()["a100"] == 0
    with pytest.raises(Conflict):
        accept_capacity(known.cluster.pk, by=priya)


def test_nodes_that_leave_one_by_one_and_nodes_that_are_cordoned_are_believed(
    known: Place,
) -> None:
    for left in range(5, -1, -1):
        remove_nodes(known, left)
        look_at(known.cluster.pk, now=known.now)
        if left:
            assert (row(known).nodes_seen, row(known).capacity_doubt) == (left, "")
    assert row(known).capacity_doubt == "The cluster listed no nodes at all; it had 1."


@pytest.mark.parametrize(
    ("before", "now", "doubted"),
    [
        (0, 0, False),
        (0, 5, False),
        (1, 0, True),
        (6, 3, False),
        (6, 2, True),
        (3, 1, False),
        (100, 51, False),
        (100, 49, True),
        (5, 2, True),
        (4, 2, False),
    ],
)
def test_more_than_half_of_the_nodes_at_once_is_too_many(
    before: int, now: int, doubted: bool
) -> None:
    assert bool(doubt(before=before, now=now)) is doubted


@pytest.mark.slow
def test_page_and_api_say_it_and_a_lead_accepts_there(
    known: Place, other_server: Kubernetes, tmp_path: Path, priya: User
) -> None:
    remove_nodes(known, 0)
    look_at(known.cluster.pk, now=known.now)
    lead_to(known, other_server, tmp_path)
    look_at(known.cluster.pk, now=known.now)
    lead, member = Caller(priya), Caller(known.ada)
    shown = lead.get("clusters/training/").json()
    assert shown["capacity_doubt"].startswith("The cluster listed no nodes")
    assert shown["identity_found"] == uid_of(other_server)
    browser = Client()
    browser.force_login(priya)
    page = browser.get("/clusters/training", follow=True).content.decode()
    assert "Accept the other cluster" in page
    assert "Accept what it lists" in page
    assert member.post("clusters/training/accept-capacity/", {}).status_code == 403
    assert (
        lead.post("clusters/training/accept-capacity/", {}).json()["capacity_doubt"]
        == ""
    )
    body = {"identity_found": uid_of(other_server)}
    assert (
        lead.post(
            "clusters/training/accept-identity/", {"identity_found": "x"}
        ).status_code
        == 412
    )
    assert (
        lead.post("clusters/training/accept-identity/", body).json()["identity_found"]
        == ""
    )
    assert lead.post("clusters/training/accept-identity/", body).status_code == 409
