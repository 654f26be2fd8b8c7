"""Signing in with Entra ID and out again, against the sandbox over TLS."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.test import Client

from accounts.models import User
from accounts.roles import Role
from audit.events import Kind
from audit.models import Event
from sandbox.world import person_id
from tests import factories
from tests.directory import PORTAL, forget
from tests.sandbox.entra.running import Running

pytestmark = pytest.mark.django_db
ADA, MARCUS, NOOR, TOM = person_id(1), person_id(5), person_id(9), person_id(10)


def start(client: Client, **form: str) -> str:
    """Press the button; where the browser is sent."""
    answer = client.post("/sign-in/start", form)
    assert answer.status_code == 302, answer.content
    return str(answer["Location"])


def choose(directory: Running, auth_uri: str, person: str) -> dict[str, str]:
    """What the directory sends back with when somebody chooses who they are."""
    with directory.client() as browser:
        answer = browser.post(auth_uri, data={"person": person})
    assert answer.headers["location"].startswith(f"{PORTAL}/sign-in/callback")
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    return {name: values[0] for name, values in query.items()}


def sign_in(client: Client, directory: Running, person: str, **form: str) -> Any:
    """The whole way; the answer to the callback."""
    return client.get(
        "/sign-in/callback", choose(directory, start(client, **form), person)
    )


def refused_for(
    client: Client, answer: Any, status: int, code: str, *, who: str = ""
) -> None:
    """Nobody is signed in, the page says why, and the audit log too when it is known who was refused."""
    assert answer.status_code == status
    assert SESSION_KEY not in client.session
    assert answer.context["code"] == code
    events = Event.objects.filter(kind=Kind.SIGN_IN_REFUSED).values_list(
        "actor_id", "details__code"
    )
    assert list(events) == ([(who, code)] if who else [])


def test_the_page_has_one_button_and_loads_nothing_from_elsewhere(
    client: Client,
) -> None:
    page = client.get("/sign-in?next=/teams/")
    assert page.status_code == 200
    assert b"Sign in with Microsoft" in page.content
    assert b'name="next" value="/teams/"' in page.content
    assert "default-src 'none'" in page["Content-Security-Policy"]


def test_whoever_is_not_signed_in_is_led_to_it_and_back_afterwards(
    client: Client, directory: Running
) -> None:
    sent = client.get("/teams/?q=vision")
    assert sent["Location"] == "/sign-in?next=%2Fteams%2F%3Fq%3Dvision"
    assert (
        sign_in(client, directory, ADA, next="/teams/?q=vision")["Location"]
        == "/teams/?q=vision"
    )


def test_whoever_calls_this_machine_by_its_other_name_begins_where_they_are_sent_back_to(
    client: Client, settings: Any
) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "gpus.internal"]
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    moved = client.get("/sign-in?next=/teams/", headers={"host": "localhost:8000"})
    assert moved["Location"] == "http://127.0.0.1:8000/sign-in?next=%2Fteams%2F"
    # What a proxy calls the portal leads nowhere else, or it would lead round and round.
    for host in ("127.0.0.1:8000", "gpus.internal"):
        assert client.get("/sign-in", headers={"host": host}).status_code == 200


def test_it_takes_over_name_roles_and_teams(client: Client, directory: Running) -> None:
    vision = factories.team("Vision", entra_group=factories.group_oid(1))
    assert sign_in(client, directory, ADA)["Location"] == "/"
    ada = User.objects.get(oid=ADA)
    assert (ada.name, set(ada.roles), set(ada.team_ids)) == (
        "Ada Okafor",
        {Role.DATA_SCIENTIST},
        {vision.pk},
    )
    assert Event.objects.filter(kind=Kind.SIGNED_IN, actor_id=ADA).exists()
    assert client.get("/teams/vision/").status_code == 200


def test_it_takes_the_address_from_the_directory_because_a_members_token_names_none(
    client: Client, directory: Running
) -> None:
    sign_in(client, directory, ADA)
    assert User.objects.get(oid=ADA).email == "ada@example.com"


def test_a_role_may_come_from_a_group_by_its_object_id(
    client: Client, directory: Running
) -> None:
    sign_in(client, directory, MARCUS)
    assert User.objects.get(oid=MARCUS).roles == {Role.PLATFORM_LEAD}


def test_more_groups_than_fit_a_token_are_asked_for(
    client: Client, directory: Running
) -> None:
    nlp = factories.team("NLP", entra_group=factories.group_oid(2))
    sign_in(client, directory, NOOR)
    noor = User.objects.get(oid=NOOR)
    assert len(noor.groups) > 200
    assert noor.team_ids == {nlp.pk}


def test_it_lets_nobody_in_when_the_groups_cannot_be_asked_for(
    client: Client, directory: Running
) -> None:
    query = choose(directory, start(client), NOOR)
    directory.admin("POST", "/sandbox/faults", path="/v1.0", status=503, times=50)
    refused_for(
        client, client.get("/sign-in/callback", query), 503, "directory_away", who=NOOR
    )
    assert not User.objects.filter(oid=NOOR).exists()


def test_a_disabled_account_is_refused(client: Client, directory: Running) -> None:
    with directory.client() as browser:
        answer = browser.post(start(client), data={"person": TOM})
    if answer.status_code == 302:
        back = client.get("/sign-in/callback", callback_of(answer))
        refused_for(client, back, 403, "account_disabled", who=TOM)
    assert SESSION_KEY not in client.session


def callback_of(answer: Any) -> dict[str, str]:
    """The query of any callback."""
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    return {name: values[0] for name, values in query.items()}


def test_an_account_switched_off_here_is_refused_and_its_sessions_end(
    client: Client, directory: Running
) -> None:
    sign_in(client, directory, ADA)
    User.objects.filter(oid=ADA).update(is_active=False)
    assert client.get("/teams/").status_code == 302
    answer = sign_in(client, directory, ADA)
    assert answer.status_code == 403
    assert Event.objects.get(kind=Kind.SIGN_IN_REFUSED).actor_id == ADA
    assert client.get("/teams/").status_code == 302


@pytest.mark.parametrize("change", [{"state": "another"}, {"state": ""}])
def test_a_wrong_or_missing_state_is_refused(
    client: Client, directory: Running, change: dict[str, str]
) -> None:
    query = choose(directory, start(client), ADA) | change
    refused_for(client, client.get("/sign-in/callback", query), 400, "state_mismatch")


def test_a_callback_is_good_once(client: Client, directory: Running) -> None:
    query = choose(directory, start(client), ADA)
    assert client.get("/sign-in/callback", query).status_code == 302
    client.post("/sign-out")
    refused_for(client, client.get("/sign-in/callback", query), 400, "state_mismatch")


def test_a_callback_is_good_in_the_browser_that_started_it_alone(
    client: Client, directory: Running
) -> None:
    query = choose(directory, start(client), ADA)
    other = Client()
    refused_for(other, other.get("/sign-in/callback", query), 400, "state_mismatch")


def test_a_code_that_was_redeemed_is_refused(
    client: Client, directory: Running
) -> None:
    first = choose(directory, start(client), ADA)
    client.get("/sign-in/callback", first)
    client.post("/sign-out")
    second = choose(directory, start(client), ADA) | {"code": first["code"]}
    answer = client.get("/sign-in/callback", second)
    assert answer.status_code == 400
    assert SESSION_KEY not in client.session


def test_a_token_with_another_nonce_is_refused(
    client: Client, directory: Running
) -> None:
    query = choose(directory, start(client), ADA)
    directory.sandbox.issuer.wishes = {"claims": {"nonce": "another"}}
    answer = client.get("/sign-in/callback", query)
    assert answer.status_code == 400
    assert SESSION_KEY not in client.session


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [
        "//evil.example",
        "/\\evil.example",
        "https:evil.example",
        "https://evil.example",
        "%2f%2fevil.example",
        "/%2f%2fevil.example",
        "javascript:alert(1)",
        "\t//evil.example",
        "",
        "evil",
    ],
)
def test_a_target_elsewhere_leads_home(
    client: Client, directory: Running, target: str
) -> None:
    assert sign_in(client, directory, ADA, next=target)["Location"] == "/"


def test_the_session_gets_a_new_key(client: Client, directory: Running) -> None:
    query = choose(directory, start(client), ADA)
    before = client.session.session_key
    client.get("/sign-in/callback", query)
    assert client.session.session_key != before
    assert not Session.objects.filter(session_key=before).exists()


def test_a_cookie_is_dead_after_signing_out(client: Client, directory: Running) -> None:
    sign_in(client, directory, ADA)
    stolen = client.cookies["qm_session"].value
    answer = client.post("/sign-out")
    assert answer["Location"].startswith(directory.tenant)
    assert "logout_hint" in answer["Location"]
    thief = Client()
    thief.cookies["qm_session"] = stolen
    assert thief.get("/teams/")["Location"].startswith("/sign-in")
    assert Event.objects.filter(kind=Kind.SIGNED_OUT, actor_id=ADA).exists()


def test_a_link_signs_nobody_out_or_in(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    assert client.get("/sign-out")["Location"] == "/"
    assert SESSION_KEY in client.session
    stranger = Client()
    assert stranger.get("/sign-in/start")["Location"] == "/sign-in"
    assert SESSION_KEY not in stranger.session


def test_a_form_from_elsewhere_signs_nobody_out(client: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(factories.person("Ada"))
    assert strict.post("/sign-out").status_code == 403
    assert SESSION_KEY in strict.session


def test_signing_out_works_while_the_directory_is_away(client: Client) -> None:
    forget()
    client.force_login(factories.person("Ada"))
    assert client.post("/sign-out").status_code == 302
    assert SESSION_KEY not in client.session


def test_it_says_so_while_the_directory_is_away(client: Client) -> None:
    forget()
    answer = client.post("/sign-in/start")
    assert answer.status_code == 503
    assert b"Entra ID does not answer" in answer.content


def test_who_is_signed_in_goes_on_at_once(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    assert client.get("/sign-in?next=/teams/")["Location"] == "/teams/"


def test_what_was_typed_in_an_ended_session_is_sent_after_signing_in(
    client: Client, directory: Running
) -> None:
    body = "name=Ada&reason=For+the+review."
    headers = {"Origin": "http://testserver", "Referer": "http://testserver/tokens/"}
    page = client.post(
        "/tokens/",
        body,
        content_type="application/x-www-form-urlencoded",
        headers=headers,
    )
    form = {"next": page.context["next"], "kept": page.context["sealed"]}
    sent = client.post("/sign-in/keep", form)
    assert "For the review" not in str(dict(client.session))
    back = client.get(
        "/sign-in/callback", choose(directory, str(sent["Location"]), ADA)
    )
    assert back["Location"] == "/sign-in/kept"
    shown = client.get("/sign-in/kept")
    assert shown.context["kept"].path == "/tokens/"
    assert 'name="reason" value="For the review."' in shown.content.decode()
    assert "You are signed in as Ada Okafor" in shown.content.decode()
