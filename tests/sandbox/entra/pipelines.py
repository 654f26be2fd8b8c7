"""A pipeline that signs in to the sandbox's Entra ID as its application, with the token of its workflow alone."""

from typing import Any

import httpx

from sandbox.entra.federation import JWT_BEARER
from tests.sandbox.entra.running import Running


def asked_for_token(server: Running, **form: Any) -> httpx.Response:
    """Entra ID's answer to the pipeline's exchange of its workflow's token; `form` bends it."""
    sandbox = server.sandbox
    usual = {
        "grant_type": "client_credentials",
        "client_id": sandbox.pipeline.application.client_id,
        "client_assertion_type": JWT_BEARER,
        "client_assertion": sandbox.pipeline.credential.token(),
        "scope": f"api://{sandbox.world.client_id}/.default",
    }
    with server.client() as client:
        return client.post(f"{server.tenant}/oauth2/v2.0/token", data={**usual, **form})


def pipeline_token(server: Running) -> str:
    """The access token for the portal that the pipeline gets."""
    answer = asked_for_token(server)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])
