"""Signing people in through a real authorization-code flow over TLS."""

from typing import Any

import pytest

from connectors.entra import Entra, SignInRefused
from connectors.errors import PermanentError, TemporaryError
from sandbox.world import ARCHIVES, group_id, person_id
from tests.sandbox.entra.running import CALLBACK, Running, callback_query

ADA, BEN, MARCUS, NOOR, TOM = (person_id(number) for number in (1, 2, 5, 9, 10))
GRAPH = "https://graph.microsoft.com/.default"


def signed_in(world: Running, person: str, **wishes: Any) -> Any:
    """Go through a whole sign-in; wishes bend the ID token."""
    entra = world.entra()
    flow = entra.start_sign_in(CALLBACK)
    if wishes:
        world.admin("POST", "/sandbox/next-id-token", **wishes)
    return entra.finish_sign_in(flow, world.sign_in(flow["auth_uri"], person))


def test_it_signs_a_person_in(world: Running) -> None:
    claims = signed_in(world, ADA)
    assert (claims.oid, claims.tid) == (ADA, world.sandbox.world.tenant_id)
    assert (claims.name, claims.username, claims.email) == (
        "Ada Okafor",
        "ada@example.com",
        "",
    )
    assert claims.roles == ("DataScientist",)
    assert set(claims.groups) == {group_id(number) for number in (1, 2, 7, 9, 10)}
    assert not claims.groups_overage
    assert claims.sid
    assert claims.login_hint.startswith("O.")


def test_an_address_is_read_where_the_token_names_one(world: Running) -> None:
    assert (
        signed_in(world, ADA, claims={"email": "a.okafor@example.com"}).email
        == "a.okafor@example.com"
    )


def test_groups_of_groups_are_in_the_token(world: Running) -> None:
    assert {group_id(7), group_id(8)} <= set(signed_in(world, BEN).groups)


def test_a_person_without_app_role_has_none(world: Running) -> None:
    claims = signed_in(world, MARCUS)
    assert (claims.roles, claims.groups) == ((), (group_id(4),))


def test_more_than_two_hundred_groups_are_an_overage_and_not_a_list(
    world: Running,
) -> None:
    claims = signed_in(world, NOOR)
    assert (claims.groups, claims.groups_overage) == ((), True)
    assert len(world.sandbox.directory.groups_of(NOOR)) == ARCHIVES + 1


def test_the_flow_is_plain_data_for_a_session(world: Running) -> None:
    flow = world.entra().start_sign_in(CALLBACK, login_hint="ada@example.com")
    assert {"state", "nonce", "code_verifier", "auth_uri"} <= set(flow)
    assert "code_challenge_method=S256" in flow["auth_uri"]
    assert "response_mode=query" in flow["auth_uri"]
    assert "offline_access" not in flow["auth_uri"]
    assert "login_hint=ada%40example.com" in flow["auth_uri"]


@pytest.mark.parametrize("state", ["wrong", "", None])
def test_it_refuses_another_state(world: Running, state: str | None) -> None:
    entra = world.entra()
    flow = entra.start_sign_in(CALLBACK)
    query = world.sign_in(flow["auth_uri"], ADA) | {"state": state or ""}
    if state is None:
        del query["state"]
    with pytest.raises(SignInRefused) as refused:
        entra.finish_sign_in(flow, query)
    assert refused.value.code == "state_mismatch"


def test_it_refuses_an_answer_without_a_flow(world: Running) -> None:
    with pytest.raises(SignInRefused, match="began in another browser"):
        world.entra().finish_sign_in({}, {"code": "x"})


def test_it_refuses_an_answer_without_code_or_error(world: Running) -> None:
    entra = world.entra()
    flow = entra.start_sign_in(CALLBACK)
    with pytest.raises(SignInRefused) as refused:
        entra.finish_sign_in(flow, {"state": flow["state"]})
    assert refused.value.code == "bad_answer"


def test_it_refuses_a_replayed_code(world: Running) -> None:
    entra = world.entra()
    flow = entra.start_sign_in(CALLBACK)
    query = world.sign_in(flow["auth_uri"], ADA)
    entra.finish_sign_in(flow, query)
    with pytest.raises(SignInRefused, match="AADSTS54005"):
        world.entra().finish_sign_in(flow, query)


def test_it_refuses_a_code_of_another_sign_in(world: Running) -> None:
    entra = world.entra()
    mine, other = entra.start_sign_in(CALLBACK), entra.start_sign_in(CALLBACK)
    stolen = world.sign_in(other["auth_uri"], ADA)["code"]
    with pytest.raises(SignInRefused, match="AADSTS501481") as refused:
        entra.finish_sign_in(mine, {"code": stolen, "state": mine["state"]})
    assert refused.value.code == "invalid_grant"


def test_it_says_when_the_person_declined(world: Running) -> None:
    entra = world.entra()
    flow = entra.start_sign_in(CALLBACK)
    with world.client() as client:
        answer = client.post(flow["auth_uri"], data={"cancel": "1"})
    with pytest.raises(SignInRefused, match="AADSTS65004") as refused:
        entra.finish_sign_in(flow, callback_query(answer))
    assert refused.value.code == "access_denied"
    assert "Trace ID" not in refused.value.message


OTHER = "99999999-9999-4999-8999-999999999999"


