"""Clusters and their pools as the portal reads and changes them."""

from typing import Any

import pytest

from connectors.azure.compute import AzureCompute
from connectors.azure.container_service import AzureContainerService, NewPool, matching
from connectors.azure.session import DONE
from connectors.errors import PermanentError, TemporaryError
from sandbox.azure_world import CLUSTER_IDENTITY_ID
from tests.sandbox.azure.running import GROUP, Running

CLUSTER, A100 = "training-eastus", "Standard_NC24ads_A100_v4"


@pytest.fixture
def aks(azure: Running) -> AzureContainerService:
    return AzureContainerService(azure.session())


@pytest.fixture
def group(aks: AzureContainerService) -> str:
    """A reservation group with one machine in zone 1."""
    compute = AzureCompute(aks.session)
    made = compute.ensure_group(GROUP, "research", location="eastus", zones=["1"])
    compute.begin_create_reservation(
        GROUP, "research", "a100", location="eastus", size=A100, capacity=1, zone="1"
    )
    return made.id


def make(aks: AzureContainerService, name: str = "research", /, **changes: Any) -> Any:
    aks.begin_create_pool(
        GROUP,
        CLUSTER,
        name,
        NewPool(**{"size": A100, "count": 1, "zones": ("1",), **changes}),
    )
    return read(aks, name)


def read(aks: AzureContainerService, name: str = "research") -> Any:
    found = aks.pool(GROUP, CLUSTER, name)
    assert found is not None
    return found


def test_clusters_are_found(aks: AzureContainerService) -> None:
    assert [one.name for one in aks.clusters()] == ["dev-eastus", CLUSTER]
    one = aks.cluster(GROUP, CLUSTER)
    assert one is not None
    assert (one.resource_group, one.location, one.has_own_identity) == (
        GROUP,
        "eastus",
        True,
    )
    assert one.version.startswith("1.")
    assert aks.cluster(GROUP, "nowhere") is None


def test_pools_are_read_as_they_are(aks: AzureContainerService) -> None:
    pools = {pool.name: pool for pool in aks.pools(GROUP, CLUSTER)}
    assert set(pools) == {"a100", "a100spot", "h100", "system"}
    h100, spot, system = pools["h100"], pools["a100spot"], pools["system"]
    assert (h100.size, h100.count, h100.limit, h100.state) == (
        "Standard_ND96isr_H100_v5",
        2,
        2,
        "Succeeded",
    )
    assert (h100.maximum, h100.minimum, h100.is_running, h100.is_spot) == (
        None,
        None,
        True,
        False,
    )
    assert (h100.labels, h100.taints) == (
        {"accelerator": "nvidia-h100"},
        ("sku=gpu:NoSchedule",),
    )
    assert (
        spot.is_spot,
        spot.minimum,
        spot.maximum,
        spot.limit,
    ) == (True, 0, 2, 2)
    assert (system.mode, h100.mode) == ("System", "User")
    assert aks.pool(GROUP, CLUSTER, "nothing") is None
    assert [
        one.name for one in matching(pools.values(), "STANDARD_nd96isr_h100_V5")
    ] == ["h100"]


def test_a_pool_is_made_with_everything_that_it_shall_have(
    azure: Running, aks: AzureContainerService
) -> None:
    made = make(
        aks,
        minimum=0,
        maximum=3,
        labels={"team": "research"},
        taints=("sku=gpu:NoSchedule",),
    )
    assert (made.count, made.minimum, made.maximum, made.zones) == (0, 0, 3, ("1",))
    assert (made.labels, made.taints) == ({"team": "research"}, ("sku=gpu:NoSchedule",))
    assert azure.nodes(CLUSTER, "research") == []
    alone = make(aks, "alone", count=2)
    assert (alone.count, alone.maximum) == (2, None)
    assert len(azure.nodes(CLUSTER, "alone")) == 2


def test_the_same_once_more_is_one_pool(
    azure: Running, aks: AzureContainerService
) -> None:
    assert make(aks) == make(aks)
    assert len(azure.nodes(CLUSTER, "research")) == 1


def test_a_pool_uses_a_reservation_group(
    aks: AzureContainerService, group: str
) -> None:
    assert make(aks, reservation_group=group).reservation_group == group


def test_what_was_not_associated_is_seen_by_reading_it_back(
    aks: AzureContainerService,
) -> None:
    empty = AzureCompute(aks.session).ensure_group(
        GROUP, "empty", location="eastus", zones=["1"]
    )
    assert make(aks, reservation_group=empty.id).reservation_group == ""


def test_a_pool_that_is_there_gets_no_other_group(
    aks: AzureContainerService, group: str
) -> None:
    make(aks)
    with pytest.raises(PermanentError) as refused:
        make(aks, reservation_group=group)
    assert refused.value.code == "immutable"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"count": 9}, "quota"),
        ({"size": "Standard_Imaginary"}, "size_not_available"),
        ({"count": 10_000}, "invalid"),
        ({"minimum": 3, "maximum": 2}, "invalid"),
        (
            {"reservation_group": "/subscriptions/x/resourceGroups/y/providers/z/a/b"},
            "not_found",
        ),
    ],
)
def test_what_aks_refuses_has_a_code(
    aks: AzureContainerService, change: dict[str, Any], code: str
) -> None:
    with pytest.raises(PermanentError) as refused:
        make(aks, **change)
    assert refused.value.code == code


