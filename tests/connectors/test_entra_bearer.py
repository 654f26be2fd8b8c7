"""Access tokens for the API: what is let in, and every forgery that is not."""

from datetime import UTC, datetime
from typing import Any

import jwt
import pytest

from connectors.entra import SignInRefused
from connectors.errors import TemporaryError
from sandbox.entra.tokens import SERVICE_PRINCIPAL
from sandbox.world import group_id, person_id
from tests.sandbox.entra.running import CALLBACK, Running

ADA, NOOR = person_id(1), person_id(9)
OTHER = "99999999-9999-4999-8999-999999999999"


@pytest.mark.parametrize("version", [1, 2])
def test_it_accepts_a_persons_token(world: Running, version: int) -> None:
    claims = world.entra().verify_bearer(
        world.token(kind="api", person=ADA, version=version)
    )
    assert (claims.oid, claims.username, claims.scopes) == (
        ADA,
        "ada@example.com",
        ("access_as_user",),
    )
    assert claims.roles == ("DataScientist",)
    assert claims.expires_at is not None
    assert claims.expires_at > datetime.now(UTC)
    assert group_id(1) in claims.groups
    assert not claims.app_only


@pytest.mark.parametrize("version", [1, 2])
def test_it_accepts_a_token_from_a_real_sign_in(world: Running, version: int) -> None:
    world.admin("PATCH", "/sandbox/application", requestedAccessTokenVersion=version)
    flow = world.entra().start_sign_in(CALLBACK)
    scope = f"openid+api%3A%2F%2F{world.sandbox.world.client_id}%2Faccess_as_user"
    query = world.sign_in(
        flow["auth_uri"].replace("scope=openid+profile", f"scope={scope}"), ADA
    )
    form = {
        "grant_type": "authorization_code",
        "client_id": world.sandbox.world.client_id,
        "client_secret": world.sandbox.client_secret,
        "code": query["code"],
        "code_verifier": flow["code_verifier"],
        "redirect_uri": CALLBACK,
    }
    with world.client() as client:
        answer = client.post(f"{world.tenant}/oauth2/v2.0/token", data=form).json()
    raw = answer["access_token"]
    assert jwt.decode(raw, options={"verify_signature": False})["ver"] == f"{version}.0"
    assert world.entra().verify_bearer(raw).oid == ADA
    with pytest.raises(SignInRefused, match="not an access token"):
        world.entra().verify_bearer(answer["id_token"])


def test_it_accepts_an_application_and_says_so(world: Running) -> None:
    entra = world.entra()
    raw = entra.app_token(f"api://{world.sandbox.world.client_id}/.default")
    claims = entra.verify_bearer(raw)
    assert (claims.oid, claims.app_only, claims.scopes) == (SERVICE_PRINCIPAL, True, ())


def test_an_overage_is_told_apart_from_no_groups(world: Running) -> None:
    claims = world.entra().verify_bearer(world.token(kind="api", person=NOOR))
    assert (claims.groups, claims.groups_overage) == ((), True)


@pytest.mark.parametrize(
    "wishes",
    [
        {"headers": {"alg": "none"}},
        {"headers": {"alg": "HS256"}},
        {"headers": {"kid": "unknown"}},
        {"headers": {"kid": 7}},
        {"headers": {"jku": "https://evil.example/keys", "kid": "unknown"}},
        {"headers": {"jwk": {"kty": "oct", "k": "AA"}, "alg": "HS256"}},
        {"headers": {"crit": ["b64"], "b64": False}},
        {"claims": {"aud": "https://graph.microsoft.com"}},
        {"claims": {"aud": {}}},
        {"claims": {"iss": "https://evil.example/"}},
        {"claims": {"iss": f"https://sts.windows.net/{OTHER}/"}},
        {"claims": {"iss": 7}},
        {"claims": {"ver": "1.0"}},
        {"claims": {"ver": "3.0"}},
        {"claims": {"tid": OTHER}},
        {"claims": {"exp": 1}},
        {"claims": {"exp": None}},
        {"claims": {"nbf": 4_102_444_800}},
        {"claims": {"scp": ""}},
        {"claims": {"oid": {"$ne": 1}}},
        {"remove": ["scp"]},
        {"remove": ["tid"]},
        {"remove": ["exp"]},
        {"remove": ["nbf"]},
    ],
    ids=str,
)
def test_it_refuses_a_forged_token(world: Running, wishes: dict[str, Any]) -> None:
    with pytest.raises(SignInRefused):
        world.entra().verify_bearer(world.token(kind="api", person=ADA, **wishes))


def test_it_refuses_an_id_token(world: Running) -> None:
    with pytest.raises(SignInRefused) as refused:
        world.entra().verify_bearer(world.token(kind="id", person=ADA))
    assert refused.value.code == "not_an_access_token"


def test_it_refuses_a_token_for_graph(world: Running) -> None:
    with pytest.raises(SignInRefused):
        world.entra().verify_bearer(world.token(kind="graph"))


@pytest.mark.parametrize("raw", ["", "x", "a.b.c", "....", "e30.e30.", "é" * 100])
def test_it_refuses_what_is_no_token(world: Running, raw: str) -> None:
    with pytest.raises(SignInRefused):
        world.entra().verify_bearer(raw)


def test_it_refuses_a_changed_token(world: Running) -> None:
    head, body, signature = world.token(kind="api", person=ADA).split(".")
    with pytest.raises(SignInRefused):
        world.entra().verify_bearer(f"{head}.{body}.{signature[::-1]}")


def test_the_refusal_does_not_repeat_the_token(world: Running) -> None:
    raw = world.token(kind="api", person=ADA, claims={"exp": 1})
    with pytest.raises(SignInRefused, match="ExpiredSignatureError") as refused:
        world.entra().verify_bearer(raw)
    assert raw not in refused.value.message


def test_unreadable_keys_are_not_the_tokens_fault(world: Running) -> None:
    raw = world.token(kind="api", person=ADA)
    world.admin("POST", "/sandbox/faults", path="/keys$", status=500)
    with pytest.raises(TemporaryError):
        world.entra().verify_bearer(raw)


def test_unknown_key_ids_do_not_make_us_read_the_keys_again_and_again(
    world: Running,
) -> None:
    entra = world.entra()
    entra.verify_bearer(world.token(kind="api", person=ADA))
    forged = world.token(kind="api", person=ADA, headers={"kid": "unknown"})
    world.admin("POST", "/sandbox/faults", path="/keys$", status=500)
    for _ in range(3):
        with pytest.raises(SignInRefused):
            entra.verify_bearer(forged)
