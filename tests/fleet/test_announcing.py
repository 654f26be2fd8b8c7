"""What a platform lead announces about a cluster: where its teams read it, who is told, and until when."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from audit.models import Event
from fleet.clusters.actions import change_cluster
from fleet.declared import declare
from fleet.models import Cluster
from notices.models import Delivery, Notice
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from web.refusals import BadInput

TEXT = "Its nodes restart on Saturday from 22:00 UTC: save checkpoints before."
pytestmark = pytest.mark.django_db


def announce(place: Tenancy, by: User, text: str = TEXT, hours: int = 48) -> None:
    until = timezone.now() + timedelta(hours=hours)
    values = {"announcement": text, "announced_until": until}
    change_cluster(place.cluster_id, values=values, by=by)


def told() -> list[tuple[str, str]]:
    rows = Notice.objects.filter(kind="cluster_announced").select_related("person")
    return [(row.person.name, row.said.sentence) for row in rows if row.person]


@pytest.mark.slow
def test_people_of_its_teams_read_it_until_it_is_over(
    place: Tenancy, ada: User, priya: User, client: Client
) -> None:
    stranger = factories.person("Mallory Finch", teams=[factories.team("Speech")])
    announce(place, priya)
    pages = ("/", "/teams/vision/", "/clusters/", f"/clusters/{place.cluster.name}/")
    for person in (ada, priya):
        client.force_login(person)
        for page in pages:
            assert TEXT in client.get(page).content.decode(), page
            assert "What does not work now" not in client.get(page).content.decode()
    client.force_login(stranger)
    assert TEXT not in client.get("/").content.decode()
    Cluster.objects.update(announced_until=timezone.now() - timedelta(minutes=1))
    client.force_login(ada)
    for page in pages:
        assert TEXT not in client.get(page).content.decode(), page


@pytest.mark.slow
def test_who_asks_or_starts_something_there_reads_it_before(
    place: Tenancy, ada: User, priya: User, client: Client
) -> None:
    factories.flavor(place.cluster, "a100")
    factories.notebooks_on(place.cluster)
    Tenancy.objects.update(generation=1, observed_generation=1)
    until = (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    asked = {"team": "vision", "flavor": "training/a100", "gpus": 1, "until": until}
    pages = (
        f"/requests/new?{urlencode(asked | {'reason': 'Fine-tune the detector.'})}",
        "/teams/vision/notebooks",
    )
    client.force_login(ada)
    for page in pages:
        assert TEXT not in client.get(page, follow=True).content.decode(), page
    announce(place, priya)
    for page in pages:
        assert TEXT in client.get(page, follow=True).content.decode(), page


def test_members_are_told_once_and_of_what_counts(
    place: Tenancy, ada: User, priya: User
) -> None:
    factories.person("Mallory Finch", teams=[factories.team("Speech")])
    announce(place, priya)
    assert told() == [("Ada Okafor", TEXT)]
    # The first is not sent any more where it has not left yet.
    announce(place, priya, "It is moved to Sunday.")
    waiting = Delivery.objects.filter(notice__kind="cluster_announced", state="waiting")
    assert [row.notice.said.sentence for row in waiting if row.notice] == [
        "It is moved to Sunday."
    ]
    change_cluster(place.cluster_id, values={"title": "Training 2"}, by=priya)
    announce(place, priya, "")
    assert len(told()) == 2
    event = Event.objects.filter(kind="cluster.changed").latest("seq")
    assert event.details["announcement_before"] == "It is moved to Sunday."


def test_saving_something_else_or_reading_the_fleets_file_tells_nobody_again(
    place: Tenancy, ada: User, priya: User
) -> None:
    file = {
        "name": place.cluster.name,
        "announcement": TEXT,
        "announced_until": "2099-01-01T00:00:07Z",
    }
    for _ in range(3):
        declare([file])
    assert told() == [("Ada Okafor", TEXT)]
    # A form knows whole minutes.
    shown = datetime(2099, 1, 1, tzinfo=UTC)
    values = {"announcement": TEXT, "announced_until": shown, "title": "Training 2"}
    change_cluster(place.cluster_id, values=values, by=priya)
    assert len(told()) == 1
    with pytest.raises(BadInput):
        declare([file | {"announced_until": "soon"}])


def test_it_is_written_by_form_and_api(
    place: Tenancy, ada: User, priya: User, client: Client
) -> None:
    lead, address = Caller(priya), f"clusters/{place.cluster.name}/"
    said = {"announcement": TEXT, "announced_until": "2099-01-01T00:00:00Z"}
    shown = lead.patch(address, said).json()
    assert {name: shown[name] for name in said} == said
    assert lead.patch(address, {"announcement": "x" * 301}).status_code == 422
    client.force_login(priya)
    page = client.get(f"/clusters/{place.cluster.name}/edit").content.decode()
    assert TEXT in page
    assert "What its teams read" in page


def test_teams_are_told_that_a_cluster_takes_no_new_requests_and_that_it_does_again(
    place: Tenancy, ada: User, priya: User, client: Client
) -> None:
    flavor = factories.flavor(place.cluster, "a100")
    factories.allocation(ada, place, flavor, gpus=2)
    factories.person("Mallory Finch", teams=[factories.team("Speech")])
    client.force_login(priya)
    page = client.get(f"/clusters/{place.cluster.name}/edit").content.decode()
    assert "Now 1 team is there: it holds 2 GPUs, and is told." in page
    for enabled in (False, False, True):
        change_cluster(place.cluster_id, values={"enabled": enabled}, by=priya)
    [closed, opened] = told()
    assert closed[0] == opened[0] == "Ada Okafor"
    assert "is not kept longer" in closed[1]
    assert "can be kept longer" in opened[1]
    waiting = Delivery.objects.filter(notice__kind="cluster_announced", state="waiting")
    assert waiting.count() == 1


def test_a_cluster_without_teams_concerns_nobody(priya: User, client: Client) -> None:
    empty = factories.cluster("research")
    client.force_login(priya)
    page = client.get(f"/clusters/{empty.name}/edit").content.decode()
    assert "who is there works on until" in page
    assert "told." not in page.partition("who is there works on until")[2][:200]
    change_cluster(empty.pk, values={"enabled": False}, by=priya)
    assert told() == []
