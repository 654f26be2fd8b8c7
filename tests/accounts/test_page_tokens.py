"""The page of personal tokens."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.directory.models import Reason
from accounts.directory.sweep import end_access
from accounts.models import ApiToken, User
from accounts.roles import Role
from accounts.tokens.actions import create_token, revoke_token
from audit.events import Kind
from audit.models import Event, RefusalCount
from tests import factories
from tests.calling import Caller
from web.refusals import NoRight

pytestmark = pytest.mark.django_db
NIGHTLY = {"name": "nightly", "scope": "read", "days": "30"}


@pytest.fixture
def ada(client: Client) -> User:
    ada = factories.person("Ada")
    client.force_login(ada)
    return ada


def test_the_secret_is_shown_once_and_works(client: Client, ada: User) -> None:
    answer = client.post("/tokens/", NIGHTLY)
    assert answer.status_code == 201
    assert "no-store" in answer["Cache-Control"]
    secret = re.search(r"qm_[0-9a-f]{8}_[\w-]{43}", answer.content.decode())
    assert secret
    later = client.get("/tokens/").content.decode()
    assert secret[0] not in later
    assert f"qm_{ApiToken.objects.get().prefix}…" in later
    called = Client().get(
        "/api/v1/teams/", headers={"Authorization": f"Bearer {secret[0]}"}
    )
    assert called.status_code == 200
    assert secret[0] not in str(list(Event.objects.values()))


def test_a_page_that_is_loaded_again_creates_no_second_token(
    client: Client, ada: User
) -> None:
    page = client.get("/tokens/")
    sent = NIGHTLY | {"token": page.context["token"]}
    assert client.post("/tokens/", sent).status_code == 201
    again = client.post("/tokens/", sent)
    assert again.status_code == 422
    assert "It was created when you sent this before" in again.content.decode()
    assert ApiToken.objects.count() == 1
    assert (
        client.post("/tokens/", sent | {"token": again.context["token"]}).status_code
        == 201
    )


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"days": "0"},
        {"days": "366"},
        {"days": "x"},
        {"days": "３０"},
        {"days": "30 "},
        {"scope": "admin"},
        {"scope": ""},
    ],
)
def test_what_cannot_be_is_said_at_its_field(
    client: Client, ada: User, change: dict[str, str]
) -> None:
    answer = client.post("/tokens/", NIGHTLY | change)
    assert answer.status_code == 422
    assert b"No token was created." in answer.content
    assert not ApiToken.objects.exists()
    assert RefusalCount.objects.get(status=422).count == 1


def test_a_field_that_is_not_asked_for_is_never_ignored(
    client: Client, ada: User
) -> None:
    assert client.post("/tokens/", NIGHTLY | {"user": "1"}).status_code == 422
    assert not ApiToken.objects.exists()


def test_a_revoked_token_is_dead_at_once(client: Client, ada: User) -> None:
    client.post("/tokens/", NIGHTLY)
    token = ApiToken.objects.get()
    assert client.get(f"/tokens/{token.prefix}/revoke")["Location"] == "/tokens/"
    assert client.post(f"/tokens/{token.prefix}/revoke")["Location"] == "/tokens/"
    assert "1 ended" in client.get("/tokens/").content.decode()
    assert Event.objects.filter(kind=Kind.TOKEN_REVOKED).count() == 1


def test_nobody_sees_or_revokes_anothers_token(client: Client, ada: User) -> None:
    client.post("/tokens/", NIGHTLY)
    token = ApiToken.objects.get()
    client.force_login(factories.person("Mallory"))
    assert token.prefix not in client.get("/tokens/").content.decode()
    assert client.post(f"/tokens/{token.prefix}/revoke").status_code == 404
    assert ApiToken.objects.get().revoked_at is None


@pytest.mark.slow
def test_a_lead_finds_and_revokes_a_token_that_leaked(
    client: Client, ada: User
) -> None:
    token, secret = create_token(
        user=ada, name="nightly", scope="read", days=30, now=timezone.now()
    )
    assert "Tokens of others" not in client.get("/tokens/").content.decode()
    assert client.post("/tokens/", {"find": token.prefix}).status_code == 422
    priya = factories.person("Priya", Role.PLATFORM_LEAD)
    client.force_login(priya)
    assert token.prefix not in client.get("/tokens/").content.decode()
    for text in ("ada", f"qm_{token.prefix}…", token.prefix, secret):
        found = client.post("/tokens/", {"find": text}).content.decode()
        assert f"qm_{token.prefix}…" in found
    assert (
        "No usable token"
        in client.post("/tokens/", {"find": "mallory"}).content.decode()
    )
    done = client.post(f"/tokens/{token.prefix}/revoke", follow=True)
    assert f"Revoked qm_{token.prefix}… of Ada." in done.content.decode()
    event = Event.objects.get(kind=Kind.TOKEN_REVOKED)
    assert (event.actor_name, event.subject_id) == ("Priya", token.prefix)
    assert (
        Client()
        .get("/api/v1/me/", headers={"Authorization": f"Bearer {secret}"})
        .status_code
        == 401
    )


def test_over_the_api_leads_revoke_what_they_cannot_list(ada: User) -> None:
    token, _ = create_token(
        user=ada, name="nightly", scope="read", days=30, now=timezone.now()
    )
    address = f"tokens/{token.prefix}/"
    assert (
        Caller(factories.person("Mallory"), "write").delete(address).status_code == 404
    )
    lead = Caller(factories.person("Priya", Role.PLATFORM_LEAD), "write")
    assert token.prefix not in str(lead.get("tokens/").json())
    assert lead.delete(address).status_code == 204
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_the_action_itself_lets_no_stranger_revoke(ada: User) -> None:
    token, _ = create_token(
        user=ada, name="nightly", scope="read", days=30, now=timezone.now()
    )
    with pytest.raises(NoRight):
        revoke_token(token, by=factories.person("Mallory"), now=timezone.now())


@pytest.mark.slow
def test_every_usable_token_is_listed_however_many_have_ended(
    client: Client, ada: User
) -> None:
    at = timezone.now() - timedelta(days=120)
    first, _ = create_token(user=ada, name="pipeline", scope="write", days=365, now=at)
    for day in range(1, 102):
        made_at = at + timedelta(days=day)
        create_token(user=ada, name=f"{day}", scope="read", days=1, now=made_at)
    page = client.get("/tokens/")
    assert page.context["live"] == [first]
    assert len(page.context["over"]) == 100


def test_no_token_is_made_for_somebody_whose_access_ends_at_this_moment(
    ada: User,
) -> None:
    seen = User.objects.get(pk=ada.pk)
    assert seen.roles  # as her page read them when the request came in
    end_access(ada.pk, reason=Reason.BLOCKED, now=timezone.now())
    with pytest.raises(NoRight) as refused:
        create_token(user=seen, name="left", scope="read", days=9, now=timezone.now())
    assert refused.value.code == "account_disabled"


def test_a_token_of_a_person_without_any_role_opens_nothing(ada: User) -> None:
    caller = Caller(ada)
    assert caller.get("me/").status_code == 200
    ada.roles_held.all().delete()
    assert caller.get("me/").status_code == 401
