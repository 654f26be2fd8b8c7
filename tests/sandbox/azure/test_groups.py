"""Capacity reservation groups, by Microsoft's own client."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.compute.models import CapacityReservation, CapacityReservationGroup, Sku

from tests.sandbox.azure.running import GROUP, INSIDE, Running


@pytest.fixture
def groups(azure: Running) -> Any:
    return azure.client(ComputeManagementClient).capacity_reservation_groups


def a_group(**changes: Any) -> CapacityReservationGroup:
    return CapacityReservationGroup(**{"location": "eastus", "zones": ["1"], **changes})


def code_of(error: "pytest.ExceptionInfo[HttpResponseError]") -> str:
    assert error.value.error is not None
    return str(error.value.error.code)


def test_a_group_is_there_once_it_is_made(groups: Any) -> None:
    made = groups.create_or_update(
        GROUP, "research", a_group(tags={"team": "research"})
    )
    assert made.id == f"{INSIDE}/Microsoft.Compute/capacityReservationGroups/research"
    assert (made.location, made.zones, made.tags) == (
        "eastus",
        ["1"],
        {"team": "research"},
    )
    assert groups.get(GROUP.upper(), "RESEARCH").name == "research"
    assert [one.name for one in groups.list_by_resource_group(GROUP)] == ["research"]
    assert [one.name for one in groups.list_by_subscription()] == ["research"]


def test_the_same_once_more_changes_tags_alone(groups: Any) -> None:
    groups.create_or_update(GROUP, "research", a_group())
    assert groups.create_or_update(
        GROUP, "research", a_group(tags={"a": "b"})
    ).tags == {"a": "b"}
    assert groups.update(GROUP, "research", {"tags": {"c": "d"}}).tags == {"c": "d"}


@pytest.mark.parametrize(
    "change", [{"location": "westeurope"}, {"zones": ["2"]}, {"zones": None}]
)
def test_where_it_is_stays(groups: Any, change: dict[str, Any]) -> None:
    groups.create_or_update(GROUP, "research", a_group())
    with pytest.raises(HttpResponseError) as refused:
        groups.create_or_update(GROUP, "research", a_group(**change))
    assert (refused.value.status_code, code_of(refused)) == (
        409,
        "PropertyChangeNotAllowed",
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"zones": ["4"]}, "InvalidAvailabilityZone"),
        ({"location": "atlantis"}, "LocationNotAvailableForResourceType"),
        ({"location": ""}, "LocationRequired"),
        ({"properties": {"reservationType": "Block"}}, "NotSupported"),
        ({"properties": {"reservationType": "Open"}}, "NotSupported"),
        ({"properties": {"reservationType": "Wish"}}, "InvalidParameter"),
    ],
)
def test_what_cannot_be_is_refused(
    groups: Any, change: dict[str, Any], code: str
) -> None:
    with pytest.raises(HttpResponseError) as refused:
        groups.create_or_update(
            GROUP, "research", {"location": "eastus", "zones": ["1"], **change}
        )
    assert code_of(refused) == code
    assert list(groups.list_by_resource_group(GROUP)) == []


@pytest.mark.parametrize("name", ["a'b", "a b", "-a", "x" * 81, "a%2Fb"])
def test_a_name_has_no_quotes_and_no_slashes(groups: Any, name: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        groups.create_or_update(GROUP, name, a_group())
    assert code_of(refused) == "InvalidResourceName"


def test_nothing_is_found_where_nothing_is(groups: Any) -> None:
    with pytest.raises(ResourceNotFoundError) as unknown:
        groups.get(GROUP, "research")
    assert code_of(unknown) == "ResourceNotFound"
    with pytest.raises(ResourceNotFoundError) as elsewhere:
        groups.get("another-group", "research")
    assert code_of(elsewhere) == "ResourceGroupNotFound"
    assert groups.begin_delete(GROUP, "research").result() is None


def test_a_group_goes_after_its_reservations(azure: Running, groups: Any) -> None:
    reservations = azure.client(ComputeManagementClient).capacity_reservations
    groups.create_or_update(GROUP, "research", a_group())
    body = CapacityReservation(
        location="eastus", sku=Sku(name="Standard_NC4as_T4_v3", capacity=1), zones=["1"]
    )
    reservations.begin_create_or_update(GROUP, "research", "t4", body).result()
    with pytest.raises(HttpResponseError) as nested:
        groups.begin_delete(GROUP, "research")
    assert code_of(nested) == "CannotDeleteResource"
    assert "capacityReservations/t4" in str(nested.value)
    reservations.begin_delete(GROUP, "research", "t4").result()
    groups.begin_delete(GROUP, "research").result()
    assert list(groups.list_by_subscription()) == []


def test_azure_counts_the_last_reservation_for_a_moment_more(
    azure: Running, groups: Any
) -> None:
    reservations = azure.client(ComputeManagementClient).capacity_reservations
    groups.create_or_update(GROUP, "research", a_group())
    body = CapacityReservation(
        location="eastus", sku=Sku(name="Standard_NC4as_T4_v3", capacity=1), zones=["1"]
    )
    reservations.begin_create_or_update(GROUP, "research", "t4", body).result()
    reservations.begin_delete(GROUP, "research", "t4").result()
    azure.pace(60)
    with pytest.raises(HttpResponseError) as nested:
        groups.begin_delete(GROUP, "research")
    assert code_of(nested) == "CannotDeleteResource"
    azure.advance(2)
    assert groups.begin_delete(GROUP, "research", polling=False) is not None


def test_a_group_shows_its_reservations_and_their_use(
    azure: Running, groups: Any
) -> None:
    reservations = azure.client(ComputeManagementClient).capacity_reservations
    groups.create_or_update(GROUP, "research", a_group())
    body = CapacityReservation(
        location="eastus", sku=Sku(name="Standard_NC4as_T4_v3", capacity=2), zones=["1"]
    )
    reservations.begin_create_or_update(GROUP, "research", "t4", body).result()
    shown = groups.get(GROUP, "research", expand="instanceView").properties
    assert [one.id.rpartition("/")[2] for one in shown.capacity_reservations] == ["t4"]
    view = shown.instance_view.capacity_reservations[0]
    assert (view.name, view.utilization_info.current_capacity) == ("t4", 2)
    assert groups.get(GROUP, "research").properties.instance_view is None
    ids = list(groups.list_by_subscription(resource_ids_only="CreatedInSubscription"))
    assert [one.id.rpartition("/")[2] for one in ids] == ["research"]
    assert (
        list(groups.list_by_subscription(resource_ids_only="SharedWithSubscription"))
        == []
    )
