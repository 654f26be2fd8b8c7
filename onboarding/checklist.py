"""The list of a tenancy's objects as the checklist part shows it: wanted, standing, failed and why."""

from collections.abc import Mapping
from datetime import datetime

from accounts.models import User
from accounts.roles import Permission
from fleet.models import Cluster
from fleet.presenting import how_away, trouble
from provisioning.desired.manifests import tenancy_objects
from provisioning.models import Tenancy
from provisioning.words import plain
from ui.parts import Checklist, ChecklistItem

TONES: Mapping[str, tuple[str, str]] = {
    "true": ("good", "Ready"),
    "changed": ("waiting", "Changed"),
    "failed": ("bad", "Failed"),
    "waiting": ("waiting", "Next"),
    "committed": ("good", "Committed"),
}
# How a pass ends that has committed what is wanted: its message names the commit and what it waits for.
COMMITTED = ("Committed", "WaitingForMerge", "WaitingForSync")


def checklist(tenancy: Tenancy, *, title: str, retry: str = "") -> Checklist:
    """Every object of the newest desired state; one that was seen in an older one is shown as it was seen then.

    `retry` is where a failed line posts to; leave it empty for people who may not. What nobody observes is `done` when
    it is committed; what is delivered by Git comes with a line about its commit.
    """
    seen = {(row["kind"], row["name"]): row for row in tenancy.objects_seen}
    items = [
        _item(
            manifest["kind"],
            manifest["metadata"]["name"],
            seen,
            tenancy=tenancy,
            retry=retry,
        )
        for manifest in (tenancy_objects(tenancy.desired) if tenancy.spec else [])
    ]
    by_git = tenancy.cluster.delivery == tenancy.cluster.Delivery.GIT
    return {
        "title": title,
        "looked_at": _looked_at(tenancy),
        "items": items,
        "done": "ready" if tenancy.cluster.is_observed else "committed",
        "commit": tenancy.ready["message"]
        if by_git and tenancy.ready["reason"] in COMMITTED
        else "",
    }


def _item(
    kind: str,
    name: str,
    seen: Mapping[tuple[str, str], Mapping[str, str]],
    *,
    tenancy: Tenancy,
    retry: str,
) -> ChecklistItem:
    row = seen.get((kind, name))
    tone, word = _state(row, tenancy)
    failed = tone == "bad"
    return {
        "kind": kind,
        "plain": plain(kind, name),
        "name": name,
        "tone": tone,
        "word": word,
        "since": datetime.fromisoformat(row["since"]) if row else None,
        "cause": row["message"]
        if row and (failed or row["state"] == "changed")
        else "",
        "explain": tenancy.explanation if failed else "",
        "retry": retry if failed else "",
    }


def _looked_at(tenancy: Tenancy) -> datetime | None:
    """When its objects were seen last, which no look in vain makes newer."""
    looked, contact = tenancy.last_looked_at, tenancy.cluster.last_contact_at
    if looked is None or contact is None or not tenancy.cluster.is_away:
        return looked
    return min(looked, contact)


def _state(row: Mapping[str, str] | None, tenancy: Tenancy) -> tuple[str, str]:
    if row is None:
        return TONES["waiting"]
    is_newest = tenancy.observed_generation == tenancy.generation
    # Where nobody can look now, they are shown as they were seen last.
    is_behind = not is_newest and not tenancy.cluster.is_away
    # Before the first pass that ended well there is no older state: what was seen was seen as it is wanted.
    if (
        row["state"] in ("true", "committed")
        and is_behind
        and tenancy.observed_generation
    ):
        # It stands as it was wanted before; whether that is still what is wanted is looked at now.
        return ("moving", "Looking")
    return TONES[row["state"]]


def trouble_of(tenancy: Tenancy, listed: Checklist) -> str:
    """What keeps all of it from being looked after; empty where an object's line says it, or the cluster is away."""
    is_said = tenancy.cluster.is_away or any(
        item["tone"] == "bad" for item in listed["items"]
    )
    has_stopped = tenancy.ready["reason"] in ("Refused", "WillTryAgain") and not is_said
    if not tenancy.parked_at and not has_stopped:
        return ""
    return f"{tenancy.ready['message']} {tenancy.explanation}"


def away_words(cluster: Cluster, *, by: User) -> str:
    """That a cluster is away, and what came of the last look at it, or what it means to a team; else empty."""
    manages = by.may(Permission.MANAGE_CLUSTERS)
    told = trouble(cluster, manages=manages)
    between = ":" if manages else "."
    return f"{cluster.title} {how_away(cluster)}{between} {told}" if told else ""
