"""How many GPUs the nodes of a cluster can give, and when a list of nodes is too short to be believed at once."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.urls import reverse

from fleet.models import Cluster, Flavor, gpus_obtainable
from fleet.versions.reading import versions_of
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message
from provisioning.desired.quantities import counted as as_count

# A short list is believed when it came so many looks running: ten minutes, as a cluster is looked at twice a minute.
LOOKS_UNTIL_BELIEVED = 20
# Fewer nodes than these leave in one look when an autoscaler or an upgrade takes them away.
MANY_NODES = 3
# How long cluster-autoscaler waits for a new node by default (--max-node-provision-time): until then it is starting.
STARTING = timedelta(minutes=15)
# What autoscalers put on a node that they are about to delete.
LEAVING = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")


def doubt(*, before: int, now: int, others: int = 0) -> str:
    """Why a list of so many lasting nodes is not believed after one of `before`; empty when it is. Pure.

    `others` are listed beside them, and come and go with an autoscaler.
    """
    gone = before - now
    if before and not now and others:
        return f"The cluster listed none of the {before} nodes that no autoscaler takes away."
    if before and not now:
        return f"The cluster listed no nodes at all; it had {before}."
    if gone >= MANY_NODES and gone * 2 > before:
        return f"The cluster listed {now} of its {before} nodes."
    return ""


@dataclass
class Tally:
    """What a list of nodes says, GPUs by the flavor's id; `lasting` are the nodes that no autoscaler takes away."""

    ready: Counter[int] = field(default_factory=Counter)
    cordoned: Counter[int] = field(default_factory=Counter)
    lasting: int = 0
    # Those that GPUs of a flavor were counted on, whatever they can give now.
    nodes: dict[int, list[Mapping[str, Any]]] = field(
        default_factory=lambda: defaultdict(list)
    )


def tally(
    nodes: Iterable[Mapping[str, Any]], flavors: Iterable[Flavor], *, now: datetime
) -> Tally:
    """Count the GPUs of each flavor on nodes that are ready, and on those that are cordoned or do not get ready. Pure.

    What a node has of a resource belongs to the first flavor of that resource whose labels it carries: a node may
    offer several MIG profiles, each of them a flavor. A node that has just been added, or is about to be deleted, is
    neither: an autoscaler is at work on it.
    """
    ordered = sorted(flavors, key=lambda f: -len(f.node_labels))
    found, in_pools = Tally(), Counter[int]()
    for node in nodes:
        mine = [f for f in ordered if f.node_labels.items() <= _labels(node).items()]
        pool = next((f for f in mine if f.max_nodes), None)
        if pool is None:
            found.lasting += 1
        else:
            in_pools[pool.pk] += 1
        counted = _counted_as(node, found, now=now)
        if counted is not None:
            _add(counted, found, node, mine)
    found.lasting += sum(min(in_pools[f.pk], f.min_nodes) for f in ordered)
    return found


def _counted_as(
    node: Mapping[str, Any], found: Tally, *, now: datetime
) -> Counter[int] | None:
    if _is_leaving(node):
        return None
    if node.get("spec", {}).get("unschedulable"):
        return found.cordoned
    if _is_ready(node):
        return found.ready
    return None if _is_starting(node, now=now) else found.cordoned


def _add(
    counted: Counter[int],
    found: Tally,
    node: Mapping[str, Any],
    flavors: Iterable[Flavor],
) -> None:
    """Count what a node can give for the first flavor of each resource; `flavors` are those whose labels it carries."""
    status = node.get("status", {})
    can_give, has = status.get("allocatable", {}), status.get("capacity", {})
    owned = set()
    for flavor in flavors:
        if flavor.resource not in owned:
            owned.add(flavor.resource)
            counted[flavor.pk] += as_count(can_give.get(flavor.resource, 0))
            # While its driver is being replaced a node can give nothing, and still is one of the kind.
            if flavor.resource in can_give or flavor.resource in has:
                found.nodes[flavor.pk].append(node)


def count(
    cluster: Cluster, nodes: Sequence[Mapping[str, Any]], *, now: datetime
) -> None:
    """Store how many GPUs there are; of a doubted list the last known numbers stay, and leads are told."""
    known = Cluster.objects.values_list("nodes_seen", "doubted_looks").get(
        pk=cluster.pk
    )
    flavors = list(cluster.flavors.all())
    found = tally(nodes, flavors, now=now)
    reason = doubt(
        before=known[0], now=found.lasting, others=len(nodes) - found.lasting
    )
    if reason and known[1] + 1 < LOOKS_UNTIL_BELIEVED:
        _doubt(cluster, reason, now=now)
        return
    for flavor in flavors:
        ready, cordoned = found.ready[flavor.pk], found.cordoned[flavor.pk]
        nodes = found.nodes[flavor.pk]
        Flavor.objects.filter(pk=flavor.pk).update(
            gpus_ready=ready,
            gpus_cordoned=cordoned,
            gpus_total=gpus_obtainable(ready=ready, cordoned=cordoned),
            gpus_seen_at=now,
            **({"versions": versions_of(nodes), "versions_at": now} if nodes else {}),
        )
    Cluster.objects.filter(pk=cluster.pk).update(
        nodes_seen=found.lasting, capacity_doubt="", doubted_looks=0
    )


@transaction.atomic
def _doubt(cluster: Cluster, reason: str, *, now: datetime) -> None:
    """Keep the numbers; tell the leads at the first of these looks alone."""
    mine = Cluster.objects.filter(pk=cluster.pk)
    is_new = bool(
        mine.filter(doubted_looks=0).update(capacity_doubt=reason, doubted_looks=1)
    )
    if not is_new:
        mine.update(capacity_doubt=reason, doubted_looks=F("doubted_looks") + 1)
        return
    message = Message(
        f"The nodes of {cluster.title} are not believed",
        f"{reason} The GPUs known before are kept: accept what it lists now if it is so, or see why it does not "
        "list all of them.",
        action="Look at the cluster",
    )
    about, link = ("cluster", cluster.pk), reverse("cluster", args=[cluster.name])
    tell_leads(
        NoticeKind.CLUSTER_BRAKED, subject=about, link=link, message=message, now=now
    )


def _labels(node: Mapping[str, Any]) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def _is_leaving(node: Mapping[str, Any]) -> bool:
    taints = node.get("spec", {}).get("taints") or []
    return "deletionTimestamp" in node["metadata"] or any(
        taint["key"] in LEAVING for taint in taints
    )


def _is_starting(node: Mapping[str, Any], *, now: datetime) -> bool:
    made = node["metadata"].get("creationTimestamp")
    return bool(made) and now - datetime.fromisoformat(made) < STARTING


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions") or []
    return any(
        c.get("type") == "Ready" and c.get("status") == "True" for c in conditions
    )
