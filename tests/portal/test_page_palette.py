"""Search: what is found, what is not, and in which shape."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from catalogue import actions as catalogue
from fleet.models import Flavor
from portal.pages import finding
from provisioning.models import Tenancy
from tests import factories

pytestmark = pytest.mark.django_db


def found(client: Client, q: str) -> str:
    """What htmx gets."""
    answer = client.get("/palette", {"q": q}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert "<html" not in answer.content.decode()
    return answer.content.decode()


@pytest.mark.slow
def test_it_finds_requests_teams_and_clusters_a_person_may_see(client: Client) -> None:
    vision, speech = factories.team("Vision"), factories.team("Speech")
    ada = factories.person("Ada", teams=[vision])
    place = factories.tenancy(
        vision, factories.cluster("training", title="Training East US")
    )
    asked = factories.request(ada, place, factories.flavor(place.cluster), gpus=1)
    mallory = factories.person("Mallory", teams=[speech])
    other = factories.tenancy(speech, place.cluster)
    hidden = factories.request(mallory, other, factories.flavor(place.cluster), gpus=1)
    client.force_login(ada)
    assert f"/requests/{asked.pk}/" in found(client, str(asked.pk))
    assert f"/requests/{asked.pk}/" in found(client, f"request-{asked.pk}")
    assert f"/requests/{hidden.pk}/" not in found(client, str(hidden.pk)) + found(
        client, "mallory"
    ) + found(client, "a100")
    assert "/teams/vision/" in found(client, "vis")
    # In one element: the gap of the row would stand around the word otherwise.
    said = "<span>Nothing is called “<bdi>spee</bdi>”.</span>"
    assert said in found(client, "spee")
    assert "/clusters/training/" in found(client, "train")


def test_it_knows_pages_and_actions_by_the_beginnings_of_words(client: Client) -> None:
    client.force_login(factories.person("Ada", teams=[factories.team("Vision")]))
    assert "/requests/new" in found(client, "ask")
    assert "/teams/new" in found(client, "team boa")
    assert "Add a cluster" not in found(client, "add")
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    assert "Add a cluster" in found(client, "add")
    assert "/approvals/" in found(client, "appr")


def test_what_a_team_holds_is_given_back_and_kept_from_here(client: Client) -> None:
    ada = factories.person("Ada", teams=[vision := factories.team("Vision")])
    place = factories.tenancy(vision, factories.cluster("training"))
    row = factories.allocation(ada, place, factories.flavor(place.cluster, "a100"))
    client.force_login(ada)
    assert f"/allocations/{row.pk}/give-back" in found(client, "give back")
    assert f"/allocations/{row.pk}/renew" in found(client, "keep")
    assert "/teams/vision/budget" in found(client, "budget")
    client.force_login(factories.person("Mallory"))
    assert f"/allocations/{row.pk}" not in found(client, "give back")


@pytest.mark.parametrize(
    ("q", "href"),
    [
        ("costs", "/costs/"),
        ("cost centres", "/cost-centres/"),
        ("notices", "/settings/notices"),
        ("stand-in", "/stand-in"),
        ("prices", "/capacity/prices"),
        ("reservations", "/capacity/reservations/"),
    ],
)
def test_pages_beside_the_rail_are_found(client: Client, q: str, href: str) -> None:
    client.force_login(factories.person("Ada", teams=[factories.team("Vision")]))
    assert f'href="{href}' in found(client, q)


@pytest.mark.slow
@pytest.mark.parametrize(
    "role", [Role.PLATFORM_LEAD, Role.AUDITOR, Role.DATA_SCIENTIST]
)
def test_every_page_that_is_offered_opens(client: Client, role: Role) -> None:
    client.force_login(factories.person("Ada", role, teams=[factories.team("Vision")]))
    offered = re.findall(r'href="(/[^"]*)"', found(client, ""))
    assert len(offered) > 15
    assert {href: client.get(href).status_code for href in offered} == dict.fromkeys(
        offered, 200
    )


def test_without_script_it_is_a_page(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    answer = client.get("/palette?q=<script>")
    assert b"<html" in answer.content
    assert b"<script>" not in answer.content.split(b"<body")[1].split(b"search-q")[1]
    assert "HX-Request" in answer["Vary"]


def test_numbers_too_large_for_any_request_find_nothing(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    assert "Nothing is called" in found(client, "9" * 40)


def test_it_offers_no_action_to_who_may_not_take_it(client: Client) -> None:
    client.force_login(factories.person("Sam", Role.AUDITOR))
    assert "/requests/new" not in found(client, "ask")
    assert "/teams/new" not in found(client, "team boa")


@pytest.fixture
def place() -> Tenancy:
    return factories.tenancy(
        factories.team("Vision"), factories.cluster("training", title="Training")
    )


@pytest.fixture
def ada(place: Tenancy, client: Client) -> User:
    """Signed in, a member of Vision."""
    ada = factories.person("Ada Okafor", teams=[place.team])
    client.force_login(ada)
    return ada


def ask(by: User, at: Tenancy, offering: str, **spec: object) -> Request:
    """An ask of any offering."""
    now = timezone.now()
    wanted = resolve(
        offering,
        spec,
        team=at.team,
        until=now + timedelta(days=3),
        reason="For the November data.",
    )
    return submit(wanted, by=by, now=now)


@pytest.mark.slow
def test_it_finds_requests_by_what_they_are_called(
    client: Client, place: Tenancy, ada: User
) -> None:
    gpus = factories.request(
        ada, place, factories.flavor(place.cluster, "a100"), gpus=2
    )
    volume = ask(ada, place, "volume", cluster="training", name="my-corpus", gib=1500)
    model = ask(
        ada,
        place,
        "openai",
        region="eastus",
        model="gpt-4o",
        thousand_tokens_per_minute=30,
    )
    asked = {"gpus": gpus, "volume": volume, "openai": model}
    for q, key in (
        ("2 × A100", "gpus"),
        ("2 x a100", "gpus"),
        ("2×A100", "gpus"),
        ("corpus", "volume"),
        ("my-corp", "volume"),
        ("1,500 GiB", "volume"),
        ("1500 gib", "volume"),
        ("volume", "volume"),
        ("dataset", "volume"),
        ("gpt", "openai"),
        ("4o", "openai"),
        ("ada corpus", "volume"),
        ("vision gpt", "openai"),
    ):
        page = found(client, q)
        shown = {
            name for name, each in asked.items() if f"/requests/{each.pk}/" in page
        }
        assert shown == {key}, q
    assert "Nothing is called" in found(client, "orpus")


def test_it_finds_runs_and_notebooks_by_their_names_and_none_of_another_team(
    client: Client, place: Tenancy, ada: User
) -> None:
    other = factories.tenancy(factories.team("Speech"), place.cluster)
    mallory = factories.person("Mallory", teams=[other.team])
    for one, by in ((place, ada), (other, mallory)):
        factories.run(one, by, title="First try")
        factories.notebook(one, by, title="Explore frames")
    [run, theirs] = [one.runs.get() for one in (place, other)]
    page = found(client, "first try")
    assert f"/runs/{run.pk}" in page
    assert f"/runs/{theirs.pk}" not in page
    assert f"/runs/{run.pk}" in found(client, run.name)
    page = found(client, "frames")
    assert f"/notebooks/{place.notebooks.get().pk}" in page
    assert f"/notebooks/{other.notebooks.get().pk}" not in page


def test_it_finds_what_may_be_asked_for_by_who_may_ask(
    client: Client, ada: User
) -> None:
    assert "/requests/new/volume" in found(client, "volume")
    assert "/requests/new/openai" in found(client, "gpt")
    priya = factories.person("Priya", Role.PLATFORM_LEAD)
    catalogue.change("volume", by=priya, enabled=False)
    assert "/requests/new/volume" not in found(client, "volume")
    client.force_login(factories.person("Sam", Role.AUDITOR))
    assert "/requests/new/" not in found(client, "gpt")


@pytest.mark.parametrize(
    ("typed", "gpus"),
    [
        ("4 a100", 4),
        ("4 x A100", 4),
        ("4× a100 80", 4),
        ("ask for 12 a100 gpus", 12),
        ("ask a100", 1),
        ("need 2 gpus", 2),
    ],
)
def test_so_many_gpus_lead_to_the_form_filled_in(
    client: Client, place: Tenancy, ada: User, typed: str, gpus: int
) -> None:
    factories.flavor(place.cluster, "a100")
    link = f"/requests/new?flavor={place.cluster.name}%2Fa100&amp;gpus={gpus}"
    page = found(client, typed)
    assert f"Ask for {gpus} × A100 80 GB" in page
    assert link in page
    form = client.get(unescape(link)).content.decode()
    assert re.search(rf'name="gpus"[^>]*value="{gpus}"', form)


def test_spot_nodes_are_not_the_first_that_somebody_gets(
    client: Client, place: Tenancy, ada: User
) -> None:
    cheap = factories.flavor(place.cluster, "a100-spot")
    factories.flavor(place.cluster, "a100")
    Flavor.objects.filter(pk=cheap.pk).update(
        capacity_type=Flavor.Capacity.SPOT, price_per_gpu_hour=1
    )
    page = found(client, "4 a100")
    assert page.index("Ask for 4 × A100 80 GB<") < page.index("A100 80 GB (spot)")


def test_gpus_are_offered_only_to_who_may_ask_for_them(
    client: Client, place: Tenancy, ada: User
) -> None:
    flavor = factories.flavor(place.cluster, "a100")
    for typed in ("a100", "4", "4 h100", "ask", "4 vision"):
        assert "?flavor=" not in found(client, typed), typed
    client.force_login(factories.person("Sam", Role.AUDITOR))
    assert "?flavor=" not in found(client, "4 a100")
    client.force_login(ada)
    Flavor.objects.filter(pk=flavor.pk).update(is_offered=False)
    assert "?flavor=" not in found(client, "4 a100")


def test_older_requests_are_found_by_who_asked_and_the_newest_by_every_word(
    client: Client, place: Tenancy, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "MAX_SCANNED", 5)
    flavor = factories.flavor(place.cluster, "a100", gpus_total=1000)
    ben = factories.person("Ben", teams=[place.team])
    first = factories.request(ben, place, flavor)
    factories.more_like(
        factories.request(ada, place, flavor, gpus=8), 9, apart=timedelta(seconds=1)
    )
    assert f"/requests/{first.pk}/" in found(client, "ben")
    assert f"/requests/{first.pk}/" in found(client, str(first.pk))
    assert "Nothing is called" in found(client, "ben gpt")


@pytest.mark.slow
def test_fifty_of_everything_cost_no_more_queries_than_five(
    client: Client, place: Tenancy, ada: User
) -> None:
    flavor = factories.flavor(place.cluster, "a100")
    asked = factories.request(ada, place, flavor, gpus=8)
    counts = []
    for number in (5, 45):
        factories.more_like(asked, number)
        for _ in range(number):
            factories.run(place, ada)
            factories.notebook(place, ada)
        with CaptureQueriesContext(connection) as seen:
            found(client, "a")
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 12
