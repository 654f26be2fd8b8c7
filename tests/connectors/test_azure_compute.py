"""Sizes, quota and reservations as the portal reads and changes them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from connectors.azure.compute import AzureCompute, Reservation
from connectors.azure.container_service import AzureContainerService, NewPool
from connectors.azure.ids import parsed, same
from connectors.azure.session import DONE
from connectors.errors import PermanentError, TemporaryError
from tests.sandbox.azure.running import GROUP, INSIDE, SUBSCRIPTION, Running

A100, T4 = "Standard_NC24ads_A100_v4", "Standard_NC4as_T4_v3"


@pytest.fixture
def compute(azure: Running) -> AzureCompute:
    made = AzureCompute(azure.session())
    made.ensure_group(
        GROUP,
        "research",
        location="eastus",
        zones=["1", "2"],
        tags={"team": "research"},
    )
    return made


def reserve(compute: AzureCompute, name: str = "a100", **changes: Any) -> Any:
    given = {"location": "eastus", "size": A100, "capacity": 2, "zone": "1", **changes}
    operation = compute.begin_create_reservation(GROUP, "research", name, **given)
    return operation if operation.is_done else compute.session.poll(operation.token)


def read(compute: AzureCompute, name: str = "a100") -> Reservation:
    found = compute.reservation(GROUP, "research", name)
    assert found is not None
    return found


def test_sizes_say_what_they_are(compute: AzureCompute) -> None:
    sizes = {size.name: size for size in compute.sizes("eastus")}
    a100 = sizes[A100]
    assert (a100.family, a100.vcpus, a100.gpus, a100.memory_gib) == (
        "StandardNCADSA100v4Family",
        24,
        1,
        220.0,
    )
    assert (a100.zones, a100.closed_zones, a100.closed) == (("1", "2"), ("3",), "")
    assert a100.is_reservable
    assert not sizes["Standard_ND96amsr_A100_v4"].is_reservable
    # It can be reserved in blocks alone.
    assert not sizes["Standard_ND96isr_H100_v5"].is_reservable
    assert sizes["Standard_D2s_v5"].gpus == 0
    assert "Premium_LRS" not in sizes
    elsewhere = {size.name: size for size in compute.sizes("westeurope")}
    assert elsewhere["Standard_NC96ads_A100_v4"].closed == "NotAvailableForSubscription"


def test_use_is_told_by_family(compute: AzureCompute) -> None:
    rows = {row.name: row for row in compute.usages("eastus")}
    assert (
        rows["standardNDSH100v5Family"].used,
        rows["standardNDSH100v5Family"].left,
    ) == (192, 0)
    assert rows["Standard NCASv3_T4 Family"].left == 256
    assert rows["cores"].title == "Total Regional vCPUs"


def test_a_limit_may_be_lowered_below_what_is_used(
    azure: Running, compute: AzureCompute
) -> None:
    azure.azure.usage.raise_limit("eastus", "standardNDSH100v5Family", 96)
    row = next(
        row for row in compute.usages("eastus") if row.name == "standardNDSH100v5Family"
    )
    assert (row.used, row.limit, row.left) == (192, 96, 0)


@pytest.mark.parametrize("region", ["east'us", "", "east us", "a/b", "x" * 100])
def test_a_region_is_one_word(compute: AzureCompute, region: str) -> None:
    for call in (compute.sizes, compute.usages):
        with pytest.raises(PermanentError) as refused:
            call(region)
        assert refused.value.code == "bad_name"


def test_a_group_is_made_once(compute: AzureCompute) -> None:
    made = compute.ensure_group(GROUP, "research", location="eastus", zones=["2", "1"])
    assert made.id == f"{INSIDE}/Microsoft.Compute/capacityReservationGroups/research"
    assert (made.name, made.location, made.kind, made.zones) == (
        "research",
        "eastus",
        "Targeted",
        ("1", "2"),
    )
    assert made.tags == {"team": "research"}
    assert [one.name for one in compute.groups()] == ["research"]
    assert [one.name for one in compute.groups(GROUP)] == ["research"]
    assert compute.group(GROUP, "nobody") is None


@pytest.mark.parametrize(
    "change", [{"location": "westeurope"}, {"zones": ["1"]}, {"zones": []}]
)
def test_a_group_elsewhere_is_another_one(
    compute: AzureCompute, change: dict[str, Any]
) -> None:
    with pytest.raises(PermanentError) as refused:
        compute.ensure_group(
            GROUP, "research", **{"location": "eastus", "zones": ["1", "2"], **change}
        )
    assert refused.value.code == "immutable"


def test_a_reservation_is_read_as_it_is(compute: AzureCompute) -> None:
    assert reserve(compute, tags={"quartermaster": "7"}) == DONE
    found = read(compute)
    assert (found.name, found.location, found.size, found.zone) == (
        "a100",
        "eastus",
        A100,
        "1",
    )
    assert (found.capacity, found.held, found.state) == (2, 2, "Succeeded")
    assert (found.used, found.idle, found.overallocated) == (0, 2, 0)
    assert found.tags == {"quartermaster": "7"}
    assert found.created_at is not None
    assert abs(found.created_at - datetime.now(UTC)) < timedelta(minutes=5)
    assert compute.reservations(GROUP, "research") == [found]
    group = compute.group(GROUP, "research")
    assert group is not None
    assert group.reservations == (found.id,)


def test_nothing_is_there_where_nothing_is(compute: AzureCompute) -> None:
    assert compute.reservation(GROUP, "research", "a100") is None
    assert compute.reservation(GROUP, "nobody", "a100") is None
    assert compute.reservations(GROUP, "research") == []
    assert compute.reservations(GROUP, "nobody") == []
    assert compute.begin_delete_reservation(GROUP, "research", "a100") == DONE
    assert compute.begin_delete_reservation(GROUP, "nobody", "a100") == DONE
    assert compute.begin_delete_group(GROUP, "nobody") == DONE


def test_another_resource_group_is_not_nothing(compute: AzureCompute) -> None:
    with pytest.raises(PermanentError) as refused:
        compute.group("another", "research")
    assert refused.value.code == "no_resource_group"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"capacity": 9}, "quota"),
        ({"size": "Standard_ND96amsr_A100_v4", "zone": "2"}, "not_supported"),
        ({"size": "Standard_NC40ads_H100_v5", "zone": "2"}, "not_supported"),
        ({"zone": "3"}, "invalid"),
        ({"size": "Standard_Imaginary"}, "invalid"),
        ({"capacity": 10_000}, "invalid"),
        ({"location": "westeurope"}, "invalid"),
    ],
)
def test_what_azure_refuses_has_a_code(
    compute: AzureCompute, change: dict[str, Any], code: str
) -> None:
    with pytest.raises(PermanentError) as refused:
        reserve(compute, **change)
    assert refused.value.code == code
    assert compute.reservations(GROUP, "research") == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("AllocationFailed", "no_capacity"),
        ("QuotaExceeded", "quota"),
        ("SkuNotAvailable", "size_not_available"),
    ],
)
def test_a_refusal_and_a_failure_afterwards_are_the_same(
    azure: Running, compute: AzureCompute, code: str, expected: str
) -> None:
    azure.fault("PUT", "capacityReservations/", status=409, code=code)
    azure.fault(
        "PUT",
        "capacityReservations/",
        operation={"error": {"code": code, "message": "No."}},
    )
    for _ in range(2):
        with pytest.raises(PermanentError) as refused:
            reserve(compute)
        assert refused.value.code == expected


def test_a_second_one_of_a_size_and_zone_is_refused(compute: AzureCompute) -> None:
    reserve(compute)
    with pytest.raises(PermanentError) as refused:
        reserve(compute, "another")
    assert refused.value.code == "not_allowed"
    with pytest.raises(PermanentError) as changed:
        reserve(compute, zone="2")
    assert changed.value.code == "immutable"


def test_without_a_group_there_is_none(compute: AzureCompute) -> None:
    with pytest.raises(PermanentError) as refused:
        compute.begin_create_reservation(
            GROUP, "nobody", "a100", location="eastus", size=A100, capacity=1, zone="1"
        )
    assert refused.value.code == "no_parent"


@pytest.mark.parametrize(
    "name", ["a'b", 'a"b', "a/b", "../up", "", "a b", "x" * 100, "ü"]
)
def test_a_name_has_no_quotes_and_no_slashes(compute: AzureCompute, name: str) -> None:
    compute.session.close()
    calls: list[Any] = [
        lambda: compute.reservation(GROUP, "research", name),
        lambda: compute.reservation(GROUP, name, "a100"),
        lambda: compute.reservations(GROUP, name),
        lambda: compute.group(GROUP, name),
        lambda: compute.group(name, "research"),
        lambda: reserve(compute, name),
        lambda: compute.begin_delete_group(GROUP, name),
        lambda: compute.begin_delete_reservation(GROUP, "research", name),
        lambda: compute.begin_resize_reservation(GROUP, "research", name, 1),
        lambda: compute.ensure_group(GROUP, name, location="eastus"),
    ]
    for call in calls:
        with pytest.raises(PermanentError) as refused:
            call()
        assert refused.value.code == "bad_name"


def test_it_grows_shrinks_and_goes(compute: AzureCompute) -> None:
    reserve(compute)
    assert compute.begin_resize_reservation(GROUP, "research", "a100", 4).token
    assert read(compute).held == 4
    compute.begin_resize_reservation(GROUP, "research", "a100", 1)
    assert (read(compute).capacity, read(compute).held) == (1, 1)
    # As many as there are: nothing to do.
    assert compute.begin_resize_reservation(GROUP, "research", "a100", 1) == DONE
    compute.begin_delete_reservation(GROUP, "research", "a100")
    assert compute.reservations(GROUP, "research") == []
    compute.begin_delete_group(GROUP, "research")
    assert compute.groups() == []


def test_a_raise_that_fails_holds_what_it_held(
    azure: Running, compute: AzureCompute
) -> None:
    reserve(compute)
    azure.fault(
        "PATCH", "", operation={"error": {"code": "AllocationFailed", "message": "No."}}
    )
    operation = compute.begin_resize_reservation(GROUP, "research", "a100", 4)
    with pytest.raises(PermanentError):
        compute.session.poll(operation.token)
    failed = read(compute)
    assert (failed.state, failed.capacity, failed.held) == ("Failed", 4, 2)
    compute.begin_resize_reservation(GROUP, "research", "a100", 2)
    assert (read(compute).state, read(compute).held) == ("Succeeded", 2)


def test_a_raise_beyond_quota_changes_nothing(compute: AzureCompute) -> None:
    reserve(compute)
    with pytest.raises(PermanentError) as refused:
        compute.begin_resize_reservation(GROUP, "research", "a100", 9)
    assert refused.value.code == "quota"
    assert (read(compute).state, read(compute).capacity) == ("Succeeded", 2)


def test_a_group_goes_when_azure_has_noticed(
    azure: Running, compute: AzureCompute
) -> None:
    reserve(compute)
    with pytest.raises(TemporaryError):
        compute.begin_delete_group(GROUP, "research")
    compute.begin_delete_reservation(GROUP, "research", "a100")
    azure.pace(60)
    with pytest.raises(TemporaryError) as wait:
        compute.begin_delete_group(GROUP, "research")
    assert wait.value.retry_after == 5.0
    azure.advance(2)
    operation = compute.begin_delete_group(GROUP, "research")
    azure.advance(61)
    assert compute.session.poll(operation.token).is_done
    assert compute.groups() == []


def test_machines_of_a_pool_use_it(azure: Running, compute: AzureCompute) -> None:
    reserve(compute)
    group = compute.group(GROUP, "research")
    assert group is not None
    AzureContainerService(compute.session).begin_create_pool(
        GROUP,
        "training-eastus",
        "research",
        NewPool(A100, 3, zones=("1",), reservation_group=group.id),
    )
    found = read(compute)
    assert (found.used, found.idle, found.overallocated) == (2, 0, 1)
    assert len(found.associated) == len(found.allocated) == 3
    # Azure writes the same ids in two ways.
    assert set(found.associated).isdisjoint(found.allocated)
    assert all(
        same(one, other)
        for one, other in zip(found.associated, found.allocated, strict=True)
    )
    with pytest.raises(PermanentError) as refused:
        compute.begin_delete_reservation(GROUP, "research", "a100")
    assert refused.value.code == "not_allowed"
    assert read(compute).state == "Succeeded"


def test_an_id_is_taken_apart() -> None:
    text = f"{INSIDE}/Microsoft.Compute/capacityReservationGroups/research/capacityReservations/a100"
    one = parsed(text.upper())
    assert one is not None
    assert (one.subscription, one.group.lower(), one.name) == (
        SUBSCRIPTION,
        GROUP,
        "A100",
    )
    assert (
        one.kind.lower()
        == "microsoft.compute/capacityreservationgroups/capacityreservations"
    )
    assert one.names == ("RESEARCH", "A100")
    for wrong in (
        "",
        "/",
        "/subscriptions/x",
        f"{INSIDE}/Microsoft.Compute",
        f"{text}/more",
        "x" + text,
    ):
        assert parsed(wrong) is None
    assert same(text, text.upper() + "/")
    assert not same(text, text + "x")
