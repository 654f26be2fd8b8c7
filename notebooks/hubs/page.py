"""What the pages of hubs show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.urls import reverse

from fleet.models import Cluster
from notebooks.hubs.models import Hub
from notebooks.profiles.idle import Reclaim
from notebooks.servers.models import NotebookServer
from notebooks.servers.savings import saved_on
from ui.amounts import hours, usd
from ui.parts import Badge, Cell, Fact, Row

COLUMNS = ["Cluster", "State", "Address", "Version", "Idle GPUs", "Observed"]
NOT_CONNECTED: Badge = {"tone": "past", "word": "Not connected"}
STATES: dict[bool | None, Badge] = {
    None: {"tone": "waiting", "word": "Not observed yet"},
    True: {"tone": "good", "word": "Answers"},
    False: {"tone": "bad", "word": "Cannot be used"},
}
TENTH = Decimal("0.1")
NO_KEY: Badge = {"tone": "waiting", "word": "Has no key"}


@dataclass(frozen=True, kw_only=True)
class Untold:
    """A notebook of which nobody can tell since when it is idle."""

    title: str
    href: str
    since: datetime | None


@dataclass(frozen=True, kw_only=True)
class IdleUnknown:
    """That nobody can tell whether notebooks are idle, and which."""

    text: str
    servers: Sequence[Untold]


def clusters_with_hubs() -> list[tuple[Cluster, Hub | None]]:
    """Every cluster that is not written off, with its hub; two queries."""
    hubs = {one.pk: one for one in Hub.objects.all()}
    return [(one, hubs.get(one.pk)) for one in Cluster.objects.not_written_off()]


def rows_of(found: Iterable[tuple[Cluster, Hub | None]]) -> list[Row]:
    """The list: every cluster, connected or not."""
    return [_row(cluster, hub) for cluster, hub in found]


def badge_of(hub: Hub | None) -> Badge:
    """A hub's state as a badge; None is none."""
    if hub is None:
        return NOT_CONNECTED
    return NO_KEY if hub.reachable and not hub.key_prefix else STATES[hub.reachable]


def facts_of(hub: Hub) -> list[Fact]:
    """What is known of a hub, as a list of names and values."""
    return [
        {
            "label": "Version",
            "text": f"JupyterHub {hub.version}" if hub.version else "Not known yet",
        },
        {"label": "Observed", "at": hub.looked_at}
        if hub.looked_at
        else {"label": "Observed", "text": "Not yet"},
        {"label": "Usernames known", "text": str(hub.accounts.count())},
    ]


def saved_of(hub: Hub, now: datetime) -> str:
    """What stopping idle notebooks has freed, in a sentence; empty where none was, and none is."""
    found = saved_on(hub.cluster_id, now=now)
    if not found.stops:
        return (
            "None was stopped in the last 30 days." if hub.reclaim == Reclaim.ON else ""
        )
    times = "One was" if found.stops == 1 else f"{found.stops:,} were"
    freed = (
        f"{hours(found.gpu_hours.quantize(TENTH))} for others, worth {usd(found.usd)}"
    )
    return f"{times} stopped in the last 30 days, which freed {freed}."


def idle_unknown_of(hub: Hub, now: datetime) -> IdleUnknown | None:
    """The notebooks of which nobody can tell whether they are idle, in a sentence with links; None without any."""
    servers = idle_unknown_on(hub, now=now)
    if not servers:
        return None
    many = len(servers) != 1
    count = f"{len(servers)} notebooks are" if many else "1 notebook is"
    whose = "their GPUs compute. They are" if many else "its GPUs compute. It is"
    return IdleUnknown(
        text=f"Nobody can tell whether {count} idle: the cluster’s Prometheus does not say whether {whose} not "
        "stopped for being unused until it does.",
        servers=[
            Untold(
                title=one.title,
                href=reverse("notebook", args=[one.pk]),
                since=one.gpu_measured_at or one.ready_at,
            )
            for one in servers
        ],
    )


def exempt_on(hub: Hub, *, now: datetime) -> Sequence[NotebookServer]:
    """The notebooks of a hub that platform leads exempt from idle stops, the next end first; a query."""
    rows = NotebookServer.objects.exempt(now).filter(tenancy__cluster=hub.cluster_id)
    return list(
        rows.select_related("exempt_by", "owner").order_by("exempt_until", "pk")
    )


def idle_unknown_on(hub: Hub, *, now: datetime) -> Sequence[NotebookServer]:
    """The notebooks that a hub would stop when they are idle, and of which nobody can tell it; a query."""
    if hub.reclaim == Reclaim.OFF:
        return []
    return list(
        NotebookServer.objects.unmeasured(now)
        .filter(tenancy__cluster=hub.cluster_id)
        .order_by("pk")
    )


def _row(cluster: Cluster, hub: Hub | None) -> Row:
    badge = badge_of(hub)
    state: Cell = {
        "tone": badge["tone"],
        "word": badge["word"],
        "sub": hub.message if hub else "",
    }
    return {
        "cells": [
            {"text": cluster.title, "href": reverse("hub", args=[cluster.name])},
            state,
            hub.address if hub else "–",
            (hub.version if hub else "") or "–",
            hub.get_reclaim_display() if hub else "–",
            hub.looked_at if hub and hub.looked_at else "–",
        ]
    }
