"""Clusters as pages show them: whether they answer, and how many GPUs of each kind are free."""

from collections.abc import Mapping
from decimal import Decimal
from typing import TypedDict

from django.urls import reverse
from django.utils import timezone

from fleet.models import Cluster, Flavor
from ui.amounts import rate
from ui.parts import Capacity

HEALTH: Mapping[bool | None, tuple[str, str]] = {
    True: ("good", "Answers"),
    False: ("bad", "Does not answer"),
    None: ("waiting", "Not looked at yet"),
}
DELIVERY: Mapping[str, str] = {
    Cluster.Delivery.APPLY: "applied directly",
    Cluster.Delivery.GIT: "through Git",
}
# Of a cluster that only its repository is known of.
UNSEEN: Mapping[bool, tuple[str, str]] = {
    True: ("good", "Repository answers"),
    False: ("bad", "Repository does not answer"),
}
BROKEN: Mapping[str, str] = {
    "API server": "Does not answer",
    "Kueue": "Kueue is down",
    "Kueue's settings": "Kueue is set up otherwise",
    "Volcano": "Volcano is down",
    "Volcano's settings": "Volcano is set up otherwise",
    "Volcano's guards": "Not guarded",
    "Webhooks": "Webhooks are down",
    "Ways out by name": "Names stay shut",
    "Nodes": "No node is ready",
}
AWAY_FOR_TEAMS = (
    "What runs there goes on, and nothing is lost. What is asked for, changed or started there now is done once that "
    "is over; platform leads see it, too"
)
# By the code of a failure: what keeps queues there is none that the portal can use; the portal is not let in.
UNUSABLE = frozenset({"no_kueue", "kueue_too_old", "no_volcano", "volcano_too_old"})
REFUSALS = frozenset({"unauthorized", "forbidden", "http_401", "http_403"})


class Note(TypedDict):
    """A few words in a tone."""

    tone: str
    text: str


class Card(TypedDict):
    """A cluster of the list."""

    cluster: Cluster
    href: str
    tone: str
    word: str
    trouble: str
    announced: str
    counts: list[Note]
    delivery: str
    bars: list[Capacity]


def card(cluster: Cluster, *, manages: bool) -> Card:
    """A cluster of the list; `cluster` comes with its flavors prefetched."""
    tone, word = health(cluster)
    return {
        "cluster": cluster,
        "href": reverse("cluster", args=[cluster.name]),
        "tone": tone,
        "word": word,
        "trouble": trouble(cluster, manages=manages),
        "announced": cluster.announces(timezone.now()),
        "counts": counts(cluster),
        "delivery": DELIVERY[cluster.delivery],
        "bars": (
            [bar(flavor) for flavor in cluster.flavors.all()]
            if cluster.written_off_at is None
            else []
        ),
    }


def counts(cluster: Cluster) -> list[Note]:
    """What stands there in a few words, each with the tone of what it means; `cluster` comes counted."""
    here, wrong = (
        getattr(cluster, name) for name in ("teams_here", "tenancies_not_true")
    )
    found: list[Note] = [
        {
            "tone": "",
            "text": f"{here} team{'' if here == 1 else 's'} here"
            if here
            else f"No team is here {'any more' if cluster.written_off_at else 'yet'}",
        }
    ]
    if wrong:
        found.append({"tone": "moving", "text": f"{wrong} not as wanted"})
    return found


def health(cluster: Cluster) -> tuple[str, str]:
    """The badge: whether it answers, refuses us, takes no teams, or is gone for good."""
    if cluster.written_off_at is not None:
        return "past", "Written off"
    if cluster.is_away and cluster.failure_code in UNUSABLE:
        return "bad", "Cannot be used"
    if cluster.is_away and cluster.failure_code in REFUSALS:
        return "bad", "Refuses us"
    if cluster.is_away and cluster.has_answered:
        return "bad", "Cannot be written to"
    if cluster.reachable and cluster.broken_parts:
        return "bad", BROKEN[cluster.broken_parts[0].part]
    if not cluster.enabled and not cluster.is_away:
        return "past", "Takes no teams"
    if cluster.reachable is not None and not cluster.is_observed:
        return UNSEEN[cluster.reachable]
    return HEALTH[cluster.reachable]


