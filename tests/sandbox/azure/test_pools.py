"""Agent pools, by Microsoft's own client: their nodes are those of the Kubernetes clusters."""

from collections.abc import Callable
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.authorization.v2022_04_01 import AuthorizationManagementClient
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.containerservice import ContainerServiceClient

from sandbox.azure_world import CLUSTER_IDENTITY_ID
from sandbox.kubernetes.binding import NODE
from tests.sandbox.azure.running import GROUP, HERE, INSIDE, Running

CLUSTER = "training-eastus"
A100 = "Standard_NC24ads_A100_v4"
CRG = f"{INSIDE}/Microsoft.Compute/capacityReservationGroups/research"


@pytest.fixture
def client(azure: Running) -> Any:
    return azure.client(ContainerServiceClient)


@pytest.fixture
def compute(azure: Running) -> Any:
    client = azure.client(ComputeManagementClient)
    client.capacity_reservation_groups.create_or_update(
        GROUP, "research", {"location": "eastus", "zones": ["1"]}
    )
    return client


def pool(**changes: Any) -> dict[str, Any]:
    return {
        "properties": {
            "vmSize": A100,
            "count": 1,
            "availabilityZones": ["1"],
            **changes,
        }
    }


def put(client: Any, name: str, said: dict[str, Any]) -> Any:
    return client.agent_pools.begin_create_or_update(
        GROUP, CLUSTER, name, said
    ).result()


def reserve(compute: Any, capacity: int) -> None:
    body = {
        "location": "eastus",
        "sku": {"name": A100, "capacity": capacity},
        "zones": ["1"],
    }
    compute.capacity_reservations.begin_create_or_update(
        GROUP, "research", "a100", body
    ).result()


def reservation(compute: Any) -> Any:
    return compute.capacity_reservations.get(
        GROUP, "research", "a100", expand="instanceView"
    ).properties


def used(compute: Any, name: str = "StandardNCADSA100v4Family") -> int:
    return next(
        int(row.current_value)
        for row in compute.usage.list("eastus")
        if row.name.value == name
    )


def code_of(error: "pytest.ExceptionInfo[HttpResponseError]") -> str:
    assert error.value.error is not None
    return str(error.value.error.code)


def test_the_sandboxs_clusters_are_azures(client: Any) -> None:
    there = list(client.managed_clusters.list())
    assert [one.name for one in there] == ["dev-eastus", "training-eastus"]
    assert [
        one.name for one in client.managed_clusters.list_by_resource_group(GROUP)
    ] == [
        "dev-eastus",
        "training-eastus",
    ]
    one = client.managed_clusters.get(GROUP, CLUSTER.upper())
    assert (one.name, one.location, one.identity.type) == (
        CLUSTER,
        "eastus",
        "UserAssigned",
    )
    with pytest.raises(ResourceNotFoundError):
        client.managed_clusters.get(GROUP, "nowhere")


def test_node_groups_are_pools_with_their_limits(azure: Running, client: Any) -> None:
    rows = {one.name: one.properties for one in client.agent_pools.list(GROUP, CLUSTER)}
    assert set(rows) == {"a100", "a100spot", "h100", "system"}
    assert (rows["h100"].count, rows["h100"].vm_size) == (2, "Standard_ND96isr_H100_v5")
    assert len(azure.nodes(CLUSTER, "h100")) == 2
    spot = rows["a100spot"]
    assert (spot.enable_auto_scaling, spot.min_count, spot.max_count) == (True, 0, 2)
    assert spot.scale_set_priority == "Spot"
    assert rows["system"].mode == "System"
    assert rows["a100"].node_labels == {"accelerator": "nvidia-a100"}


def test_a_new_pool_is_new_nodes(azure: Running, client: Any, compute: Any) -> None:
    azure.pace(5)
    poller = client.agent_pools.begin_create_or_update(
        GROUP, CLUSTER, "research", pool(count=2, nodeLabels={"team": "research"})
    )
    assert (
        client.agent_pools.get(GROUP, CLUSTER, "research").properties.provisioning_state
        == "Creating"
    )
    assert azure.nodes(CLUSTER, "research") == []
    azure.advance(6)
    assert poller.result().properties.count == 2
    names = azure.nodes(CLUSTER, "research")
    store = azure.clusters[CLUSTER].store
    nodes = [node for node in store.objects(NODE) if node["metadata"]["name"] in names]
    assert {node["metadata"]["labels"]["team"] for node in nodes} == {"research"}
    assert {node["status"]["capacity"]["nvidia.com/gpu"] for node in nodes} == {"1"}
    assert used(compute) == 48


def test_its_count_is_that_of_its_nodes(azure: Running, client: Any) -> None:
    put(client, "research", pool(count=1))
    assert put(client, "research", pool(count=3)).properties.count == 3
    first = azure.nodes(CLUSTER, "research")
    assert len(first) == 3
    assert put(client, "research", pool(count=2)).properties.count == 2
    assert azure.nodes(CLUSTER, "research") == first[:2]
    assert put(client, "research", pool(count=0)).properties.count == 0


