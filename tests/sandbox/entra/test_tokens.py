"""The token endpoint's refusals, metadata and keys."""

import base64
import hashlib
from typing import Any

import httpx
import jwt
import pytest

from sandbox.world import CLIENT_ID, TENANT_ID, group_id, person_id
from tests.sandbox.entra.running import CALLBACK, Running
from tests.sandbox.entra.test_sign_in_page import url

VERIFIER = "v" * 43
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest())
    .rstrip(b"=")
    .decode()
)


def ask(world: Running, **form: str) -> httpx.Response:
    """Ask for a token with the application's secret."""
    whole = {
        "client_id": CLIENT_ID,
        "client_secret": world.sandbox.client_secret,
    } | form
    with world.client() as client:
        return client.post(f"{world.tenant}/oauth2/v2.0/token", data=whole)


def redeem(world: Running, person: int = 1, /, **form: str) -> httpx.Response:
    """Sign in and redeem the code."""
    code = world.sign_in(url(world, code_challenge=CHALLENGE), person_id(person))[
        "code"
    ]
    whole = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
    return ask(world, **(whole | {"code_verifier": VERIFIER} | form))


def test_an_id_token_is_shaped_like_entras(world: Running) -> None:
    answer = redeem(world).json()
    claims = jwt.decode(answer["id_token"], options={"verify_signature": False})
    assert set(claims) == {
        "aud",
        "exp",
        "groups",
        "iat",
        "iss",
        "login_hint",
        "name",
        "nbf",
        "nonce",
        "oid",
        "preferred_username",
        "roles",
        "sid",
        "sub",
        "tid",
        "uti",
        "ver",
    }
    assert claims["iss"] == f"{world.tenant}/v2.0"
    assert claims["sub"] != claims["oid"]
    padded = answer["client_info"] + "=="
    assert (
        base64.urlsafe_b64decode(padded).decode()
        == f'{{"uid":"{person_id(1)}","utid":"{TENANT_ID}"}}'
    )
    assert answer["token_type"] == "Bearer"


def test_an_overage_names_its_source_and_no_groups(world: Running) -> None:
    claims = jwt.decode(
        redeem(world, 9).json()["id_token"], options={"verify_signature": False}
    )
    assert "groups" not in claims
    assert claims["_claim_names"] == {"groups": "src1"}
    assert "graph.windows.net" in claims["_claim_sources"]["src1"]["endpoint"]


def test_exactly_two_hundred_groups_still_fit(world: Running) -> None:
    directory = world.sandbox.directory
    extra = directory.groups_of(person_id(9))
    for group in [oid for oid in extra if oid != group_id(2)][:6]:
        directory.remove_member(group, person_id(9))
    claims = jwt.decode(
        redeem(world, 9).json()["id_token"], options={"verify_signature": False}
    )
    assert len(claims["groups"]) == 200


@pytest.mark.parametrize(
    ("form", "status", "error", "number"),
    [
        ({"code_verifier": "w" * 43}, 400, "invalid_grant", 501481),
        ({"redirect_uri": "http://localhost/other"}, 400, "invalid_grant", 500112),
        ({"code": "guessed"}, 400, "invalid_grant", 9002313),
        ({"code": ""}, 400, "invalid_request", 900144),
        ({"client_secret": "wrong"}, 401, "invalid_client", 7000215),
        ({"client_secret": ""}, 401, "invalid_client", 7000218),
        ({"client_id": "another"}, 400, "unauthorized_client", 700016),
        ({"grant_type": "password"}, 400, "unsupported_grant_type", 70003),
        ({"grant_type": ""}, 400, "invalid_request", 900144),
    ],
)
def test_it_refuses_in_entras_words(
    world: Running, form: dict[str, str], status: int, error: str, number: int
) -> None:
    answer = redeem(world, 1, **form)
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["error"], body["error_codes"]) == (
        status,
        error,
        [number],
    )
    assert body["error_description"].startswith(f"AADSTS{number}: ")
    assert "Trace ID: " in body["error_description"]
    assert {"timestamp", "trace_id", "correlation_id", "error_uri"} <= set(body)


def test_a_failed_try_uses_the_code_up(world: Running) -> None:
    code = world.sign_in(url(world, code_challenge=CHALLENGE), person_id(1))["code"]
    assert redeem(world, 1, code=code, code_verifier="w" * 43).json()[
        "error_codes"
    ] == [501481]
    assert redeem(world, 1, code=code).json()["error_codes"] == [54005]


@pytest.mark.parametrize(
    ("scope", "number"),
    [
        ("https://graph.microsoft.com/User.Read", 1002012),
        ("api://unknown/.default", 500011),
    ],
)
def test_applications_get_default_scopes_of_known_resources_only(
    world: Running, scope: str, number: int
) -> None:
    answer = ask(world, grant_type="client_credentials", scope=scope)
    assert answer.json()["error_codes"] == [number]


def test_another_tenant_does_not_exist(world: Running) -> None:
    with world.client() as client:
        answer = client.get("/other/v2.0/.well-known/openid-configuration")
    assert (answer.status_code, answer.json()["error_codes"]) == (400, [90002])


def test_metadata_and_keys_fit_together(world: Running) -> None:
    with world.client() as client:
        metadata = client.get(
            f"{world.tenant}/v2.0/.well-known/openid-configuration"
        ).json()
        keys = client.get(metadata["jwks_uri"]).json()["keys"]
        instances = client.get("/common/discovery/instance").json()
    assert metadata["issuer"] == f"{world.tenant}/v2.0"
    assert all(
        metadata[name].startswith("https://localhost:")
        for name in metadata
        if name.endswith("_endpoint")
    )
    assert [key["kid"] for key in keys] == [world.sandbox.issuer.key.kid]
    assert instances["tenant_discovery_endpoint"].startswith(world.tenant)


def test_the_switches_are_the_administrators_alone(world: Running) -> None:
    with world.client() as client:
        for path in ("faults", "tokens", "next-id-token"):
            for headers in (
                {},
                {"Authorization": f"Bearer {world.token(kind='graph')}"},
            ):
                answer = client.post(f"/sandbox/{path}", headers=headers, json={})
                assert answer.status_code in (401, 403)
