"""What a team reads of its models: on the page of the request, and over the API."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from allocations.ends import actions as ends
from approvals.models import Request
from audit.models import Event
from capacity.models import ModelAccount, ModelEndpoint
from capacity.subscriptions import observing
from notices.models import Notice
from tests import factories
from tests.calling import Caller
from tests.capacity.connected import EASTUS, Time, connected
from tests.capacity.models_in_azure import Models, models
from tests.pages import parsed
from tests.sandbox.azure.running import SUBSCRIPTION, Running
from tests.scene import scene

pytestmark = pytest.mark.django_db


@pytest.fixture
def here(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Models]:
    with connected(azure, monkeypatch):
        made = models(scene(), azure)
        made.time = Time(timezone.now())
        yield made


def page_of(here: Models, client: Client) -> str:
    """The page of the newest request, as Ada sees it."""
    client.force_login(here.scene.ada)
    return str(
        client.get(f"/requests/{Request.objects.latest('pk').pk}/").content.decode()
    )


@pytest.mark.slow
def test_the_page_says_that_azure_makes_it_and_then_how_it_is_called(
    here: Models, client: Client
) -> None:
    here.grant(30)
    before = page_of(here, client)
    assert "Azure makes it within minutes, or says why not." in before
    assert "How to call it" in before
    assert "az account get-access-token" not in before
    here.work()
    shown = page_of(here, client)
    address = ModelAccount.objects.get().endpoint
    for words in (
        f"{address}openai/deployments/gpt-4o/chat/completions?api-version=",
        "gpt-4o 2024-08-06",
        "30 thousand a minute",
        here.scene.team.entra_group_name,
        "It has no keys.",
        "Its network is closed: ask platform leads for a private endpoint",
        "then the portal deletes it in Azure",
        "Ends; the portal deletes it in Azure",
    ):
        assert words in shown.replace("&quot;", '"'), words


def test_an_embedding_is_called_as_such(here: Models, client: Client) -> None:
    here.grant(5, model="text-embedding-3-large")
    here.work()
    assert "/deployments/text-embedding-3-large/embeddings?" in page_of(here, client)


@pytest.mark.slow
def test_the_page_of_what_is_paid_and_refused_lets_leads_try_again(
    here: Models, client: Client
) -> None:
    here.grant(30)
    here.work()
    ModelEndpoint.objects.update(held=10, refusal="No more here.", refused_capacity=30)
    row = ModelEndpoint.objects.get()
    path = f"/capacity/models/{row.pk}/retry"
    shown = page_of(here, client)
    assert "No more here." in shown
    assert path not in shown
    client.force_login(here.scene.priya)
    request = f"/requests/{Request.objects.latest('pk').pk}/"
    assert path in client.get(request).content.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "Ready"),
        ({"held": 0}, "Being made again"),
        ({"held": 0, "refusal": "No.", "refused_capacity": 30}, "Refused"),
    ],
)
def test_the_page_says_ready_of_what_azure_has_alone(
    here: Models, client: Client, fields: dict[str, Any], word: str
) -> None:
    here.grant(30)
    here.work()
    ModelEndpoint.objects.update(**fields)
    shown = parsed(page_of(here, client)).words
    found = [one for one in ("Being made again", "Refused") if one in shown]
    assert found == [one for one in [word] if one != "Ready"]
    assert ("State Ready" in shown) is (word == "Ready")


def test_the_page_of_one_model_says_nothing_of_what_another_one_meets(
    here: Models, client: Client
) -> None:
    here.grant(30)
    here.work()
    ModelAccount.objects.update(message="No quota for the other one.")
    assert "No quota for the other one." not in page_of(here, client)


@pytest.mark.slow
def test_the_page_says_what_azure_refused(here: Models, client: Client) -> None:
    here.grant(400, model="text-embedding-3-large")
    here.work()
    shown = page_of(here, client)
    assert "Could not be set up" in shown
    assert "InsufficientQuota" in shown


def parked(here: Models) -> ModelEndpoint:
    """A granted model whose account is tried no more."""
    here.grant(30)
    ModelAccount.objects.update(parked_at=here.time(), message="5 tries ended.")
    return ModelEndpoint.objects.get()


@pytest.mark.slow
def test_a_parked_account_is_tried_again_by_platform_leads_alone(
    here: Models, client: Client
) -> None:
    row = parked(here)
    path = f"/capacity/models/{row.pk}/retry"
    assert path not in page_of(here, client)
    assert client.post(path).status_code == 403
    client.force_login(here.scene.priya)
    asked = Request.objects.get()
    assert path in client.get(f"/requests/{asked.pk}/").content.decode()
    assert client.post(path)["Location"] == f"/requests/{asked.pk}/"
    account = ModelAccount.objects.get()
    assert (account.parked_at, account.message) == (None, "")
    assert Event.objects.filter(kind="model_account.tried_again").count() == 1
    here.time.pass_(minutes=1)
    here.work()
    row.refresh_from_db()
    assert row.state == "ready"


def test_it_is_tried_again_over_the_api_and_what_is_deleted_is_not(
    here: Models,
) -> None:
    row, path = parked(here), "model-endpoints/{}/retry/"
    assert Caller(here.scene.ada).post(path.format(row.pk), {}).status_code == 403
    lead = Caller(here.scene.priya)
    assert lead.post(path.format(row.pk), {}).json()["message"] == ""
    assert lead.post(path.format(row.pk), {"soon": True}).status_code == 422
    ModelEndpoint.objects.update(state="deleting", capacity=0)
    ModelEndpoint.objects.update(state="deleted", deleted_at=here.time())
    answer = lead.post(path.format(row.pk), {})
    assert (answer.status_code, answer.json()["code"]) == (
        409,
        "model_endpoint_is_deleted",
    )


def kept_out(here: Models, method: str, url: str) -> None:
    """Have Azure's policy keep the portal from something until platform leads are told."""
    denied = {"status": 403, "code": "RequestDisallowedByPolicy", "times": 99}
    here.azure.fault(method, url, **denied)
    for _ in range(5):
        here.time.pass_(minutes=11)
        here.work(1)
    [notice] = Notice.objects.filter(kind="model_blocked", person=here.scene.priya)
    assert "on the page of the model's request" in notice.said.sentence
    lead = Client()
    lead.force_login(here.scene.priya)
    asked = Request.objects.get()
    assert lead.get(notice.link).headers["Location"] == f"/requests/{asked.pk}/"