def how_away(cluster: Cluster) -> str:
    """What one that is away does, to be said behind its name: "does not answer", "refuses the portal"."""
    word = health(cluster)[1]
    return (
        "refuses the portal"
        if word == "Refuses us"
        else f"{word[:1].lower()}{word[1:]}"
    )


def trouble(cluster: Cluster, *, manages: bool) -> str:
    """What to tell of a cluster that is away; empty when all is well or it is written off.

    What a client library said helps whom it falls to mend, who `manages` clusters; others ask what becomes of their
    work.
    """
    if not cluster.is_away or cluster.written_off_at:
        return ""
    return cluster.message if manages else f"{AWAY_FOR_TEAMS}."


def bar(flavor: Flavor, *, asked: int = 0, busy: Decimal | None = None) -> Capacity:
    """The capacity bar of a kind of GPU; `asked` is what waits for a decision, `busy` percent of what is held."""
    over = flavor.allocated - flavor.gpus_total
    notes = [f"{rate(flavor.price_per_gpu_hour)} per GPU-hour"]
    notes += [_ready(flavor)] if flavor.can_grow_to else []
    notes += [_held_beyond(flavor, over)] if over > 0 else []
    notes += (
        [f"{busy:.0f} % of what is held was busy today"] if busy is not None else []
    )
    if not flavor.cluster.is_observed:
        notes.append(_known_from(flavor))
    notes += [flavor.driver_words] if flavor.driver_words else []
    notes += [_no_node(flavor)] if _has_no_node(flavor) else []
    notes += [] if flavor.is_offered else ["not offered now"]
    return {
        "label": flavor.words,
        "unit": "GPU" if flavor.gpus_at_most == 1 else "GPUs",
        "total": flavor.gpus_at_most,
        "used": min(flavor.allocated, flavor.gpus_total),
        "blocked": flavor.gpus_at_most - flavor.gpus_total,
        "asked": asked,
        "note": " · ".join(notes),
    }


def _has_no_node(flavor: Flavor) -> bool:
    """Whether nodes were counted and none is of this kind, which no autoscaler will change."""
    was_counted = flavor.cluster.is_observed and flavor.gpus_seen_at is not None
    return was_counted and not (
        flavor.can_grow_to or flavor.gpus_ready or flavor.gpus_cordoned
    )


def _no_node(flavor: Flavor) -> str:
    """What nodes of this kind would be labelled: where a label is mistyped, that is how people find it."""
    labels = ", ".join(f"{key}={value}" for key, value in flavor.node_labels.items())
    return f"no node with GPUs has {labels or 'its labels'}"


def _ready(flavor: Flavor) -> str:
    """What of a pool that grows is ready; one with more nodes than its maximum is as large as it is."""
    if flavor.gpus_ready >= flavor.gpus_at_most:
        return "all ready now"
    return f"{flavor.gpus_ready} ready now, {flavor.grows}"


def _held_beyond(flavor: Flavor, over: int) -> str:
    """How many GPUs are held that cannot be had now, and why."""
    if flavor.allocated <= flavor.gpus_at_most:
        return f"{over} held on nodes that are cordoned or not ready"
    return (
        f"{over} held beyond what it grows to"
        if flavor.can_grow_to
        else f"{over} held on nodes that are gone"
    )


def _known_from(flavor: Flavor) -> str:
    """How it is known how many GPUs there are on a cluster that the portal does not see."""
    if flavor.gpus_seen_at is not None:
        return "counted when the portal still saw the nodes"
    return (
        "told by platform leads, not counted"
        if flavor.gpus_total
        else "nobody has told how many there are"
    )
