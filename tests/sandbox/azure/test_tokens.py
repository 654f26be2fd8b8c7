"""Who is let in: tokens of this tenant for Azure, and by which ways Entra ID gives them."""

import time
from typing import Any

import httpx
import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.mgmt.compute import ComputeManagementClient

from sandbox.azure_world import AZURE_CLIENT_ID, AZURE_PRINCIPAL_ID
from sandbox.entra.keys import SigningKey
from tests.sandbox.azure.running import HERE, Running

USAGES = f"{HERE}/providers/Microsoft.Compute/locations/eastus/usages"
ARM = "https://management.azure.com/.default"
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def call(azure: Running, authorization: str | None) -> httpx.Response:
    """Read what is used, with a header or without."""
    headers = {} if authorization is None else {"Authorization": authorization}
    with azure.http() as http:
        return http.get(USAGES, params={"api-version": "2026-04-01"}, headers=headers)


def token(azure: Running, **claims: Any) -> str:
    """A token as Entra ID signs it, with some claims changed."""
    issuer = azure.azure.entra.issuer
    return issuer.key.sign(
        {**issuer.arm_token(AZURE_CLIENT_ID, AZURE_PRINCIPAL_ID), **claims}
    )


def ask(azure: Running, **form: str) -> httpx.Response:
    """Ask Entra ID for a token as the application."""
    daemon = azure.azure.entra.daemon
    assert daemon is not None
    whole = {
        "grant_type": "client_credentials",
        "client_id": AZURE_CLIENT_ID,
        "client_secret": daemon.secret,
        "scope": ARM,
        **form,
    }
    with azure.http() as http:
        tenant = azure.azure.entra.world.tenant_id
        return http.post(
            f"{azure.azure.entra.base}/{tenant}/oauth2/v2.0/token", data=whole
        )


def federated(azure: Running, **claims: Any) -> dict[str, str]:
    """The form of who shows a token of the cluster instead of a secret."""
    daemon = azure.azure.entra.daemon
    assert daemon is not None
    return {
        "client_secret": "",
        "client_assertion_type": ASSERTION,
        "client_assertion": daemon.federated_token(**claims),
    }


def test_a_token_of_the_application_is_good(azure: Running) -> None:
    assert call(azure, f"Bearer {token(azure)}").status_code == 200
    assert (
        call(
            azure, f"Bearer {token(azure, aud='https://management.core.windows.net/')}"
        ).status_code
        == 200
    )


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"aud": "https://graph.microsoft.com"}, "InvalidAuthenticationTokenAudience"),
        (
            {"tid": "99999999-9999-4999-8999-999999999999"},
            "InvalidAuthenticationTokenTenant",
        ),
        (
            {"iss": "https://sts.windows.net/somebody/"},
            "InvalidAuthenticationTokenTenant",
        ),
        ({"exp": int(time.time()) - 10}, "ExpiredAuthenticationToken"),
    ],
)
def test_another_token_is_not(
    azure: Running, claims: dict[str, Any], code: str
) -> None:
    answer = call(azure, f"Bearer {token(azure, **claims)}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, code)
    assert answer.headers["WWW-Authenticate"].startswith(
        'Bearer authorization_uri="https://localhost:'
    )


def test_somebody_elses_signature_is_not_ours(azure: Running) -> None:
    issuer = azure.azure.entra.issuer
    forged = SigningKey.ensure(None).sign(
        issuer.arm_token(AZURE_CLIENT_ID, AZURE_PRINCIPAL_ID)
    )
    answer = call(azure, f"Bearer {forged}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (
        401,
        "InvalidAuthenticationToken",
    )


@pytest.mark.parametrize(
    "authorization", [None, "", "Basic eDp5", "Bearer", "Bearer not-a-token"]
)
def test_without_a_token_nobody_is_let_in(
    azure: Running, authorization: str | None
) -> None:
    answer = call(azure, authorization)
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_tokens_are_ended_on_demand(azure: Running) -> None:
    first = token(azure)
    assert call(azure, f"Bearer {first}").status_code == 200
    azure.admin("POST", "/sandbox/tokens")
    assert (
        call(azure, f"Bearer {first}").json()["error"]["code"]
        == "ExpiredAuthenticationToken"
    )
    assert call(azure, f"Bearer {token(azure)}").status_code == 200


def test_the_switches_are_the_administrators(azure: Running) -> None:
    with azure.http() as http:
        headers = {"Authorization": f"Bearer {token(azure)}"}
        assert (
            http.post(
                "/sandbox/clock", json={"advance": 1}, headers=headers
            ).status_code
            == 403
        )
        assert http.post("/sandbox/clock", json={"advance": 1}).status_code == 401


def test_a_secret_is_exchanged_for_a_token(azure: Running) -> None:
    answer = ask(azure)
    assert answer.status_code == 200
    assert call(azure, f"Bearer {answer.json()['access_token']}").status_code == 200


@pytest.mark.parametrize(
    ("form", "status", "code"),
    [
        ({"client_secret": "wrong"}, 401, 7000215),
        ({"client_secret": ""}, 401, 7000218),
        ({"scope": "https://vault.azure.net/.default"}, 400, 500011),
        ({"scope": "https://management.azure.com/user_impersonation"}, 400, 1002012),
    ],
)
def test_entra_gives_no_other(
    azure: Running, form: dict[str, str], status: int, code: int
) -> None:
    answer = ask(azure, **form)
    assert (answer.status_code, answer.json()["error_codes"]) == (status, [code])


def test_a_token_of_the_cluster_takes_the_place_of_the_secret(azure: Running) -> None:
    answer = ask(azure, **federated(azure))
    assert call(azure, f"Bearer {answer.json()['access_token']}").status_code == 200


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"sub": "system:serviceaccount:default:default"}, 700213),
        ({"aud": "somebody"}, 700211),
        ({"iss": "https://another.cluster"}, 700211),
        ({"exp": int(time.time()) - 10}, 700024),
    ],
)
def test_entra_trusts_one_cluster_and_one_account_in_it(
    azure: Running, claims: dict[str, Any], code: int
) -> None:
    answer = ask(azure, **federated(azure, **claims))
    assert (answer.status_code, answer.json()["error_codes"]) == (401, [code])


def test_entra_trusts_no_forged_token_of_the_cluster(azure: Running) -> None:
    answer = ask(azure, **{**federated(azure), "client_assertion": "a.b.c"})
    assert answer.json()["error_codes"] == [50027]


def test_microsofts_client_says_why_it_gets_none(azure: Running) -> None:
    client = azure.client(
        ComputeManagementClient, credential=azure.credential(client_secret="wrong")
    )
    with pytest.raises(ClientAuthenticationError, match="AADSTS7000215"):
        list(client.usage.list("eastus"))