def test_an_autoscaler_has_its_limits(azure: Running, client: Any) -> None:
    auto = {"enableAutoScaling": True, "minCount": 1, "maxCount": 3, "count": 1}
    made = put(client, "research", pool(**auto)).properties
    assert (made.count, made.min_count, made.max_count) == (1, 1, 3)
    changed = put(
        client, "research", pool(**{**auto, "minCount": 2, "count": 2})
    ).properties
    assert (changed.count, len(azure.nodes(CLUSTER, "research"))) == (2, 2)
    alone = put(client, "research", pool(enableAutoScaling=False, count=1)).properties
    assert (alone.count, alone.min_count, alone.enable_auto_scaling) == (1, None, False)


@pytest.mark.parametrize(
    ("name", "said", "code"),
    [
        ("Upper", pool(), "InvalidParameter"),
        ("thirteenletters", pool(), "InvalidParameter"),
        ("research", pool(vmSize="Standard_Imaginary"), "VMSizeNotSupported"),
        ("research", pool(count=-1), "InvalidParameter"),
        ("research", pool(count=10_000), "InvalidParameter"),
        (
            "research",
            pool(enableAutoScaling=True, minCount=3, maxCount=2, count=3),
            "InvalidParameter",
        ),
        (
            "research",
            pool(enableAutoScaling=True, minCount=0, maxCount=2, count=3),
            "InvalidParameter",
        ),
        ("research", pool(enableAutoScaling=True, count=3), "InvalidParameter"),
        ("research", pool(capacityReservationGroupID=CRG + "x"), "ResourceNotFound"),
    ],
)
def test_what_cannot_be_is_refused(
    client: Any, name: str, said: dict[str, Any], code: str
) -> None:
    with pytest.raises(HttpResponseError) as refused:
        put(client, name, said)
    assert code_of(refused) == code


def test_quota_binds_as_aks_says_it(client: Any) -> None:
    with pytest.raises(HttpResponseError) as refused:
        put(client, "research", pool(count=9))
    assert refused.value.status_code == 400
    assert "ErrCode_InsufficientVCPUQuota" in str(refused.value)
    assert "requested 216, remaining 192 for family StandardNCADSA100v4Family" in str(
        refused.value
    )
    put(client, "research", pool(count=8))


def test_spot_has_a_quota_of_its_own(client: Any, compute: Any) -> None:
    put(client, "spot", pool(count=8, scaleSetPriority="Spot"))
    assert (used(compute), used(compute, "lowPriorityCores")) == (0, 192)
    with pytest.raises(HttpResponseError, match="ErrCode_InsufficientVCPUQuota"):
        put(client, "spot", pool(count=9, scaleSetPriority="Spot"))


def test_a_pools_nodes_use_the_reservation(
    azure: Running, client: Any, compute: Any
) -> None:
    reserve(compute, 3)
    assert used(compute) == 72
    made = put(client, "research", pool(count=2, capacityReservationGroupID=CRG))
    assert made.properties.capacity_reservation_group_id == CRG
    # What runs in a reservation is not counted beside it.
    assert used(compute) == 72
    told = reservation(compute)
    assert len(told.virtual_machines_associated) == 2
    ids = [
        one.id for one in told.instance_view.utilization_info.virtual_machines_allocated
    ]
    assert ids == [one.id.upper() for one in told.virtual_machines_associated]


def test_more_may_run_than_is_reserved(client: Any, compute: Any) -> None:
    reserve(compute, 1)
    put(client, "research", pool(count=3, capacityReservationGroupID=CRG))
    view = reservation(compute).instance_view.utilization_info
    assert (view.current_capacity, len(view.virtual_machines_allocated)) == (1, 3)
    assert used(compute) == 72


def test_nodes_of_another_zone_do_not_use_it(client: Any, compute: Any) -> None:
    reserve(compute, 2)
    put(
        client,
        "research",
        pool(count=2, availabilityZones=["2"], capacityReservationGroupID=CRG),
    )
    assert reservation(compute).virtual_machines_associated is None
    assert used(compute) == 96


def test_without_a_reservation_the_pool_is_made_and_not_associated(
    client: Any, compute: Any
) -> None:
    made = put(client, "research", pool(capacityReservationGroupID=CRG))
    assert made.properties.provisioning_state == "Succeeded"
    assert made.properties.capacity_reservation_group_id is None
    reserve(compute, 1)
    assert reservation(compute).virtual_machines_associated is None


def test_a_reservation_in_use_stays(client: Any, compute: Any) -> None:
    reserve(compute, 1)
    put(client, "research", pool(capacityReservationGroupID=CRG))
    with pytest.raises(HttpResponseError) as refused:
        compute.capacity_reservations.begin_delete(GROUP, "research", "a100")
    assert (refused.value.status_code, code_of(refused)) == (409, "OperationNotAllowed")
    client.agent_pools.begin_delete(GROUP, CLUSTER, "research").result()
    compute.capacity_reservations.begin_delete(GROUP, "research", "a100").result()
    compute.capacity_reservation_groups.begin_delete(GROUP, "research").result()


