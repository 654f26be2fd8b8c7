"""Capacity reservations, by Microsoft's own client: all or nothing, one for a size and zone, and paid in quota."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.compute import ComputeManagementClient

from tests.sandbox.azure.running import GROUP, Running
from tests.sandbox.azure.test_groups import code_of

A100, T4, T4_16 = (
    "Standard_NC24ads_A100_v4",
    "Standard_NC4as_T4_v3",
    "Standard_NC16as_T4_v3",
)
A100_FAMILY, T4_FAMILY = "StandardNCADSA100v4Family", "Standard NCASv3_T4 Family"


@pytest.fixture
def client(azure: Running) -> Any:
    client = azure.client(ComputeManagementClient)
    client.capacity_reservation_groups.create_or_update(
        GROUP, "research", {"location": "eastus", "zones": ["1", "2", "3"]}
    )
    return client


def body(
    size: str = A100, capacity: Any = 2, zone: str | None = "1", **changes: Any
) -> dict[str, Any]:
    zones = {"zones": [zone]} if zone else {}
    return {
        "location": "eastus",
        "sku": {"name": size, "capacity": capacity},
        **zones,
        **changes,
    }


def reserve(
    client: Any, name: str = "a100", said: Any = None, group: str = "research"
) -> Any:
    said = body() if said is None else said
    return client.capacity_reservations.begin_create_or_update(
        GROUP, group, name, said
    ).result()


def read(client: Any, name: str = "a100") -> Any:
    return client.capacity_reservations.get(
        GROUP, "research", name, expand="instanceView"
    )


def held(client: Any, name: str = "a100") -> int:
    return int(
        read(client, name).properties.instance_view.utilization_info.current_capacity
    )


def used(client: Any, family: str) -> int:
    return next(
        int(row.current_value)
        for row in client.usage.list("eastus")
        if row.name.value == family
    )


def test_a_reservation_is_made_in_an_operation(azure: Running, client: Any) -> None:
    azure.pace(5)
    poller = client.capacity_reservations.begin_create_or_update(
        GROUP, "research", "a100", body()
    )
    creating = read(client)
    assert (creating.properties.provisioning_state, held(client)) == ("Creating", 0)
    azure.advance(6)
    made = poller.result()
    assert (made.sku.name, made.sku.capacity, made.zones) == (A100, 2, ["1"])
    assert (made.properties.provisioning_state, held(client)) == ("Succeeded", 2)
    assert made.properties.reservation_id
    assert abs(made.properties.time_created - datetime.now(UTC)) < timedelta(minutes=5)
    rows = client.capacity_reservations.list_by_capacity_reservation_group(
        GROUP, "research"
    )
    assert [row.name for row in rows] == ["a100"]


def test_the_same_once_more_is_one_reservation(client: Any) -> None:
    first = reserve(client)
    assert reserve(client).properties.reservation_id == first.properties.reservation_id
    assert used(client, A100_FAMILY) == 48


def test_the_whole_number_counts_in_quota_from_the_beginning(
    azure: Running, client: Any
) -> None:
    cores = used(client, "cores")
    azure.pace(60)
    client.capacity_reservations.begin_create_or_update(
        GROUP, "research", "a100", body(), polling=False
    )
    assert used(client, A100_FAMILY) == 48
    assert used(client, "cores") == cores + 48


def test_what_would_exceed_the_quota_is_refused_whole(client: Any) -> None:
    with pytest.raises(HttpResponseError) as refused:
        reserve(client, said=body(capacity=9))
    assert (refused.value.status_code, code_of(refused)) == (409, "OperationNotAllowed")
    assert "exceeding approved StandardNCADSA100v4Family Cores quota" in str(
        refused.value
    )
    assert "Current Limit: 192, Current Usage: 0, Additional Required: 216" in str(
        refused.value
    )
    with pytest.raises(ResourceNotFoundError):
        read(client)
    assert used(client, A100_FAMILY) == 0


def test_a_regions_quota_binds_as_a_familys_does(azure: Running, client: Any) -> None:
    azure.azure.usage.raise_limit("eastus", T4_FAMILY, 5000)
    with pytest.raises(HttpResponseError) as refused:
        reserve(client, said=body(T4_16, 100))
    assert "exceeding approved Total Regional Cores quota" in str(refused.value)


def test_a_group_has_one_reservation_for_a_size_and_zone(client: Any) -> None:
    reserve(client)
    with pytest.raises(HttpResponseError) as refused:
        reserve(client, "another")
    assert code_of(refused) == "OperationNotAllowed"
    assert "already has a capacity reservation" in str(refused.value)
    reserve(client, "zone-2", body(zone="2"))
    reserve(client, "t4", body(T4))


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        (body("Standard_ND96amsr_A100_v4", zone="2"), 400, "NotSupported"),
        (body("Standard_NC40ads_H100_v5", zone="2"), 400, "NotSupported"),
        (body("Standard_ND96isr_H100_v5", zone="2"), 400, "NotSupported"),
        (body(zone="3"), 409, "SkuNotAvailable"),
        (body("Standard_NV36ads_A10_v5", zone="3"), 409, "SkuNotAvailable"),
        (body("Standard_Imaginary"), 400, "InvalidParameter"),
        (body(location="westeurope"), 400, "InvalidParameter"),
        (body(zone=None), 400, "InvalidParameter"),
        (body(zones=["1", "2"]), 400, "InvalidAvailabilityZone"),
        (body(zones=["9"]), 400, "InvalidAvailabilityZone"),
        (body(capacity=-1), 400, "InvalidParameter"),
        (body(capacity=10_000), 400, "InvalidParameter"),
        (body(capacity="2"), 400, "InvalidParameter"),
        (
            body(properties={"scheduleProfile": {"start": "2026-12-01"}}),
            400,
            "NotSupported",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    client: Any, said: dict[str, Any], status: int, code: str
) -> None:
    with pytest.raises(HttpResponseError) as refused:
        reserve(client, said=said)
    assert (refused.value.status_code, code_of(refused)) == (status, code)
    assert (
        list(
            client.capacity_reservations.list_by_capacity_reservation_group(
                GROUP, "research"
            )
        )
        == []
    )


def test_none_may_be_reserved(client: Any) -> None:
    assert reserve(client, said=body(capacity=0)).sku.capacity == 0
    assert used(client, A100_FAMILY) == 0


def test_there_has_to_be_a_group(client: Any) -> None:
    with pytest.raises(HttpResponseError) as refused:
        reserve(client, group="nobody")
    assert (refused.value.status_code, code_of(refused)) == (
        404,
        "ParentResourceNotFound",
    )


@pytest.mark.parametrize(
    "said", [body(T4), body(zone="2"), body(location="westeurope")]
)
def test_size_zone_and_region_stay(client: Any, said: dict[str, Any]) -> None:
    reserve(client)
    with pytest.raises(HttpResponseError) as refused:
        reserve(client, said=said)
    assert (refused.value.status_code, code_of(refused)) == (
        409,
        "PropertyChangeNotAllowed",
    )


def test_it_grows_and_shrinks(azure: Running, client: Any) -> None:
    reserve(client)
    azure.pace(5)
    poller = client.capacity_reservations.begin_update(
        GROUP, "research", "a100", {"sku": {"capacity": 4}}
    )
    assert (held(client), used(client, A100_FAMILY)) == (2, 96)
    azure.advance(6)
    assert poller.result().sku.capacity == 4
    poller = client.capacity_reservations.begin_update(
        GROUP, "research", "a100", {"sku": {"capacity": 1}}
    )
    # What is given up counts until it is.
    assert (held(client), used(client, A100_FAMILY)) == (4, 96)
    azure.advance(6)
    poller.result()
    assert (held(client), used(client, A100_FAMILY)) == (1, 24)


def test_nothing_else_is_done_with_it_meanwhile(azure: Running, client: Any) -> None:
    reserve(client)
    azure.pace(60)
    client.capacity_reservations.begin_update(
        GROUP, "research", "a100", {"sku": {"capacity": 4}}, polling=False
    )
    does = client.capacity_reservations
    calls: list[Callable[[], Any]] = [
        lambda: does.begin_update(GROUP, "research", "a100", {"sku": {"capacity": 5}}),
        lambda: does.begin_delete(GROUP, "research", "a100"),
    ]
    for call in calls:
        with pytest.raises(HttpResponseError) as refused:
            call()
        assert (refused.value.status_code, code_of(refused)) == (409, "Conflict")


def test_a_raise_that_fails_leaves_what_was_held_and_is_mended_by_the_old_number(
    azure: Running, client: Any
) -> None:
    reserve(client)
    error = {
        "code": "AllocationFailed",
        "message": "Allocation failed. We do not have sufficient capacity.",
    }
    azure.fault("PATCH", "capacityReservations", operation={"error": error})
    with pytest.raises(HttpResponseError) as failed:
        client.capacity_reservations.begin_update(
            GROUP, "research", "a100", {"sku": {"capacity": 4}}
        ).result()
    assert code_of(failed) == "AllocationFailed"
    left = read(client)
    assert (left.properties.provisioning_state, left.sku.capacity, held(client)) == (
        "Failed",
        4,
        2,
    )
    assert used(client, A100_FAMILY) == 48
    client.capacity_reservations.begin_update(
        GROUP, "research", "a100", {"sku": {"capacity": 2}}
    ).result()
    mended = read(client)
    assert (mended.properties.provisioning_state, mended.sku.capacity) == (
        "Succeeded",
        2,
    )


def test_a_creation_that_fails_leaves_one_that_holds_nothing(
    azure: Running, client: Any
) -> None:
    error = {"code": "ZonalAllocationFailed", "message": "Allocation failed."}
    azure.fault("PUT", "capacityReservations/", operation={"error": error})
    with pytest.raises(HttpResponseError) as failed:
        reserve(client)
    assert code_of(failed) == "ZonalAllocationFailed"
    assert (read(client).properties.provisioning_state, held(client)) == ("Failed", 0)
    assert used(client, A100_FAMILY) == 0
    assert reserve(client).properties.provisioning_state == "Succeeded"
    assert held(client) == 2


def test_a_deletion_gives_the_quota_back(azure: Running, client: Any) -> None:
    reserve(client)
    azure.pace(5)
    poller = client.capacity_reservations.begin_delete(GROUP, "research", "a100")
    assert read(client).properties.provisioning_state == "Deleting"
    assert used(client, A100_FAMILY) == 48
    azure.advance(6)
    poller.wait()
    with pytest.raises(ResourceNotFoundError):
        read(client)
    assert used(client, A100_FAMILY) == 0
    assert (
        client.capacity_reservations.begin_delete(GROUP, "research", "a100").result()
        is None
    )


def test_an_operation_may_hang_for_ever(azure: Running, client: Any) -> None:
    azure.fault("PUT", "capacityReservations/", operation={"hangs": True})
    poller = client.capacity_reservations.begin_create_or_update(
        GROUP, "research", "a100", body(), polling=False
    )
    assert poller is not None
    azure.advance(86_400)
    assert read(client).properties.provisioning_state == "Creating"


def test_an_operation_may_take_longer_than_others(azure: Running, client: Any) -> None:
    azure.fault("PUT", "capacityReservations/", operation={"seconds": 3600})
    client.capacity_reservations.begin_create_or_update(
        GROUP, "research", "a100", body(), polling=False
    )
    azure.advance(3500)
    assert read(client).properties.provisioning_state == "Creating"
    azure.advance(200)
    assert read(client).properties.provisioning_state == "Succeeded"


def test_an_operation_is_asked_after_at_two_addresses(
    azure: Running, client: Any
) -> None:
    azure.pace(5)
    seen: list[Any] = []
    client.capacity_reservations.begin_create_or_update(
        GROUP, "research", "a100", body(), polling=False, raw_response_hook=seen.append
    )
    headers = seen[0].http_response.headers
    assert headers["Retry-After"] == "1"
    with azure.http() as http:
        http.headers["Authorization"] = f"Bearer {azure.azure.admin_secret}"
        status, result = headers["Azure-AsyncOperation"], headers["Location"]
        assert http.get(status).json()["status"] == "InProgress"
        assert http.get(result).status_code == 202
        azure.advance(6)
        assert http.get(status).json()["status"] == "Succeeded"
        assert http.get(result).json()["name"] == "a100"
        assert (
            http.get(status.replace("/operations/", "/operations/not-")).status_code
            == 404
        )


def test_state_is_saved_with_operations_that_go_on(azure: Running, client: Any) -> None:
    azure.pace(60)
    poller = client.capacity_reservations.begin_create_or_update(
        GROUP, "research", "a100", body()
    )
    was_dirty, saved = azure.azure.dirty, azure.azure.snapshot()
    assert (was_dirty, azure.azure.dirty) == (True, False)
    azure.azure.restore(saved)
    assert read(client).properties.provisioning_state == "Creating"
    azure.advance(61)
    assert poller.result().properties.provisioning_state == "Succeeded"
