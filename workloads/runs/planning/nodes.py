"""Whether the nodes of a cluster have room now for the pods of a run whose GPUs its queue would grant at once."""

from collections.abc import Iterable, Sequence

from fleet.models import Flavor
from fleet.names import profile_of
from ui.parts import Verdict
from workloads.models import ClusterObject
from workloads.observed import Node
from workloads.reading.pods import nodes_of
from workloads.runs.planning.pools import Pool

NO_ROOM = "It gets its GPUs, and waits for room on a node"
GROWS = "It starts once the cluster has added nodes"


def nodes_as_seen(cluster: int, flavors: Iterable[Flavor]) -> Sequence[Node]:
    """The nodes of some flavors of a cluster, with what pods hold on them, as last seen; two queries, no cluster asked.

    A node is of the first flavor whose labels it has, so these are all of the cluster's.
    """
    flavors = list(flavors)
    copies = ClusterObject.objects.filter(cluster=cluster)
    bodies = list(copies.filter(kind="Node").values_list("body", flat=True))
    labels = {one.name: one.node_labels for one in flavors}
    profiles = {one.name: profile_of(one.resource) for one in flavors}
    names = {one.name for one in nodes_of(bodies, (), labels, profiles) if one.flavor}
    if not names:
        return ()
    pods = copies.filter(kind="Pod", body__spec__nodeName__in=sorted(names))
    return nodes_of(bodies, pods.values_list("body", flat=True), labels, profiles)


def on_nodes(
    found: Verdict,
    pool: Pool,
    nodes: Iterable[Node],
    *,
    each: int,
    pods: int,
    is_together: bool = True,
) -> Verdict:
    """The answer for so many pods with so many GPUs each, whose quota is free, once the nodes have been looked at.

    Kueue and Volcano's queues count GPUs and not nodes: what is let in can wait for one with enough of them free. Pods
    that are not `is_together`, such as the trials of a sweep, begin one by one: room for one of them is enough.
    """
    own = [one for one in nodes if one.flavor == pool.kind.name]
    fit = sum(one.free // each for one in own) if each else pods
    # A flavor without a node was not read yet, or has scaled to zero: what is not known is possible.
    if fit >= pods or not own or (fit and not is_together):
        return found
    # Of nodes that are being serviced nothing is counted as there, as in what the cluster can have.
    there = sum(one.gpus for one in own if one.is_ready and not one.is_cordoned)
    can_grow = fit + _room_on_new_nodes(pool, there=there, each=each) >= pods
    wanted = f"{each} × {pool.title}"
    if pods == 1:
        most = max(one.free for one in own)
        now = f"no node has {wanted} free now: the most on one is {most}"
    else:
        those = f"{fit} of its {pods} pods" if fit else "none of its pods"
        now = f"the nodes have room for {those} now, with {wanted} each"
    then = (
        "The cluster can add nodes, which takes some minutes."
        if can_grow
        else f"It starts when a node has room for it{_with_fewer(each)}."
    )
    return {
        "tone": "waiting",
        "sentence": GROWS if can_grow else NO_ROOM,
        "detail": f"{found['detail']} But {now}. {then}",
        "rules": [],
    }


def _room_on_new_nodes(pool: Pool, *, there: int, each: int) -> int:
    """How many pods with so many GPUs each find room on the nodes that the cluster can add; a pod is on one node."""
    nodes = max((pool.on_cluster or 0) - there, 0) // pool.per_node
    return nodes * (pool.per_node // each)


def _with_fewer(each: int) -> str:
    return "; with fewer GPUs in a pod it may fit sooner" if each > 1 else ""
