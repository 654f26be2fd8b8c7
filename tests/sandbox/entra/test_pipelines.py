"""A pipeline's application gets tokens for the portal without a secret, and none for anything else."""

from typing import Any

import jwt
import pytest

from sandbox.entra.pipelines import PIPELINE, SUBJECT
from tests.sandbox.entra.pipelines import asked_for_token, pipeline_token
from tests.sandbox.entra.running import Running


@pytest.mark.parametrize(("version", "claim"), [(1, "appid"), (2, "azp")])
def test_its_token_names_the_application_and_its_service_principal(
    world: Running, version: int, claim: str
) -> None:
    world.admin("PATCH", "/sandbox/application", requestedAccessTokenVersion=version)
    raw = pipeline_token(world)
    body = jwt.decode(raw, options={"verify_signature": False})
    assert (body[claim], body["oid"], body["idtyp"]) == (
        PIPELINE.client_id,
        PIPELINE.principal_id,
        "app",
    )
    assert "scp" not in body
    claims = world.entra().verify_bearer(raw)
    assert (claims.oid, claims.client_id, claims.app_only) == (
        PIPELINE.principal_id,
        PIPELINE.client_id,
        True,
    )


def test_the_client_id_of_a_v2_token_is_never_taken_from_the_claim_of_a_v1_token(
    world: Running,
) -> None:
    raw = world.token(kind="api", claims={"appid": "mine"}, remove=["azp"])
    assert world.entra().verify_bearer(raw).client_id == ""


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({"client_assertion_type": "", "client_secret": "x"}, 7000218),
        ({"client_assertion": "x"}, 50027),
        ({"scope": "openid"}, 1002012),
        ({"scope": "https://management.azure.com/.default"}, 500011),
    ],
)
def test_it_gets_none_without_its_workflows_token_or_for_another_api(
    world: Running, form: dict[str, Any], code: int
) -> None:
    answer = asked_for_token(world, **form)
    assert answer.status_code >= 400
    assert answer.json()["error_codes"] == [code]


def test_another_branch_gets_none(world: Running) -> None:
    other = world.sandbox.pipeline.credential.token(sub=f"{SUBJECT}-2")
    answer = asked_for_token(world, client_assertion=other)
    assert answer.json()["error_codes"] == [700213]