def test_a_cluster_whose_identity_has_no_right_is_told(
    azure: Running, aks: AzureContainerService, group: str
) -> None:
    roles = azure.azure.state.all("Microsoft.Authorization/roleAssignments")
    for row in [
        row for row in roles if row["properties"]["principalId"] == CLUSTER_IDENTITY_ID
    ]:
        azure.azure.state.remove(row["id"])
    with pytest.raises(PermanentError, match="deploy/action") as refused:
        make(aks, reservation_group=group)
    assert refused.value.code == "forbidden"


def test_a_failure_that_aks_hands_on_is_compute_s(
    azure: Running, aks: AzureContainerService
) -> None:
    message = (
        'Reconcile failed: Code="ZonalAllocationFailed" Message="Allocation failed."'
    )
    error = {"code": "ReconcileVMSSAgentPoolFailed", "message": message}
    azure.fault("PUT", "agentPools", operation={"error": error})
    operation = aks.begin_create_pool(
        GROUP, CLUSTER, "research", NewPool(A100, 1, zones=("1",))
    )
    with pytest.raises(PermanentError) as failed:
        aks.session.poll(operation.token)
    assert failed.value.code == "no_capacity"
    assert read(aks).state == "Failed"


def test_a_pool_is_scaled(azure: Running, aks: AzureContainerService) -> None:
    make(aks, labels={"team": "research"})
    aks.begin_scale_pool(GROUP, CLUSTER, "research", count=3)
    assert (read(aks).count, read(aks).labels) == (3, {"team": "research"})
    aks.begin_scale_pool(GROUP, CLUSTER, "research", minimum=1, maximum=2)
    scaled = read(aks)
    assert (scaled.count, scaled.minimum, scaled.maximum) == (2, 1, 2)
    aks.begin_scale_pool(GROUP, CLUSTER, "research", maximum=4)
    assert (read(aks).minimum, read(aks).maximum) == (0, 4)
    aks.begin_scale_pool(GROUP, CLUSTER, "research", count=0)
    assert (read(aks).maximum, azure.nodes(CLUSTER, "research")) == (None, [])
    with pytest.raises(PermanentError) as unknown:
        aks.begin_scale_pool(GROUP, CLUSTER, "nothing", count=1)
    assert unknown.value.code == "not_found"


def test_what_somebody_else_changed_meanwhile_stays(
    azure: Running, aks: AzureContainerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(aks)
    read_pool = AzureContainerService._read

    def read_and_then(self: AzureContainerService, *named: str) -> Any:
        told = read_pool(self, *named)
        monkeypatch.undo()
        aks.begin_scale_pool(GROUP, CLUSTER, "research", count=2)
        return told

    monkeypatch.setattr(AzureContainerService, "_read", read_and_then)
    with pytest.raises(PermanentError) as refused:
        aks.begin_scale_pool(GROUP, CLUSTER, "research", count=5)
    assert refused.value.code == "changed_meanwhile"
    assert read(aks).count == 2


def test_one_thing_at_a_time(azure: Running, aks: AzureContainerService) -> None:
    azure.pace(60)
    operation = aks.begin_create_pool(GROUP, CLUSTER, "research", NewPool(A100, 1))
    with pytest.raises(TemporaryError, match="in progress"):
        aks.begin_scale_pool(GROUP, CLUSTER, "research", count=2)
    azure.advance(61)
    assert aks.session.poll(operation.token).is_done


def test_a_pool_is_deleted_once(
    azure: Running, aks: AzureContainerService, group: str
) -> None:
    make(aks, reservation_group=group)
    aks.begin_delete_pool(GROUP, CLUSTER, "research")
    assert aks.pool(GROUP, CLUSTER, "research") is None
    assert azure.nodes(CLUSTER, "research") == []
    assert aks.begin_delete_pool(GROUP, CLUSTER, "research") == DONE
    # What it used is free again.
    AzureCompute(aks.session).begin_delete_reservation(GROUP, "research", "a100")


@pytest.mark.parametrize("name", ["a'b", "a/b", "..", "", "a b"])
def test_a_name_has_no_quotes_and_no_slashes(
    aks: AzureContainerService, name: str
) -> None:
    calls: list[Any] = [
        lambda: aks.cluster(GROUP, name),
        lambda: aks.pools(GROUP, name),
        lambda: aks.pool(GROUP, CLUSTER, name),
        lambda: aks.pool(name, CLUSTER, "a100"),
        lambda: aks.begin_create_pool(GROUP, CLUSTER, name, NewPool(A100)),
        lambda: aks.begin_delete_pool(GROUP, name, "a100"),
        lambda: aks.begin_scale_pool(GROUP, CLUSTER, name, count=1),
    ]
    for call in calls:
        with pytest.raises(PermanentError) as refused:
            call()
        assert refused.value.code == "bad_name"
