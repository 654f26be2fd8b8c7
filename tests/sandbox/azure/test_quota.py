"""Sizes, what is used of quota, and requests for more, by Microsoft's own clients."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.quota import QuotaMgmtClient

from sandbox.azure.quota import DAYS
from tests.sandbox.azure.running import HERE, Running
from tests.sandbox.azure.test_groups import code_of

SCOPE = f"{HERE.lstrip('/')}/providers/Microsoft.Compute/locations/eastus"
T4, A100, H100 = (
    "Standard NCASv3_T4 Family",
    "StandardNCADSA100v4Family",
    "standardNDSH100v5Family",
)


@pytest.fixture
def quota(azure: Running) -> Any:
    return azure.client(QuotaMgmtClient)


@pytest.fixture
def compute(azure: Running) -> Any:
    return azure.client(ComputeManagementClient)


def usages(compute: Any, region: str = "eastus") -> dict[str, tuple[int, int]]:
    return {
        row.name.value: (row.current_value, row.limit)
        for row in compute.usage.list(region)
    }


def ask(quota: Any, name: str, limit: Any) -> str:
    """Ask for another limit and return the request's id."""
    seen: list[Any] = []
    body = {
        "properties": {
            "limit": {"limitObjectType": "LimitValue", "value": limit},
            "name": {"value": name},
        }
    }
    quota.quota.begin_create_or_update(
        name, SCOPE, body, polling=False, raw_response_hook=seen.append
    )
    where: str = seen[0].http_response.headers["Location"]
    return where.partition("?")[0].rpartition("/")[2]


def state(quota: Any, request: str) -> str:
    return str(
        quota.quota_request_status.get(
            request, SCOPE
        ).properties.provisioning_state.value
    )


def test_sizes_say_what_they_are_and_what_this_subscription_gets(compute: Any) -> None:
    rows = list(compute.resource_skus.list(filter="location eq 'eastus'"))
    assert any(row.resource_type == "disks" for row in rows)
    by_name = {row.name: row for row in rows if row.resource_type == "virtualMachines"}
    a100 = by_name["Standard_NC24ads_A100_v4"]
    said = {one.name: one.value for one in a100.capabilities}
    assert (said["vCPUs"], said["GPUs"], said["CapacityReservationSupported"]) == (
        "24",
        "1",
        "True",
    )
    assert said["SupportedCapacityReservationTypes"] == "Open,Targeted"
    assert a100.family == A100
    assert a100.location_info[0].zones == ["1", "2", "3"]
    assert (a100.restrictions[0].type, a100.restrictions[0].restriction_info.zones) == (
        "Zone",
        ["3"],
    )
    nd = {
        one.name: one.value for one in by_name["Standard_ND96amsr_A100_v4"].capabilities
    }
    assert nd["CapacityReservationSupported"] == "False"
    assert "SupportedCapacityReservationTypes" not in nd


def test_a_whole_region_may_be_closed(compute: Any) -> None:
    rows = compute.resource_skus.list(filter="location eq 'westeurope'")
    closed = next(
        row for row in rows if row.name == "Standard_NC96ads_A100_v4"
    ).restrictions
    assert [(one.type, one.reason_code) for one in closed] == [
        ("Location", "NotAvailableForSubscription")
    ]


def test_without_a_filter_a_size_is_told_once_for_each_region(compute: Any) -> None:
    rows = [
        row
        for row in compute.resource_skus.list()
        if row.name == "Standard_NC24ads_A100_v4"
    ]
    assert sorted(row.locations[0] for row in rows) == ["eastus", "westeurope"]
    with pytest.raises(HttpResponseError) as refused:
        list(compute.resource_skus.list(filter="name eq 'x'"))
    assert code_of(refused) == "InvalidFilterInQueryString"


def test_what_the_clusters_nodes_have_is_used(azure: Running, compute: Any) -> None:
    used = usages(compute)
    assert used[H100] == (2 * 96, 192)
    assert used["standard NDAMSv4_A100Family"] == (3 * 96, 384)
    assert used[T4] == (4 * 64, 512)
    assert used["cores"] == (
        sum(count for name, (count, _) in used.items() if name != "cores"),
        1500,
    )
    assert used["availabilitySets"][0] == 0
    azure.clusters["training-eastus"].controllers.interruptions.take(
        azure.nodes("training-eastus", "h100")[0]
    )
    assert usages(compute)[H100][0] == 96
    assert usages(compute, "westeurope")["cores"] == (0, 350)