@pytest.mark.slow
def test_what_azure_keeps_the_portal_from_is_tried_again_where_the_notice_says(
    here: Models, client: Client
) -> None:
    here.grant(30)
    kept_out(here, "PUT", "accounts/")
    path = f"/capacity/models/{ModelEndpoint.objects.get().pk}/retry"
    assert path not in page_of(here, client)
    client.force_login(here.scene.priya)
    asked = Request.objects.get()
    assert path in client.get(f"/requests/{asked.pk}/").content.decode()


def test_a_model_leads_to_the_request_that_still_holds_it(
    here: Models, client: Client
) -> None:
    """Of a later one that was given back, the page says nothing of the model, nor has it the button."""
    first, later = here.grant(30), here.grant(5)
    here.work()
    assert ModelEndpoint.objects.count() == 1
    ada = here.scene.ada.as_actor()
    ends.release(later.pk, actor=ada, now=here.time(), why="let go early")
    ModelEndpoint.objects.update(held=10, refusal="No more here.", refused_capacity=30)
    row = ModelEndpoint.objects.get()
    client.force_login(here.scene.priya)
    page, path = f"/requests/{first.hold.request_id}/", f"/capacity/models/{row.pk}"
    assert path in client.get(page).content.decode()
    for told in (client.get(path), client.post(f"{path}/retry")):
        assert told.headers["Location"] == page


@pytest.mark.slow
def test_a_model_that_azure_does_not_let_go_is_tried_again_where_the_notice_says(
    here: Models, client: Client
) -> None:
    allocation = here.grant(30)
    here.work()
    ada = here.scene.ada.as_actor()
    ends.release(allocation.pk, actor=ada, now=here.time(), why="let go early")
    kept_out(here, "DELETE", "accounts/")
    row = ModelEndpoint.objects.get()
    path = f"/capacity/models/{row.pk}/retry"
    assert "How to call it" not in page_of(here, client)
    client.force_login(here.scene.priya)
    page = f"/requests/{Request.objects.get().pk}/"
    assert path in client.get(page).content.decode()
    here.azure.admin("DELETE", "/sandbox/faults")
    client.post(path)
    here.work()
    row.refresh_from_db()
    assert row.state == "deleted"
    assert path not in client.get(page).content.decode()


