"""The Kubernetes clusters behind the managed clusters: whose nodes are the virtual machines of this subscription."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sandbox.azure import sizes
from sandbox.azure.state import Resource
from sandbox.clusters import AGENT_POOL, Taint, node_pool, prefix_of
from sandbox.kubernetes import Cluster, NodePool
from sandbox.kubernetes.autoscaling import ZONE
from sandbox.kubernetes.binding import NODE
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.seeds import node
from sandbox.world import GIB, ClusterSpec, NodeGroup


@dataclass(frozen=True)
class Machine:
    """A node as a virtual machine; `zone` is empty for a regional one."""

    name: str
    zone: str


class Fleet:
    """Adds and takes nodes of clusters by the cluster's name."""

    def __init__(
        self, clusters: Mapping[str, Cluster], specs: Sequence[ClusterSpec]
    ) -> None:
        self._clusters = dict(clusters)
        self.specs = {spec.name: spec for spec in specs if spec.name in self._clusters}

    def machines(self, cluster: str, pool: str) -> list[Machine]:
        """Return the nodes of a pool, by name."""
        return sorted(
            _machines(self._clusters[cluster], pool), key=lambda one: one.name
        )

    def begin(self, cluster: str) -> None:
        """Have the autoscaler look after no pool, until it is told of each."""
        self._clusters[cluster].controllers.autoscaler.clear()

    def keep(self, cluster: str, pool: Resource) -> None:
        """Have the autoscaler look after a pool by its limits, or leave it alone."""
        controllers = self._clusters[cluster].controllers
        if pool["properties"].get("enableAutoScaling"):
            controllers.autoscaler.keep(self._pool(cluster, pool))
        else:
            controllers.autoscaler.leave(
                prefix_of(pool["name"], self.specs[cluster].region)
            )
        controllers.settle()

    def resize(self, cluster: str, pool: Resource, count: int) -> None:
        """Add nodes, or take the newest away, until there are so many."""
        kubernetes, made = self._clusters[cluster], self._pool(cluster, pool)
        there = [one.name for one in self.machines(cluster, pool["name"])]
        free = (
            number for number in range(10_000) if made.named(number).name not in there
        )
        for _ in range(count - len(there)):
            _add(kubernetes, made, next(free))
        for name in there[count:]:
            kubernetes.controllers.interruptions.take(name)
        kubernetes.controllers.settle()

    def forget(self, cluster: str, pool: Resource) -> None:
        """Take all nodes of a pool that is no more."""
        self._clusters[cluster].controllers.autoscaler.leave(
            prefix_of(pool["name"], self.specs[cluster].region)
        )
        self.resize(cluster, pool, 0)

    def ask(self, permits: Callable[[str, Sequence[str]], bool]) -> None:
        """Have every autoscaler ask whether it gets one node more of each of these pools of its cluster."""

        def asking(name: str) -> Callable[[Sequence[NodePool]], bool]:
            return lambda pools: permits(
                name, [str(pool.each.labels[AGENT_POOL]) for pool in pools]
            )

        for name, cluster in self._clusters.items():
            cluster.controllers.autoscaler.permits = asking(name)

    def wake(self) -> None:
        """Have the autoscalers look again at what waits."""
        for cluster in self._clusters.values():
            cluster.controllers.autoscaler.wake()
            cluster.controllers.settle()

    def _pool(self, cluster: str, pool: Resource) -> NodePool:
        said, spec = pool["properties"], self.specs[cluster]
        is_auto = bool(said.get("enableAutoScaling"))
        group = replace(
            _group(spec, pool),
            nodes=int(said.get("minCount") or 0) if is_auto else 0,
            most=int(said.get("maxCount") or 0) if is_auto else 0,
            spot=said.get("scaleSetPriority") == "Spot",
        )
        taints = [_taint(text) for text in said.get("nodeTaints") or []]
        zones = said.get("availabilityZones") or []
        return node_pool(spec, group, said.get("nodeLabels") or {}, taints, zones)


def _group(spec: ClusterSpec, pool: Resource) -> NodeGroup:
    """What each node has: as the world says of its own node groups, else as the size has it."""
    name, size_name = str(pool["name"]), str(pool["properties"]["vmSize"])
    for group in spec.node_groups:
        if (group.name, group.instance_type) == (name, size_name):
            return group
    size = sizes.find(size_name)
    if size is None:
        return NodeGroup(name, 0, instance_type=size_name)
    memory = size.memory_gib * GIB
    return NodeGroup(name, 0, size.gpus, "", size.name, size.vcpus, memory)


def _add(cluster: Cluster, pool: NodePool, number: int) -> None:
    made = node(pool.named(number), timestamp())
    metadata = {
        **made["metadata"],
        "uid": str(uuid.uuid4()),
        "creationTimestamp": timestamp(),
    }
    cluster.store.put(NODE, {**made, "metadata": metadata})


def _machines(cluster: Cluster, pool: str) -> Iterator[Machine]:
    for one in cluster.store.objects(NODE):
        labels = one["metadata"].get("labels") or {}
        if labels.get(AGENT_POOL) == pool:
            yield Machine(
                str(one["metadata"]["name"]),
                str(labels.get(ZONE, "")).rpartition("-")[2],
            )


def _taint(text: str) -> Taint:
    pair, _, effect = text.partition(":")
    key, _, value = pair.partition("=")
    return key, value, effect
