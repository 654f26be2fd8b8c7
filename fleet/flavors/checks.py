"""What a kind of GPU is refused, each at its field."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.db import models

from fleet import dedicated_nodes
from fleet.models import Flavor
from fleet.names import (
    LABEL_KEY,
    LABEL_VALUE,
    RESOURCE,
    fits,
)
from web.refusals import BadInput, Conflict

NODE_POOL = re.compile(r"[a-z][a-z0-9]{0,11}", re.ASCII)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
LACKS: Mapping[str, str] = {
    "node_taints": "Nodes for one team alone need a taint (NoSchedule or NoExecute) that no other kind of GPU here "
    "has: without it others' jobs run on them.",
    "node_labels": "Nodes for one team alone need a label that no other kind of GPU here has: without it they are "
    "not told apart from others' nodes.",
}
TAKES: Mapping[str, str] = {
    "node_taints": "{own} is one team's alone, and this taint keeps others off: no other kind has it.",
    "node_labels": "{own} is one team's alone, and these are the labels of its nodes: no other kind has them.",
}
# Prices of one kind of GPU that differ more are not believed at once.
MOST_TIMES = 10


def check_told(flavor: Flavor, changed: Mapping[str, Any]) -> None:
    """Refuse to be told how many GPUs there are where they are counted, or fewer than are held."""
    if "gpus_total" not in changed:
        return
    if flavor.cluster.is_observed:
        raise BadInput(
            "The portal counts the GPUs of this cluster's nodes.",
            code="counted",
            field="gpus_total",
        )
    if flavor.gpus_total < flavor.allocated:
        raise BadInput(
            f"{flavor.allocated} are held.",
            code="below_what_is_held",
            field="gpus_total",
        )


def check_pool(flavor: Flavor, changed: Mapping[str, Any]) -> None:
    """Refuse a minimum over the maximum, an autoscaler where nobody sees what it does, and no pool of AKS."""
    if changed.get("node_pool") and not NODE_POOL.fullmatch(flavor.node_pool):
        raise BadInput(
            "The name of a node pool of AKS has at most 12 small letters and digits, a letter first.",
            code="bad_name",
            field="node_pool",
        )
    if changed.get("node_pool") and not flavor.cluster.azure_id:
        raise BadInput(
            f"Give the Azure resource id of {flavor.cluster.title} first, on its page.",
            code="not_in_azure",
            field="node_pool",
        )
    if flavor.min_nodes > flavor.max_nodes:
        raise BadInput(
            "The least number of nodes is not over the largest.",
            code="out_of_range",
            field="min_nodes",
        )
    if changed.get("max_nodes") and not flavor.cluster.is_observed:
        raise BadInput(
            "The portal does not see this cluster's nodes: say how many GPUs there are at most, as their number.",
            code="not_observed",
            field="max_nodes",
        )


def check_price_moved(before: Decimal, after: Decimal) -> None:
    """Refuse a price that has moved so far that it may be mistyped."""
    if before / MOST_TIMES <= after <= before * MOST_TIMES:
        return
    what = (
        f"{after / before:,.0f} times"
        if after > before
        else f"1/{before / after:,.0f} of"
    )
    raise BadInput(
        f"This is {what} the price of now, ${before.normalize():f}. Say that it is meant.",
        code="doubtful_price",
        field="price_per_gpu_hour",
    )


def check_free_to_change(flavor: Flavor, changed: Mapping[str, Any]) -> None:
    """Refuse to rename or give away GPUs that are held or booked: what is granted stays what it was."""
    granted = flavor.allocations.filter(ended_at=None)
    booked = granted.filter(begun_at=None).aggregate(all=models.Sum("gpus", default=0))
    count = flavor.allocated + booked["all"]
    if "resource" in changed and count:
        raise Conflict(
            f"{count} of these are held or booked. What they are can change when none is.",
            code="held",
            field="resource",
        )
    others = granted.exclude(team=flavor.dedicated_to_id)
    if flavor.dedicated_to_id is not None and others.exists():
        raise Conflict(
            "Other teams hold or have booked some of these. They end, are given back or are cancelled before the nodes "
            "can be one team's own.",
            code="held",
            field="dedicated_to",
        )


def check_apart(flavor: Flavor) -> None:
    """Refuse nodes of one's own that others' work may run on, and to lead others' work to such nodes."""
    fleet = list(flavor.cluster.flavors.all())
    lacks = (
        dedicated_nodes.lacking(flavor, fleet)
        if flavor.dedicated_to_id is not None
        else ""
    )
    if lacks:
        raise BadInput(LACKS[lacks], code="not_apart", field=lacks)
    taken = dedicated_nodes.taken_by(flavor, fleet)
    if taken is not None:
        own, lacks = taken
        raise BadInput(TAKES[lacks].format(own=own.name), code="not_apart", field=lacks)


def check_nodes(flavor: Flavor) -> None:
    """Refuse labels, taints and a resource that no node can have."""
    if not fits(RESOURCE, flavor.resource):
        raise BadInput(
            "Nodes count GPUs as nvidia.com/gpu, or as a MIG profile such as nvidia.com/mig-1g.10gb.",
            code="bad_resource",
            field="resource",
        )
    labels, taints = flavor.node_labels, flavor.node_taints
    if not isinstance(labels, dict) or not all(
        _is_label(key, value) for key, value in labels.items()
    ):
        raise BadInput(
            "Labels are names and values as nodes carry them.",
            code="bad_label",
            field="node_labels",
        )
    if not isinstance(taints, list) or not all(_is_taint(taint) for taint in taints):
        raise BadInput(
            f"A taint has a key, a value and an effect ({', '.join(EFFECTS)}).",
            code="bad_taint",
            field="node_taints",
        )


def _is_label(key: object, value: object) -> bool:
    texts = isinstance(key, str) and isinstance(value, str)
    return texts and bool(
        LABEL_KEY.fullmatch(str(key)) and LABEL_VALUE.fullmatch(str(value))
    )


def _is_taint(taint: object) -> bool:
    if not isinstance(taint, dict) or not {"key", "effect"} <= set(taint) <= {
        "key",
        "value",
        "effect",
    }:
        return False
    return (
        _is_label(taint["key"], taint.get("value", "")) and taint["effect"] in EFFECTS
    )
