"""An audit event says with which token its person called, where it was not by a page."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import ApiToken, User
from approvals.models import Request
from audit.events import Kind
from audit.models import Event
from sandbox.backstage import SandboxBackstage
from tests.backstages import BackstageCaller
from tests.calling import Caller
from tests.world import World, world

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> World:
    return world()


@pytest.fixture
def ada(here: World) -> User:
    return here.people["member"]


@pytest.fixture
def body() -> dict[str, Any]:
    """A small ask."""
    return {
        "team": "vision",
        "flavor": "training-eastus/a100",
        "gpus": 1,
        "until": (timezone.now() + timedelta(days=2)).isoformat(),
        "purpose": "training",
    }


def called_with(kind: Kind) -> Any:
    """What the newest event of a kind says of it; None for nothing."""
    return Event.objects.filter(kind=kind).latest("seq").details.get("called_with")


def test_a_personal_token_is_named(ada: User, body: dict[str, Any]) -> None:
    assert Caller(ada).post("requests/", body).status_code == 201
    prefix = ApiToken.objects.get(user=ada).prefix
    assert called_with(Kind.REQUEST_SUBMITTED) == f"token tests (qm_{prefix}…)"


def test_what_the_policy_does_upon_it_is_the_policys_own(
    ada: User, body: dict[str, Any]
) -> None:
    Caller(ada).post("requests/", body)
    of_policy = [event.details for event in Event.objects.filter(actor_kind="policy")]
    assert of_policy
    assert not any("called_with" in details for details in of_policy)


def test_a_plugin_of_backstage_is_named(
    backend: SandboxBackstage, ada: User, body: dict[str, Any]
) -> None:
    plugin = BackstageCaller(backend, ada, plugin="mcp-actions")
    given = body | {"idempotency_key": "request-1"}
    assert plugin.invoke("create-request", given).status_code == 200
    assert called_with(Kind.REQUEST_SUBMITTED) == "Backstage's mcp-actions"


def test_a_refused_call_says_it_too(ada: User) -> None:
    read_only = Caller(ada, "read")
    assert read_only.post("requests/", {}).status_code == 403
    assert str(called_with(Kind.REFUSED)).startswith("token tests (")


def test_a_page_is_called_with_no_token_though_a_call_came_before(
    ada: User, body: dict[str, Any], client: Client
) -> None:
    made = Caller(ada).post("requests/", body).json()["id"]
    client.force_login(ada)
    pk = Request.objects.get(pk=made).pk
    assert client.post(f"/requests/{pk}/comment", {"text": "Thanks"}).status_code < 400
    assert called_with(Kind.REQUEST_COMMENTED) is None


def test_the_page_of_an_event_shows_it_and_its_list_does_not(
    ada: User, body: dict[str, Any], client: Client
) -> None:
    Caller(ada).post("requests/", body)
    client.force_login(ada)
    event = Event.objects.filter(kind=Kind.REQUEST_SUBMITTED).latest("seq")
    assert "token tests (" in client.get(f"/audit/{event.seq}/").text
    assert "token tests (" not in client.get("/audit/").text
