"""How many GPUs the nodes of a cluster can give, and when a list of nodes is too short to be believed at once."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.urls import reverse

from accounts import people
from accounts.roles import Permission
from fleet.models import Cluster, Flavor
from notices.actions import tell, tell_channels
from notices.kinds import NoticeKind
from notices.message import Message

# A short list is believed when it came so many looks running: ten minutes, as a cluster is looked at twice a minute.
LOOKS_UNTIL_BELIEVED = 20
# Fewer nodes than these leave in one look when an autoscaler or an upgrade takes them away.
MANY_NODES = 3


def doubt(*, before: int, now: int) -> str:
    """Why a list of so many nodes is not believed after one of `before`; empty when it is. Pure."""
    gone = before - now
    if before and not now:
        return f"The cluster listed no nodes at all; it had {before}."
    if gone >= MANY_NODES and gone * 2 > before:
        return f"The cluster listed {now} of its {before} nodes."
    return ""


def gpus_by_flavor(nodes: Iterable[Mapping[str, Any]], flavors: Iterable[Flavor]) -> Counter[int]:
    """GPUs that the ready, schedulable nodes of each flavor can give, by the flavor's id.

    What a node has of a resource belongs to the first flavor of that resource whose labels it carries: a node may
    offer several MIG profiles, each of them a flavor.
    """
    ordered = sorted(flavors, key=lambda f: -len(f.node_labels))
    resources = sorted({flavor.resource for flavor in ordered})
    found: Counter[int] = Counter()
    for node in nodes:
        if node.get("spec", {}).get("unschedulable") or not _is_ready(node):
            continue
        marks = (node["metadata"].get("labels") or {}).items()
        can_give = node.get("status", {}).get("allocatable", {})
        for resource in resources:
            fit = (f for f in ordered if f.resource == resource and f.node_labels.items() <= marks)
            owner = next(fit, None)
            if owner is not None:
                found[owner.pk] += int(can_give.get(resource, 0))
    return found


def count(cluster: Cluster, nodes: Sequence[Mapping[str, Any]], *, now: datetime) -> None:
    """Store how many GPUs there are; of a doubted list the last known numbers stay, and leads are told."""
    known = Cluster.objects.values_list("nodes_seen", "doubted_looks").get(pk=cluster.pk)
    reason = doubt(before=known[0], now=len(nodes))
    if reason and known[1] + 1 < LOOKS_UNTIL_BELIEVED:
        _doubt(cluster, reason, now=now)
        return
    flavors = list(cluster.flavors.all())
    found = gpus_by_flavor(nodes, flavors)
    for flavor in flavors:
        Flavor.objects.filter(pk=flavor.pk).update(gpus_total=found[flavor.pk], gpus_seen_at=now)
    Cluster.objects.filter(pk=cluster.pk).update(nodes_seen=len(nodes), capacity_doubt="", doubted_looks=0)


@transaction.atomic
def _doubt(cluster: Cluster, reason: str, *, now: datetime) -> None:
    """Keep the numbers; tell the leads at the first of these looks alone."""
    mine = Cluster.objects.filter(pk=cluster.pk)
    is_new = bool(mine.filter(doubted_looks=0).update(capacity_doubt=reason, doubted_looks=1))
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
    leads = people.holding(Permission.MANAGE_CLUSTERS)
    tell(NoticeKind.CLUSTER_BRAKED, to=leads, subject=about, link=link, message=message, now=now)
    tell_channels(NoticeKind.CLUSTER_BRAKED, subject=about, link=link, message=message, now=now)


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions") or []
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
