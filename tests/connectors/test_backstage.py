"""Tokens of Backstage's plugins: whom they are for, every forgery that is not let in, and a backend that is away."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import jwt
import pytest

from connectors.backstage import Away, Backstage, Notification, is_of_backstage
from connectors.errors import PermanentError, TemporaryError
from connectors.signing_keys import SigningKeys
from sandbox.backstage import CATALOG_TOKEN, NOTICES_TOKEN, Key, SandboxBackstage
from sandbox.serving import Served, listen, port_of
from tests.serving import serving

ADA = "0000000a-0000-4000-8000-000000000001"
BO = "0000000b-0000-4000-8000-000000000002"
CALLERS = ("scaffolder", "mcp-actions")


@pytest.fixture
def backend() -> SandboxBackstage:
    users = {"ada": ADA, "bo.example-com_x": ADA, "ghost": "", "bo": BO}
    return SandboxBackstage(users=users)


@pytest.fixture
def address(backend: SandboxBackstage) -> Iterator[str]:
    socket = listen(0)
    with serving(Served(backend.app, socket, None)):
        yield f"http://127.0.0.1:{port_of(socket)}"


@pytest.fixture
def backstage(address: str) -> Backstage:
    return connected(address)


def connected(
    address: str, *, token: str = CATALOG_TOKEN, notices: str = NOTICES_TOKEN
) -> Backstage:
    return Backstage(
        address,
        audience="quartermaster",
        callers=CALLERS,
        catalog_token=token,
        notices_token=notices,
    )


def test_a_call_for_a_person_is_theirs_until_the_first_of_both_tokens_ends(
    backend: SandboxBackstage, backstage: Backstage
) -> None:
    soon = int(time.time()) + 60
    call = backstage.verify(
        backend.token(plugin="mcp-actions", obo=backend.person_token("ada", exp=soon))
    )
    assert (call.plugin, call.user_ref) == ("mcp-actions", "user:default/ada")
    assert call.expires_at.timestamp() == soon


def test_a_plugin_that_calls_for_nobody_has_no_person(
    backend: SandboxBackstage, backstage: Backstage
) -> None:
    assert backstage.verify(backend.token()).user_ref == ""


def forgeries(backend: SandboxBackstage) -> dict[str, str]:
    """What is no token of a plugin for the portal, by what is wrong with it."""
    now, stranger = int(time.time()), Key()
    stranger.kid = backend.plugins["scaffolder"].kid
    person = backend.person_token("ada")
    by_person = SandboxBackstage(people=stranger)
    by_person.people.kid = backend.people.kid
    return {
        "the key of somebody else": backend.token("ada", key=stranger),
        "the key of another plugin": backend.token(
            "ada", plugin="scaffolder", key=backend.plugins["mcp-actions"]
        ),
        "another audience": backend.token("ada", aud="catalog"),
        "no audience": backend.token("ada", aud=None),
        "its end is a text": backend.token("ada", exp=str(now + 60)),
        "its end is beyond all time": backend.token(
            exp=10**18, obo=backend.person_token("ada", exp=10**18)
        ),
        "it has ended": backend.token("ada", exp=now - 31),
        "no end": backend.token("ada", exp=None),
        "no moment": backend.token("ada", iat=None),
        "no caller": backend.token("ada", sub=None),
        "another plugin": backend.token("ada", sub="catalog"),
        "a way out of the address": backend.token("ada", sub="../auth"),
        "a caller that is no text": backend.token("ada", sub=["scaffolder"]),
        "a token of a person alone": backend.token(kind="vnd.backstage.user"),
        "the person's token in its place": person,
        "an algorithm that is none": jwt.encode(
            {"sub": "scaffolder", "aud": "quartermaster", "iat": now, "exp": now + 60},
            "",
            algorithm="none",
            headers={"typ": "vnd.backstage.plugin", "kid": stranger.kid},
        ),
        "the person's token by a stranger": backend.token(
            obo=by_person.person_token("ada")
        ),
        "the person's token has ended": backend.token(
            obo=backend.person_token("ada", exp=now - 31)
        ),
        "a plugin's token for the person's": backend.token(obo=backend.token("ada")),
        "the person's token is empty": backend.token(obo=""),
        "the person's token is a list": backend.token(obo=[person]),
        "no token": "a.b.c",
    }


def outcome(backstage: Backstage, token: str) -> str:
    """Who is let in, or the code of the refusal."""
    try:
        return f"{backstage.verify(token).user_ref} is let in"
    except PermanentError as error:
        return error.code


def test_no_forgery_is_let_in(backend: SandboxBackstage, backstage: Backstage) -> None:
    for what, token in forgeries(backend).items():
        assert outcome(backstage, token) == "refused", what


def test_what_a_token_claims_leads_to_no_address_outside_the_list(
    backend: SandboxBackstage, backstage: Backstage
) -> None:
    for token in forgeries(backend).values():
        outcome(backstage, token)
    known = {f"/api/{name}/.backstage/auth/v1/jwks.json" for name in CALLERS}
    assert set(backend.asked) <= known | {"/api/auth/.well-known/jwks.json"}


def test_a_person_is_known_by_the_object_id_in_the_catalog(
    backstage: Backstage,
) -> None:
    assert backstage.object_id_of("user:default/ada") == ADA
    assert backstage.object_id_of("user:default/bo.example-com_x") == ADA


@pytest.mark.parametrize(
    "ref",
    [
        "user:default/nobody",
        "user:default/ghost",
        "group:default/ada",
        "user:default/..",
        "user:default/a/../ada",
        "ada",
        "",
    ],
)
def test_nobody_else_is(backstage: Backstage, ref: str) -> None:
    with pytest.raises(PermanentError) as refused:
        backstage.object_id_of(ref)
    assert refused.value.code == "unknown_person"


def test_a_catalog_that_does_not_let_the_portal_read_is_told_apart(
    address: str,
) -> None:
    with pytest.raises(PermanentError) as refused:
        connected(address, token="another").object_id_of("user:default/ada")
    assert refused.value.code == "catalog"


def test_a_backend_that_is_away_is_no_refusal(
    backend: SandboxBackstage, backstage: Backstage
) -> None:
    backend.is_away = True
    with pytest.raises(TemporaryError):
        backstage.verify(backend.token("ada"))
    with pytest.raises(TemporaryError):
        backstage.object_id_of("user:default/ada")


def test_keys_that_are_known_need_no_backend(
    backend: SandboxBackstage, backstage: Backstage
) -> None:
    backstage.verify(backend.token("ada"))
    backend.is_away = True
    assert backstage.verify(backend.token("ada")).user_ref == "user:default/ada"


def test_an_issuer_that_is_away_is_left_alone_for_a_moment(
    backend: SandboxBackstage, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=1000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("connectors.signing_keys.time", clock)
    backstage = connected(address)
    backend.is_away = True
    for _ in range(5):
        with pytest.raises(TemporaryError):
            backstage.verify(backend.token("ada"))
    assert len(backend.asked) == 1
    backend.is_away, clock.now = False, clock.now + 6
    assert backstage.verify(backend.token("ada")).plugin == "scaffolder"


@pytest.mark.parametrize(
    ("token", "is_one"), [("", False), ("a.b", False), ("qm_x", False)]
)
def test_other_tokens_are_not_of_backstage(token: str, is_one: bool) -> None:
    assert is_of_backstage(token) == is_one


def test_its_own_are(backend: SandboxBackstage) -> None:
    assert is_of_backstage(backend.token("ada"))
    assert not is_of_backstage(backend.person_token("ada"))


@pytest.mark.parametrize("keys", [{"keys": []}, [], {}, "x", {"keys": "x" * 300_000}])
def test_an_issuer_without_keys_is_asked_once_for_a_crowd(
    backend: SandboxBackstage, backstage: Backstage, keys: Any
) -> None:
    backend.odd_keys = keys
    for _ in range(20):
        with pytest.raises(TemporaryError):
            backstage.verify(backend.token("ada"))
    assert len(backend.asked) == 1


def test_who_has_a_known_key_waits_for_nobody_who_asks_for_another(
    backend: SandboxBackstage, backstage: Backstage
) -> None:
    backstage.verify(backend.token("ada"))
    keys = backstage._plugins["scaffolder"]
    with keys._client_lock, ThreadPoolExecutor(1) as another:
        call = another.submit(backstage.verify, backend.token("ada"))
        assert call.result(timeout=30).user_ref == "user:default/ada"


def test_an_answer_that_only_trickles_has_an_end(
    backend: SandboxBackstage, backstage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.signing_keys.DEADLINE_SECONDS", 0.2)
    backend.trickles = True
    with pytest.raises(TemporaryError):
        backstage.verify(backend.token("ada"))


@pytest.mark.parametrize(
    "metadata", ["x", [], {"annotations": []}, {"annotations": None}, None]
)
def test_an_entity_that_is_odd_is_nobody(
    backend: SandboxBackstage, backstage: Backstage, metadata: Any
) -> None:
    backend.odd_metadata = {"metadata": metadata}
    with pytest.raises(PermanentError) as refused:
        backstage.object_id_of("user:default/ada")
    assert refused.value.code == "unknown_person"


def test_a_sign_in_that_has_ended_is_said_to_have(
    backend: SandboxBackstage, backstage: Backstage
) -> None:
    now = int(time.time())
    with pytest.raises(PermanentError, match="has ended"):
        backstage.verify(backend.token("ada", exp=now - 60))


def test_keys_come_over_http_alone() -> None:
    session: Any = None
    with pytest.raises(jwt.PyJWKClientError):
        SigningKeys("file:///etc/passwd", session)


SAID = Notification(
    "Approved", "2 A100.", "https://gpus.example.com/", "decided", "request-1"
)


def test_a_person_is_found_by_their_object_id(backstage: Backstage) -> None:
    assert backstage.user_ref_of(BO.upper()) == "user:default/bo"


def test_who_is_not_in_the_catalog_is_nobody(backstage: Backstage) -> None:
    assert backstage.user_ref_of("0000000c-0000-4000-8000-000000000003") == ""


def test_an_object_id_that_two_have_is_nobodys(backstage: Backstage) -> None:
    with pytest.raises(PermanentError, match="several users") as refused:
        backstage.user_ref_of(ADA)
    assert refused.value.code == "unknown_person"


@pytest.mark.parametrize(
    "answer",
    [{}, {"items": None}, {"items": [{}]}, {"items": ["ada"]}, ["ada"]],
)
def test_an_answer_that_names_nobody_is_none(
    backend: SandboxBackstage, backstage: Backstage, answer: Any
) -> None:
    backend.odd_metadata = answer
    with pytest.raises(TemporaryError):
        backstage.user_ref_of(ADA)


def test_somebody_is_notified(backend: SandboxBackstage, address: str) -> None:
    connected(address).notify("user:default/bo", SAID)
    assert list(backend.shown) == ["user:default/bo"]


def test_without_the_token_nobody_is_notified(
    backend: SandboxBackstage, address: str
) -> None:
    with pytest.raises(Away, match="does not let the portal notify anybody"):
        connected(address, notices="another").notify("user:default/bo", SAID)
    assert backend.shown == {}


def test_a_backstage_that_is_not_there_notifies_nobody() -> None:
    with pytest.raises(Away, match="cannot be reached"):
        connected("http://127.0.0.1:9").notify("user:default/bo", SAID)
