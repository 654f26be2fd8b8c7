"""Calls made up from the committed description, as somebody of every role: no crash, no undocumented answer."""

from typing import Any

import pytest
import schemathesis
from django.conf import settings
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as bounds
from pytest_django import Settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from portal.wsgi import application
from tests.calling import Caller
from tests.world import world

pytestmark = pytest.mark.slow

# A crash is an undocumented status; 503 is documented, and what an absent Entra ID is answered with.
CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = [2, pytest.param(20, marks=pytest.mark.long)]


def bounds_of(examples: int) -> bounds:
    """So many made-up calls of each operation, the same ones in each run."""
    return bounds(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture
def _one_transaction(db: None, settings: Settings) -> Any:
    """The test's transaction is open over many calls, which must not end its connection."""
    settings.RATES = {"read": "1000000/h", "write": "1000000/h"}
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("_one_transaction")
@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.parametrize(
    ("role", "mode"),
    [
        *(
            (role, schemathesis.GenerationMode.POSITIVE)
            for role in ("member", "platform_lead", "auditor")
        ),
        *(
            (role, schemathesis.GenerationMode.NEGATIVE)
            for role in ("member", "platform_lead")
        ),
    ],
)
def test_whatever_is_sent_is_answered_as_described(
    role: str, mode: schemathesis.GenerationMode, examples: int
) -> None:
    headers = Caller(world().people[role]).headers
    described: Any = schemathesis.openapi.from_path(
        settings.BASE_DIR / "docs/reference/openapi.yaml"
    )
    described.app = application
    operations = [result.ok() for result in described.get_all_operations()]
    assert len(operations) > 35
    for operation in operations:
        if mode is schemathesis.GenerationMode.NEGATIVE and not takes_anything(
            operation
        ):
            continue

        @bounds_of(examples)
        @given(case=operation.as_strategy(generation_mode=mode))
        def answered(case: Any) -> None:
            case.call_and_validate(headers=headers, checks=CHECKS)

        answered()


def takes_anything(operation: Any) -> bool:
    """Whether there is something to send that would be wrong."""
    raw = operation.definition.raw
    return "requestBody" in raw or any(
        each["in"] != "header" for each in raw.get("parameters", [])
    )