def test_the_page_asks_no_more_than_others(
    here: Models, client: Client, django_assert_max_num_queries: Any
) -> None:
    here.grant(30)
    here.work()
    client.force_login(here.scene.ada)
    path = f"/requests/{Request.objects.get().pk}/"
    client.get(path)
    with django_assert_max_num_queries(12):
        client.get(path)


def test_the_api_tells_of_models_of_ones_own_teams(here: Models) -> None:
    here.grant(30)
    here.work()
    row = ModelEndpoint.objects.get()
    [listed] = (
        Caller(here.scene.ada)
        .get("model-endpoints/?team=vision&state=ready")
        .json()["results"]
    )
    assert listed["deployment"] == "gpt-4o"
    assert listed["called_by"]["id"] == str(here.scene.team.entra_group)
    assert (
        listed["thousand_tokens_per_minute"],
        listed["held_thousand_tokens_per_minute"],
    ) == (30, 30)
    assert (listed["is_network_open"], listed["message"]) == (False, "")
    one = Caller(here.scene.ada).get(f"model-endpoints/{row.pk}/").json()
    assert listed.items() <= one.items()
    assert one["endpoint"] in one["example"]
    assert (
        Caller(here.scene.ada).get("model-endpoints/?state=deleted").json()["results"]
        == []
    )


@pytest.mark.slow
def test_keys_that_somebody_switches_on_are_told(here: Models, client: Client) -> None:
    here.grant(30)
    here.work()
    page = f"/requests/{Request.objects.get().pk}/"
    client.force_login(here.scene.ada)
    assert "It has no keys." in client.get(page).content.decode()
    kept = here.azure.azure.state.get(here.accounts[0].id)
    assert kept is not None
    kept["properties"]["disableLocalAuth"] = False
    here.azure.azure.state.put(kept)
    here.time.pass_(hours=2)
    here.work()
    assert "whoever has one may call it" in client.get(page).content.decode()
    listed = Caller(here.scene.ada).get("model-endpoints/").json()["results"]
    assert [one["has_keys"] for one in listed] == [True]


def test_another_teams_model_answers_like_a_missing_one(here: Models) -> None:
    here.grant(30)
    row, mallory = ModelEndpoint.objects.get(), Caller(here.scene.mallory)
    assert mallory.get("model-endpoints/").json()["results"] == []
    assert mallory.get(f"model-endpoints/{row.pk}/").status_code == 404
    assert Caller(here.scene.priya).get(f"model-endpoints/{row.pk}/").status_code == 200


@pytest.mark.slow
def test_a_list_asks_as_much_for_many_as_for_few(
    here: Models, django_assert_max_num_queries: Any
) -> None:
    for model in ("gpt-4o", "gpt-4o-mini", "text-embedding-3-large"):
        here.grant(5, model=model)
    ada = Caller(here.scene.ada)
    with django_assert_max_num_queries(6):
        assert len(ada.get("model-endpoints/").json()["results"]) == 3


@pytest.mark.slow
def test_the_form_says_what_is_left(here: Models, client: Client) -> None:
    factories.cluster("dev-eastus", region="eastus", azure_id=EASTUS)
    observing.keep_known(now=here.time())
    observing.observe(SUBSCRIPTION, now=here.time)
    client.force_login(here.scene.ada)
    shown = client.get("/requests/new/openai").content.decode()
    assert "gpt-4o · $10.00 per million tokens" in shown
    assert "450 of 450k left in eastus" in shown
    until = timezone.now() + timedelta(hours=5)
    asked = {
        "team": "vision",
        "region": "eastus",
        "model": "gpt-4o",
        "deployment_type": "Standard",
        "thousand_tokens_per_minute": "451",
        "until": until.strftime("%Y-%m-%dT%H:%M"),
    }
    possible = {**asked, "thousand_tokens_per_minute": "9"}
    assert (
        "450 of 450 thousand tokens a minute are left in eastus."
        in client.post("/requests/preview/openai", possible).content.decode()
    )
    answer = client.post("/requests/preview/openai", asked).content.decode()
    assert "450 of 450 thousand tokens a minute are left in eastus for gpt-4o" in answer
