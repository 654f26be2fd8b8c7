"""Azure Kubernetes Service: managed clusters and their pools of nodes. The only importer of its SDK."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectors.azure.ids import check
from connectors.azure.session import DONE, AzureSession, Operation, shaped, word
from connectors.errors import PermanentError

USER, SPOT, RUNNING = "User", "Spot", "Running"


@dataclass(frozen=True)
class ManagedCluster:
    """An AKS cluster; `has_own_identity` where it may be given rights on reservation groups (a user-assigned one)."""

    id: str
    name: str
    resource_group: str
    location: str
    version: str
    has_own_identity: bool

    @classmethod
    def of(cls, told: Any) -> "ManagedCluster":
        """What the SDK gives for one."""
        said, identity = told.properties, told.identity
        kind = word(identity and identity.type)
        return cls(
            id=str(told.id),
            name=str(told.name),
            resource_group=str(told.id).split("/")[4],
            location=str(told.location),
            version=str(
                said.current_kubernetes_version or said.kubernetes_version or ""
            ),
            has_own_identity=kind == "UserAssigned",
        )


@dataclass(frozen=True)
class AgentPool:
    """A pool of nodes that are all alike.

    `count` is how many there are. Without an autoscaler `minimum` and `maximum` are None. `reservation_group` is the
    id of the capacity reservation group that its machines use, empty for none, whatever was asked for.
    """

    id: str
    name: str
    size: str
    count: int
    state: str
    minimum: int | None = None
    maximum: int | None = None
    mode: str = USER
    is_spot: bool = False
    is_running: bool = True
    zones: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[str, ...] = ()
    reservation_group: str = ""

    @property
    def limit(self) -> int:
        """How many nodes there may be."""
        return self.count if self.maximum is None else self.maximum

    @classmethod
    def of(cls, told: Any) -> "AgentPool":
        """What the SDK gives for one."""
        said = told.properties
        is_auto = bool(said.enable_auto_scaling)
        return cls(
            id=str(told.id),
            name=str(told.name),
            size=str(said.vm_size),
            count=int(said.count or 0),
            state=word(said.provisioning_state),
            minimum=int(said.min_count or 0) if is_auto else None,
            maximum=int(said.max_count or 0) if is_auto else None,
            mode=word(said.mode) or USER,
            is_spot=word(said.scale_set_priority) == SPOT,
            is_running=(word(said.power_state and said.power_state.code) or RUNNING)
            == RUNNING,
            zones=tuple(said.availability_zones or ()),
            labels=dict(said.node_labels or {}),
            taints=tuple(said.node_taints or ()),
            reservation_group=str(said.capacity_reservation_group_id or ""),
        )


@dataclass(frozen=True)
class NewPool:
    """A pool as it is asked for; with `maximum` an autoscaler keeps between `minimum` and so many nodes.

    `taints` are such as `sku=gpu:NoSchedule`. `gpu_driver` is Install or None.
    """

    size: str
    count: int = 0
    minimum: int | None = None
    maximum: int | None = None
    zones: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[str, ...] = ()
    reservation_group: str = ""
    gpu_driver: str = "Install"


@dataclass(frozen=True)
class AzureContainerService:
    """Reads clusters and pools, and makes, scales and deletes pools; raises as `session` says."""

    session: AzureSession

    def clusters(self) -> list[ManagedCluster]:
        """Return the AKS clusters of the subscription."""
        rows = self.session.call(lambda: list(self._client.managed_clusters.list()))
        return [shaped(ManagedCluster.of, row) for row in rows]

    def cluster(self, resource_group: str, name: str) -> ManagedCluster | None:
        """Return a cluster, None where there is none of this name."""
        check(resource_group=resource_group, cluster=name)
        told = self.session.read(
            lambda: self._client.managed_clusters.get(resource_group, name)
        )
        return None if told is None else shaped(ManagedCluster.of, told)

    def pools(self, resource_group: str, cluster: str) -> list[AgentPool]:
        """Return the pools of a cluster."""
        check(resource_group=resource_group, cluster=cluster)
        rows = self.session.call(
            lambda: list(self._pools.list(resource_group, cluster))
        )
        return [shaped(AgentPool.of, row) for row in rows]

    def pool(self, resource_group: str, cluster: str, name: str) -> AgentPool | None:
        """Return a pool, None where there is none of this name."""
        told = self._read(resource_group, cluster, name)
        return None if told is None else shaped(AgentPool.of, told)

    def begin_create_pool(
        self, resource_group: str, cluster: str, name: str, pool: NewPool
    ) -> Operation:
        """Make a pool; the same once more is one pool.

        Read it back when it is done: AKS makes a pool without the reservation group, and does not say so, where the
        group has no reservation. PermanentError with code quota, forbidden (the cluster's identity may not use the
        group), immutable or invalid.
        """
        from azure.mgmt.containerservice import models

        is_auto = pool.maximum is not None
        least = pool.minimum or 0
        said = models.AgentPoolManagedClusterAgentPoolProfileProperties(
            vm_size=pool.size,
            mode=USER,
            count=max(pool.count, least) if is_auto else pool.count,
            enable_auto_scaling=is_auto,
            min_count=least if is_auto else None,
            max_count=pool.maximum,
            availability_zones=list(pool.zones) or None,
            node_labels=dict(pool.labels) or None,
            node_taints=list(pool.taints) or None,
            capacity_reservation_group_id=pool.reservation_group or None,
            gpu_profile=models.GPUProfile(driver=pool.gpu_driver)
            if pool.gpu_driver
            else None,
        )
        return self._begin(
            resource_group, cluster, name, models.AgentPool(properties=said)
        )

    def begin_scale_pool(
        self,
        resource_group: str,
        cluster: str,
        name: str,
        *,
        count: int | None = None,
        minimum: int | None = None,
        maximum: int | None = None,
    ) -> Operation:
        """Have so many nodes without an autoscaler, or an autoscaler keep between two numbers.

        What somebody else changed meanwhile is not undone: PermanentError(code="changed_meanwhile"), ask again. A pool
        that is not there is PermanentError(code="not_found").
        """
        told = self._read(resource_group, cluster, name)
        if told is None:
            raise PermanentError(
                f"The cluster {cluster} has no pool {name}.", code="not_found"
            )
        said = told.properties
        if count is not None:
            said.enable_auto_scaling, said.min_count, said.max_count, said.count = (
                False,
                None,
                None,
                count,
            )
        elif maximum is not None:
            low = minimum or 0
            said.enable_auto_scaling, said.min_count, said.max_count = (
                True,
                low,
                maximum,
            )
            said.count = max(low, min(int(said.count or 0), maximum))
        return self._begin(resource_group, cluster, name, told, etag=said.e_tag)

    def begin_delete_pool(
        self, resource_group: str, cluster: str, name: str
    ) -> Operation:
        """Delete a pool with its nodes, which then use no reservation any more; done where there is none."""
        check(resource_group=resource_group, cluster=cluster, pool=name)
        try:
            return self.session.begin(
                lambda polling: self._pools.begin_delete(
                    resource_group, cluster, name, polling=polling
                )
            )
        except PermanentError as error:
            if error.code == "not_found":
                return DONE
            raise

    def _read(self, resource_group: str, cluster: str, name: str) -> Any:
        check(resource_group=resource_group, cluster=cluster, pool=name)
        return self.session.read(lambda: self._pools.get(resource_group, cluster, name))

    def _begin(
        self,
        resource_group: str,
        cluster: str,
        name: str,
        body: Any,
        *,
        etag: str | None = None,
    ) -> Operation:
        check(resource_group=resource_group, cluster=cluster, pool=name)
        # Only where nobody has changed it since it was read.
        headers = {"If-Match": etag} if etag else {}
        return self.session.begin(
            lambda polling: self._pools.begin_create_or_update(
                resource_group, cluster, name, body, polling=polling, headers=headers
            )
        )

    @property
    def _client(self) -> Any:
        from azure.mgmt.containerservice import ContainerServiceClient

        return self.session.client(ContainerServiceClient)

    @property
    def _pools(self) -> Any:
        return self._client.agent_pools


def matching(pools: Iterable[AgentPool], size: str) -> list[AgentPool]:
    """Return the pools of a size, whatever its capitals."""
    return [pool for pool in pools if pool.size.lower() == size.lower()]