def test_a_group_in_use_stays(client: Any, compute: Any) -> None:
    reserve(compute, 1)
    put(client, "research", pool(count=0, capacityReservationGroupID=CRG))
    compute.capacity_reservations.begin_delete(GROUP, "research", "a100").result()
    with pytest.raises(HttpResponseError) as refused:
        compute.capacity_reservation_groups.begin_delete(GROUP, "research")
    assert f"associated with {CLUSTER}/research" in str(refused.value)


def test_the_clusters_identity_needs_a_right_on_the_group(
    azure: Running, client: Any, compute: Any
) -> None:
    reserve(compute, 1)
    roles = azure.client(AuthorizationManagementClient).role_assignments
    held = [
        row
        for row in roles.list_for_scope(HERE)
        if row.principal_id == CLUSTER_IDENTITY_ID
    ]
    for row in held:
        roles.delete_by_id(row.id)
    with pytest.raises(HttpResponseError) as refused:
        put(client, "research", pool(capacityReservationGroupID=CRG))
    assert (refused.value.status_code, code_of(refused)) == (
        403,
        "LinkedAuthorizationFailed",
    )
    assert azure.nodes(CLUSTER, "research") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"vmSize": "Standard_NC48ads_A100_v4"},
        {"availabilityZones": ["2"]},
        {"scaleSetPriority": "Spot"},
        {"capacityReservationGroupID": CRG},
    ],
)
def test_what_a_pool_is_stays(
    client: Any, compute: Any, change: dict[str, Any]
) -> None:
    put(client, "research", pool())
    with pytest.raises(HttpResponseError) as refused:
        put(client, "research", pool(**change))
    assert code_of(refused) == "PropertyChangeNotAllowed"


def test_one_thing_at_a_time(azure: Running, client: Any) -> None:
    azure.pace(60)
    client.agent_pools.begin_create_or_update(
        GROUP, CLUSTER, "research", pool(), polling=False
    )
    calls: list[Callable[[], Any]] = [
        lambda: client.agent_pools.begin_create_or_update(
            GROUP, CLUSTER, "research", pool(count=2)
        ),
        lambda: client.agent_pools.begin_delete(GROUP, CLUSTER, "research"),
    ]
    for call in calls:
        with pytest.raises(HttpResponseError) as refused:
            call()
        assert (refused.value.status_code, code_of(refused)) == (
            409,
            "OperationNotAllowed",
        )
        assert "in progress" in str(refused.value)


def test_who_read_before_somebody_else_wrote_is_told(client: Any) -> None:
    put(client, "research", pool())
    read = client.agent_pools.get(GROUP, CLUSTER, "research")
    put(client, "research", pool(count=2))
    with pytest.raises(HttpResponseError) as refused:
        client.agent_pools.begin_create_or_update(
            GROUP,
            CLUSTER,
            "research",
            pool(count=3),
            headers={"If-Match": read.properties.e_tag},
        )
    assert refused.value.status_code == 412


def test_a_deleted_pool_has_no_nodes(azure: Running, client: Any, compute: Any) -> None:
    put(client, "research", pool(count=2))
    client.agent_pools.begin_delete(GROUP, CLUSTER, "research").result()
    assert (azure.nodes(CLUSTER, "research"), used(compute)) == ([], 0)
    with pytest.raises(ResourceNotFoundError):
        client.agent_pools.get(GROUP, CLUSTER, "research")
    assert client.agent_pools.begin_delete(GROUP, CLUSTER, "research").result() is None


def test_a_cluster_keeps_a_system_pool(client: Any) -> None:
    with pytest.raises(HttpResponseError) as refused:
        client.agent_pools.begin_delete(GROUP, CLUSTER, "system")
    assert code_of(refused) == "SystemPoolRequired"


def test_what_was_a_pool_is_one_after_a_restart(azure: Running, client: Any) -> None:
    auto = {"enableAutoScaling": True, "minCount": 0, "maxCount": 3, "count": 0}
    put(client, "research", pool(**auto))
    azure.azure.restore(azure.azure.snapshot())
    kept = azure.clusters[CLUSTER].controllers.autoscaler
    assert any("research" in one.each.name for one in kept._pools)


def test_a_fault_fails_the_pool(azure: Running, client: Any) -> None:
    message = 'Code="ZonalAllocationFailed" Message="Allocation failed."'
    error = {"code": "ReconcileVMSSAgentPoolFailed", "message": message}
    azure.fault("PUT", "agentPools/research", operation={"error": error})
    with pytest.raises(HttpResponseError, match="ReconcileVMSSAgentPoolFailed"):
        put(client, "research", pool())
    assert (
        client.agent_pools.get(GROUP, CLUSTER, "research").properties.provisioning_state
        == "Failed"
    )
    assert azure.nodes(CLUSTER, "research") == []
