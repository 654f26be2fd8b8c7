"""Whether the nodes of a kind of GPU that is one team's alone keep everybody else's work off.

What runs on another kind of GPU tolerates that kind's taints and goes where its labels are; what asks for no GPU goes
wherever no taint is. So nodes of one's own need a taint that nobody else tolerates, and a label that no others have.
"""

from collections.abc import Collection
from typing import Any

from fleet.models import Flavor

# Kubernetes keeps pods off by these; the third effect is a wish.
HARD = ("NoSchedule", "NoExecute")


def lacking(own: Flavor, fleet: Collection[Flavor]) -> str:
    """What a team's own kind of GPU lacks among those of its cluster: `node_taints`, `node_labels`, or nothing."""
    others = [
        one
        for one in fleet
        if one.pk != own.pk and one.dedicated_to_id != own.dedicated_to_id
    ]
    tolerated = {_mark(taint) for one in others for taint in one.node_taints}
    if not any(
        taint["effect"] in HARD and _mark(taint) not in tolerated
        for taint in own.node_taints
    ):
        return "node_taints"
    theirs = {item for one in others for item in one.node_labels.items()}
    return "" if own.node_labels.items() - theirs else "node_labels"


def taken_by(new: Flavor, fleet: Collection[Flavor]) -> tuple[Flavor, str] | None:
    """The first kind that is a team's alone, and would be so no longer beside `new`, with what it would lack."""
    rest = [one for one in fleet if one.pk != new.pk]
    for own in rest:
        if own.dedicated_to_id is not None and not lacking(own, rest):
            lacks = lacking(own, [*rest, new])
            if lacks:
                return own, lacks
    return None


def _mark(taint: dict[str, Any]) -> tuple[str, str, str]:
    return taint["key"], taint.get("value", ""), taint["effect"]