def test_an_increase_is_granted_after_a_moment(
    azure: Running, quota: Any, compute: Any
) -> None:
    request = ask(quota, T4, 640)
    assert (state(quota, request), usages(compute)[T4][1]) == ("InProgress", 512)
    azure.advance(2)
    assert (state(quota, request), usages(compute)[T4][1]) == ("Succeeded", 640)
    limit = next(
        row for row in quota.quota.list(SCOPE) if row.name == T4
    ).properties.limit
    assert limit.value == 640
    assert quota.quota.get(T4, SCOPE).properties.limit.value == 640


def test_one_takes_days(azure: Running, quota: Any, compute: Any) -> None:
    request = ask(quota, A100, 384)
    azure.advance(DAYS - 60)
    assert state(quota, request) == "InProgress"
    azure.advance(120)
    assert (state(quota, request), usages(compute)[A100][1]) == ("Succeeded", 384)


def test_one_is_refused(azure: Running, quota: Any, compute: Any) -> None:
    request = ask(quota, H100, 384)
    azure.advance(2)
    told = quota.quota_request_status.get(request, SCOPE).properties
    assert (told.provisioning_state, told.error.code) == (
        "Failed",
        "ResourceNotAvailableForOffer",
    )
    assert usages(compute)[H100][1] == 192


@pytest.mark.parametrize(("is_granted", "limit"), [(True, 384), (False, 192)])
def test_people_at_microsoft_decide_on_demand(
    azure: Running, quota: Any, compute: Any, is_granted: bool, limit: int
) -> None:
    request = ask(quota, A100, 384)
    azure.admin("POST", "/sandbox/quota", request=request, granted=is_granted)
    assert state(quota, request) == ("Succeeded" if is_granted else "Failed")
    assert usages(compute)[A100][1] == limit


def test_one_request_at_a_time(azure: Running, quota: Any) -> None:
    ask(quota, A100, 384)
    with pytest.raises(HttpResponseError) as refused:
        ask(quota, A100, 480)
    assert (refused.value.status_code, code_of(refused)) == (
        409,
        "QuotaRequestInProgress",
    )
    ask(quota, T4, 640)


@pytest.mark.parametrize(
    ("name", "limit", "code"),
    [
        (A100, -1, "InvalidQuotaLimit"),
        (A100, 10**7, "InvalidQuotaLimit"),
        (A100, "many", "InvalidQuotaLimit"),
        ("standardImaginaryFamily", 10, "InvalidResourceName"),
    ],
)
def test_what_cannot_be_is_refused(
    quota: Any, name: str, limit: Any, code: str
) -> None:
    with pytest.raises(HttpResponseError) as refused:
        ask(quota, name, limit)
    assert code_of(refused) == code
    assert list(quota.quota_request_status.list(SCOPE)) == []


def test_requests_are_listed_the_newest_first_in_pages(
    azure: Running, quota: Any
) -> None:
    made = []
    for number in range(22):
        made.append(ask(quota, T4, 600 + number))
        azure.advance(2)
    rows = [row.name for row in quota.quota_request_status.list(SCOPE)]
    assert rows == list(reversed(made))
    with pytest.raises(ResourceNotFoundError):
        quota.quota_request_status.get("00000000-0000-4000-8000-000000000000", SCOPE)


def test_use_is_told_here_too(azure: Running, quota: Any) -> None:
    with pytest.raises(HttpResponseError) as refused:
        list(quota.usages.list(SCOPE))
    assert code_of(refused) == "AuthorizationFailed"
    with azure.http() as http:
        http.headers["Authorization"] = f"Bearer {azure.azure.admin_secret}"
        http.params = {"api-version": "2025-09-01"}
        at = f"/{SCOPE}/providers/Microsoft.Quota/usages"
        rows = {
            row["name"]: row["properties"]["usages"]["value"]
            for row in http.get(at).json()["value"]
        }
        assert rows[H100] == 192
        assert http.get(f"{at}/{H100}").json()["properties"]["usages"]["value"] == 192


def test_an_autoscaler_gets_no_node_beyond_the_quota(azure: Running) -> None:
    permits = azure.azure.usage.permits
    assert permits("dev-eastus", ["h100nvl"] * 4)
    assert not permits("dev-eastus", ["h100nvl"] * 5)
    assert not permits("training-eastus", ["h100"])
    azure.azure.usage.raise_limit("eastus", H100, 288)
    assert permits("training-eastus", ["h100"])