@pytest.mark.parametrize(
    ("wishes", "code"),
    [
        ({"claims": {"nonce": "another"}}, "nonce_mismatch"),
        ({"remove": ["nonce"]}, "nonce_mismatch"),
        ({"headers": {"alg": "none"}}, "token_invalid"),
        ({"headers": {"alg": "HS256"}}, "token_invalid"),
        ({"headers": {"kid": "unknown"}}, "token_invalid"),
        ({"headers": {"kid": None}}, "token_invalid"),
        ({"claims": {"aud": OTHER}}, "token_invalid"),
        ({"claims": {"iss": f"https://localhost:1/{OTHER}/v2.0"}}, "token_invalid"),
        ({"claims": {"tid": OTHER}}, "token_invalid"),
        ({"claims": {"exp": 1}}, "token_invalid"),
        ({"claims": {"exp": "soon"}}, "token_invalid"),
        ({"claims": {"nbf": 4_102_444_800}}, "token_invalid"),
        ({"claims": {"oid": "not-a-guid"}}, "token_invalid"),
        ({"remove": ["oid"]}, "token_invalid"),
        ({"remove": ["exp"]}, "token_invalid"),
        ({"remove": ["tid"]}, "token_invalid"),
    ],
)
def test_it_refuses_a_bad_id_token(
    world: Running, wishes: dict[str, Any], code: str
) -> None:
    with pytest.raises(SignInRefused) as refused:
        signed_in(world, ADA, **wishes)
    assert refused.value.code == code


def test_claims_of_a_wrong_shape_give_no_rights(world: Running) -> None:
    claims = signed_in(world, ADA, claims={"roles": "PlatformLead", "groups": 7})
    assert (claims.roles, claims.groups, claims.groups_overage) == ((), (), False)


def test_a_disabled_person_does_not_get_past_the_page(world: Running) -> None:
    flow = world.entra().start_sign_in(CALLBACK)
    with world.client() as client:
        answer = client.post(flow["auth_uri"], data={"person": TOM})
    assert answer.status_code == 403
    assert "AADSTS50057: The user account is disabled." in answer.text


def test_a_person_disabled_after_the_page_gets_no_token(world: Running) -> None:
    entra = world.entra()
    flow = entra.start_sign_in(CALLBACK)
    query = world.sign_in(flow["auth_uri"], ADA)
    world.admin("PATCH", f"/v1.0/users/{ADA}", accountEnabled=False)
    with pytest.raises(SignInRefused, match="AADSTS50057"):
        entra.finish_sign_in(flow, query)


@pytest.mark.parametrize("fault", [{"status": 503}, {"status": 502, "retry_after": 7}])
def test_a_failing_token_endpoint_is_worth_another_try(
    world: Running, fault: dict[str, Any]
) -> None:
    entra = world.entra()
    flow = entra.start_sign_in(CALLBACK)
    query = world.sign_in(flow["auth_uri"], ADA)
    world.admin("POST", "/sandbox/faults", path="/token$", **fault)
    with pytest.raises(TemporaryError):
        entra.finish_sign_in(flow, query)


def test_unreadable_keys_are_worth_another_try(world: Running) -> None:
    world.admin("POST", "/sandbox/faults", path="/keys$", status=503)
    with pytest.raises(TemporaryError, match="signing keys"):
        signed_in(world, ADA)


def test_discovery_that_fails_once_does_not_spoil_the_connector(world: Running) -> None:
    entra = world.entra()
    world.admin(
        "POST", "/sandbox/faults", path="openid-configuration", status=503, times=1
    )
    with pytest.raises(TemporaryError):
        entra.start_sign_in(CALLBACK)
    assert entra.start_sign_in(CALLBACK)["state"]


def test_an_unreachable_entra_is_worth_another_try(world: Running) -> None:
    entra = world.entra(
        authority=f"https://localhost:1/{world.sandbox.world.tenant_id}"
    )
    with pytest.raises(TemporaryError):
        entra.start_sign_in(CALLBACK)


def test_a_server_the_ca_does_not_vouch_for_is_not_trusted(world: Running) -> None:
    with pytest.raises(TemporaryError, match="SSLError"):
        world.entra(ca_file=None).start_sign_in(CALLBACK)


def test_an_unknown_tenant_is_for_somebody_to_fix(world: Running) -> None:
    with pytest.raises(PermanentError, match="tenant"):
        world.entra(authority=f"{world.sandbox.base}/{OTHER}").start_sign_in(CALLBACK)


def test_nothing_is_read_before_the_first_use() -> None:
    from connectors.entra import EntraSettings

    Entra(EntraSettings("https://localhost:1/tenant", "tenant", "client", "secret"))


def test_app_tokens_come_from_memory_unless_fresh(world: Running) -> None:
    entra = world.entra()
    first = entra.app_token(GRAPH)
    assert entra.app_token(GRAPH) == first
    assert entra.app_token(GRAPH, fresh=True) != first


def test_a_wrong_client_secret_is_for_somebody_to_fix(world: Running) -> None:
    with pytest.raises(PermanentError, match="AADSTS7000215") as refused:
        world.entra(client_secret="wrong").app_token(GRAPH)
    assert refused.value.code == "invalid_client"
    assert "wrong" not in refused.value.message


def test_signing_out_goes_through_entra_and_comes_back(world: Running) -> None:
    url = world.entra().sign_out_url("http://127.0.0.1:8000/", "O.hint")
    assert url.startswith(f"{world.tenant}/oauth2/v2.0/logout?")
    assert "logout_hint=O.hint" in url
    with world.client() as client:
        answer = client.get(url)
    assert (answer.status_code, answer.headers["location"]) == (
        302,
        "http://127.0.0.1:8000/",
    )


def test_environment_bundles_do_not_disturb(
    world: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, "/nowhere/ca.pem")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert signed_in(world, ADA).oid == ADA
