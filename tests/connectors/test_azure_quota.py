"""Limits and requests for more as the portal reads and makes them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from connectors.azure.quota import AzureQuota
from connectors.errors import AnswerLost, PermanentError, TemporaryError
from sandbox.azure.quota import DAYS
from tests.sandbox.azure.running import Running

A100, T4, H100 = (
    "StandardNCADSA100v4Family",
    "Standard NCASv3_T4 Family",
    "standardNDSH100v5Family",
)


@pytest.fixture
def quota(azure: Running) -> AzureQuota:
    return AzureQuota(azure.session())


def test_limits_are_told_by_family(quota: AzureQuota) -> None:
    limits = {one.name: one for one in quota.limits("eastus")}
    assert limits[H100].limit == 192
    assert limits["cores"].title == "Total Regional vCPUs"


def test_a_request_is_open_until_it_is_granted(
    azure: Running, quota: AzureQuota
) -> None:
    asked = quota.request_increase("eastus", A100, 384)
    assert (asked.name, asked.limit, asked.state) == (A100, 384, "open")
    assert asked.message == "Request is being processed."
    assert asked.submitted_at is not None
    assert abs(asked.submitted_at - datetime.now(UTC)) < timedelta(minutes=5)
    azure.advance(DAYS + 1)
    granted = quota.request("eastus", asked.id)
    assert granted is not None
    assert granted.state == "granted"
    assert next(one.limit for one in quota.limits("eastus") if one.name == A100) == 384


def test_a_request_is_refused_with_a_reason(azure: Running, quota: AzureQuota) -> None:
    asked = quota.request_increase("eastus", H100, 384)
    azure.advance(2)
    refused = quota.request("eastus", asked.id)
    assert refused is not None
    assert (refused.state, refused.code) == ("refused", "ResourceNotAvailableForOffer")
    assert "unavailable in the location" in refused.message


def test_the_same_once_more_is_one_request(quota: AzureQuota) -> None:
    first = quota.request_increase("eastus", A100, 384)
    assert quota.request_increase("eastus", A100.upper(), 384).id == first.id
    with pytest.raises(PermanentError) as refused:
        quota.request_increase("eastus", A100, 480)
    assert refused.value.code == "request_open"
    assert len(quota.requests("eastus")) == 1


def test_somebody_who_asked_between_is_seen(azure: Running, quota: AzureQuota) -> None:
    azure.fault("PUT", "/quotas/", status=409, code="QuotaRequestInProgress")
    with pytest.raises(PermanentError) as refused:
        quota.request_increase("eastus", A100, 384)
    assert refused.value.code == "request_open"


def test_an_answer_that_was_lost_makes_no_second_request(
    azure: Running, quota: AzureQuota
) -> None:
    azure.fault("PUT", "/quotas/", drop=True)
    with pytest.raises(AnswerLost):
        quota.request_increase("eastus", A100, 384)
    assert quota.request_increase("eastus", A100, 384).state == "open"
    assert len(quota.requests("eastus")) == 1


@pytest.mark.slow
def test_requests_are_listed_the_newest_first(
    azure: Running, quota: AzureQuota
) -> None:
    made = []
    for number in range(22):
        made.append(quota.request_increase("eastus", T4, 600 + number).id)
        azure.advance(2)
    assert [one.id for one in quota.requests("eastus")] == list(reversed(made))
    assert quota.requests("westeurope") == []


def test_an_unknown_request_is_none(quota: AzureQuota) -> None:
    assert quota.request("eastus", "00000000-0000-4000-8000-000000000000") is None
    with pytest.raises(PermanentError) as refused:
        quota.request("eastus", "../../quotas")
    assert refused.value.code == "bad_name"


@pytest.mark.parametrize(
    ("name", "limit"), [("standardImaginaryFamily", 10), (A100, 10**7), (A100, -1)]
)
def test_what_cannot_be_asked_for_is_refused(
    quota: AzureQuota, name: str, limit: int
) -> None:
    with pytest.raises(PermanentError):
        quota.request_increase("eastus", name, limit)
    assert quota.requests("eastus") == []


def test_a_state_that_nobody_knows_is_not_guessed(
    azure: Running, quota: AzureQuota
) -> None:
    said: dict[str, Any] = {"provisioningState": "Pondering", "value": []}
    azure.fault(
        "GET",
        "/quotaRequests",
        status=200,
        body=json.dumps({"value": [{"name": "a", "properties": said}]}),
    )
    with pytest.raises(TemporaryError, match="unknown shape"):
        quota.requests("eastus")
