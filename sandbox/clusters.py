"""The world's clusters as running ones: nodes, and who may call with which token."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sandbox.credentials import Credentials
from sandbox.entra.directory import Directory
from sandbox.feature_discovery import gpu_labels
from sandbox.kubernetes import Cluster, Identity, NodePool, NodeSpec
from sandbox.world import ClusterSpec, NodeGroup

ADMIN = "admin"
PORTAL = "quartermaster"
# The service account of the cluster's JupyterHub (deploy/jupyterhub/rights.yaml).
HUB, HUB_NAMESPACE = "hub", "jupyterhub"
AGENT_POOL = "kubernetes.azure.com/agentpool"
Taint = tuple[str, str, str]
GPU_TAINT = ("sku", "gpu", "NoSchedule")
SPOT, SPOT_TAINT = (
    "kubernetes.azure.com/scalesetpriority",
    ("kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule"),
)


def build(
    spec: ClusterSpec,
    directory: Directory,
    credentials: Credentials,
    ca: str,
    state: dict[str, Any] | None,
) -> Cluster:
    """Return a cluster, as it was left when there is a state; people's groups follow the directory."""
    cluster = Cluster(
        spec.name,
        nodes=list(_nodes(spec)),
        pools=_pools(spec),
        state=state,
        ca=ca,
        cilium=spec.cilium,
        queueing=spec.queueing,
    )

    def admit() -> None:
        cluster.tokens.clear()
        cluster.tokens.update(_identities(spec, directory, credentials))

    admit()
    directory.watchers.append(admit)
    return cluster


def token(spec: ClusterSpec, user: str, credentials: Credentials) -> str:
    """Return a user's token for a cluster."""
    return credentials.secret(f"kubernetes/{spec.name}/{user}")


def _identities(
    spec: ClusterSpec, directory: Directory, credentials: Credentials
) -> dict[str, Identity]:
    known = {
        token(spec, ADMIN, credentials): Identity(ADMIN, ("system:masters",)),
        token(spec, PORTAL, credentials): Identity(PORTAL),
        token(spec, HUB, credentials): Identity(
            f"system:serviceaccount:{HUB_NAMESPACE}:{HUB}",
            ("system:serviceaccounts", f"system:serviceaccounts:{HUB_NAMESPACE}"),
        ),
    }
    for person in directory.people.values():
        if directory.enabled[person.oid]:
            groups = tuple(directory.groups_of(person.oid))
            known[token(spec, person.mail, credentials)] = Identity(
                person.mail, groups, person.oid
            )
    return known


def _nodes(spec: ClusterSpec) -> Iterator[NodeSpec]:
    for group in spec.node_groups:
        pool = _pool(spec, group)
        yield from (pool.named(number) for number in range(group.nodes))


def _pools(spec: ClusterSpec) -> list[NodePool]:
    return [_pool(spec, group) for group in spec.node_groups if group.most]


def _pool(spec: ClusterSpec, group: NodeGroup) -> NodePool:
    return node_pool(spec, group, labels_of(group), taints_of(group))


def labels_of(group: NodeGroup) -> dict[str, str]:
    """Return the labels that somebody gave a pool, besides those of AKS."""
    return {"accelerator": group.accelerator} if group.accelerator else {}


def taints_of(group: NodeGroup) -> tuple[Taint, ...]:
    """Return the taints that somebody gave a pool, besides that of spot nodes."""
    return (GPU_TAINT,) if group.gpus else ()


def prefix_of(pool: str, region: str) -> str:
    """Return how the names of a pool's nodes begin."""
    return f"aks-{pool}-{region}-vmss"


def node_pool(
    spec: ClusterSpec,
    group: NodeGroup,
    labels: Mapping[str, str],
    taints: Sequence[Taint],
    zones: Sequence[str] = (),
) -> NodePool:
    """Return a pool of nodes as AKS makes them, in zones such as "1"."""
    region = spec.region
    own = {AGENT_POOL: group.name, "topology.kubernetes.io/region": region}
    own |= gpu_labels(spec, group)
    each = NodeSpec(
        name=prefix_of(group.name, region),
        gpus=group.gpus,
        cpu=str(group.cpu),
        memory=f"{group.memory_mib}Mi",
        instance_type=group.instance_type,
        labels=own | dict(labels) | ({SPOT: "spot"} if group.spot else {}),
        taints=(*taints, *((SPOT_TAINT,) if group.spot else ())),
    )
    spread = tuple(f"{region}-{zone}" for zone in zones)
    return NodePool(each, least=group.nodes, most=group.most, zones=spread)
