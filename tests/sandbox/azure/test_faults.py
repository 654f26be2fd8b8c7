"""What Azure answers when something goes wrong, and to calls that nobody should make."""

from typing import Any

import httpx
import pytest
from azure.core.exceptions import (
    DecodeError,
    HttpResponseError,
    IncompleteReadError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from azure.mgmt.compute import ComputeManagementClient

from tests.sandbox.azure.running import GROUP, HERE, INSIDE, Running
from tests.sandbox.azure.test_groups import a_group, code_of

USAGES = f"{HERE}/providers/Microsoft.Compute/locations/eastus/usages"


@pytest.fixture
def client(azure: Running) -> Any:
    return azure.client(ComputeManagementClient)


@pytest.fixture
def admin(azure: Running) -> Any:
    """A plain client that may do anything."""
    with azure.http() as http:
        http.headers["Authorization"] = f"Bearer {azure.azure.admin_secret}"
        yield http


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "AuthorizationFailed"),
        (409, "Conflict"),
        (429, "TooManyRequests"),
        (500, "InternalServerError"),
        (503, "ServerBusy"),
    ],
)
def test_a_refusal_on_demand(
    azure: Running, client: Any, status: int, code: str
) -> None:
    azure.fault("GET", "/usages", status=status, retry_after=7)
    with pytest.raises(HttpResponseError) as refused:
        list(client.usage.list("eastus"))
    assert (refused.value.status_code, code_of(refused)) == (status, code)
    response: Any = refused.value.response
    assert response.headers["Retry-After"] == "7"
    assert list(client.usage.list("eastus"))


@pytest.mark.parametrize(
    "code", ["QuotaExceeded", "AllocationFailed", "SkuNotAvailable"]
)
def test_a_refusal_has_the_code_that_is_wished(
    azure: Running, client: Any, code: str
) -> None:
    azure.fault(
        "PUT", "capacityReservationGroups", status=409, code=code, message="No."
    )
    with pytest.raises(HttpResponseError) as refused:
        client.capacity_reservation_groups.create_or_update(
            GROUP, "research", a_group()
        )
    assert code_of(refused) == code
    assert list(client.capacity_reservation_groups.list_by_subscription()) == []


def test_a_fault_is_for_so_many_calls(azure: Running, client: Any) -> None:
    azure.fault("", "/usages", status=500, times=2)
    for _ in range(2):
        with pytest.raises(HttpResponseError):
            list(client.usage.list("eastus"))
    assert list(client.usage.list("eastus"))


def test_an_answer_is_lost_and_the_call_was_done(azure: Running, client: Any) -> None:
    azure.fault("PUT", "capacityReservationGroups", drop=True)
    with pytest.raises(ServiceResponseError):
        client.capacity_reservation_groups.create_or_update(
            GROUP, "research", a_group()
        )
    assert client.capacity_reservation_groups.get(GROUP, "research").name == "research"


def test_an_answer_ends_in_the_middle(azure: Running, client: Any) -> None:
    azure.fault("PUT", "capacityReservationGroups", cut=20)
    with pytest.raises((IncompleteReadError, ServiceResponseError)):
        client.capacity_reservation_groups.create_or_update(
            GROUP, "research", a_group()
        )
    assert client.capacity_reservation_groups.get(GROUP, "research").name == "research"


def test_half_of_an_answer_passes_for_all(azure: Running, client: Any) -> None:
    azure.fault("PUT", "capacityReservationGroups", truncate=20)
    with pytest.raises(DecodeError):
        client.capacity_reservation_groups.create_or_update(
            GROUP, "research", a_group()
        )


def test_an_answer_takes_its_time(azure: Running, client: Any) -> None:
    azure.fault("GET", "/usages", hang=5)
    with pytest.raises(ServiceResponseTimeoutError):
        list(client.usage.list("eastus", read_timeout=0.1))


def test_an_answer_is_no_json_at_all(azure: Running, client: Any) -> None:
    azure.fault("GET", "/usages", status=502, body="<html>Bad gateway</html>")
    with pytest.raises(HttpResponseError) as refused:
        list(client.usage.list("eastus"))
    assert refused.value.status_code == 502


@pytest.mark.parametrize(
    "fault",
    [
        {},
        {"match": {}},
        {"stauts": 500},
        {"status": 500, "match": {"path_regex": "("}},
        {"status": "many", "times": "x"},
    ],
)
def test_a_fault_that_says_nothing_is_refused(
    admin: httpx.Client, fault: dict[str, Any]
) -> None:
    assert admin.post("/sandbox/faults", json=fault).status_code == 400


@pytest.mark.parametrize("path", ["/sandbox/clock", "/sandbox/operations"])
@pytest.mark.parametrize(
    "body", [{}, {"advance": -1, "seconds": -1}, {"advance": "x", "seconds": "x"}]
)
def test_a_switch_wants_seconds(
    admin: httpx.Client, path: str, body: dict[str, Any]
) -> None:
    assert admin.post(path, json=body).status_code == 400


def test_an_unknown_switch_is_not_there(admin: httpx.Client) -> None:
    assert admin.post("/sandbox/nothing").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "query", "status", "code"),
    [
        ("GET", USAGES, {}, 400, "MissingApiVersionParameter"),
        ("GET", USAGES, {"api-version": "1999-01-01"}, 400, "InvalidResourceType"),
        (
            "GET",
            f"{HERE}/providers/Microsoft.Nothing/things",
            {"api-version": "x"},
            404,
            "InvalidResourceType",
        ),
        ("DELETE", USAGES, {"api-version": "2026-04-01"}, 405, "MethodNotAllowed"),
        (
            "GET",
            USAGES.replace("4444", "9999"),
            {"api-version": "2026-04-01"},
            404,
            "SubscriptionNotFound",
        ),
    ],
)
def test_a_call_that_nobody_should_make_is_refused(
    admin: httpx.Client,
    method: str,
    path: str,
    query: dict[str, str],
    status: int,
    code: str,
) -> None:
    answer = admin.request(method, path, params=query)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"text"', b"null"])
def test_a_body_is_a_json_object(admin: httpx.Client, content: bytes) -> None:
    path = f"{INSIDE}/Microsoft.Compute/capacityReservationGroups/research"
    answer = admin.put(path, params={"api-version": "2026-04-01"}, content=content)
    assert answer.status_code == 400


def test_capitals_do_not_count_in_paths(admin: httpx.Client) -> None:
    answer = admin.get(USAGES.upper(), params={"API-Version": "2026-04-01"})
    assert answer.status_code == 200
