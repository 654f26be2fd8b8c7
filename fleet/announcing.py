"""Telling the people of a cluster's teams what a platform lead announces there, such as when it is maintained."""

from datetime import datetime

from django.db.models import QuerySet
from django.urls import reverse

from accounts.models import Team, User
from fleet.models import Cluster
from notices.actions import take_back, tell, tell_channels
from notices.kinds import NoticeKind
from notices.message import Message
from ui.amounts import moment

ACTION = "Look at the cluster"


def teams_on(cluster: Cluster) -> QuerySet[Team]:
    """The teams that are on a cluster, or are leaving it."""
    rows = cluster.tenancies.exclude(stage="gone")
    return Team.objects.filter(pk__in=rows.values("team"))


def tell_closed_or_open(cluster: Cluster, *, now: datetime) -> None:
    """Tell members of teams on the cluster that it takes no new requests from now on, or takes them again."""
    message = (
        Message(
            f"{cluster.title} takes requests again",
            "What your team holds there can be kept longer, and more can be asked for.",
            action=ACTION,
        )
        if cluster.enabled
        else Message(
            f"{cluster.title} takes no new requests",
            "What your team holds there goes on until it ends, and is not kept longer. Ask for GPUs elsewhere.",
            action=ACTION,
        )
    )
    _tell_members(cluster, "cluster_use", message, now=now)


def tell_announced(cluster: Cluster, *, now: datetime) -> None:
    """Tell members of teams on the cluster, and channels; mails of the announcement before that wait are not sent."""
    until = cluster.announced_until
    if not cluster.announcement or (until is not None and until <= now):
        take_back([NoticeKind.CLUSTER_ANNOUNCED], subject=("cluster", cluster.pk))
        return
    message = Message(
        f"About {cluster.title}",
        cluster.announcement,
        facts=(("Until", moment(until, now)),) if until is not None else (),
        action=ACTION,
    )
    _tell_members(cluster, "cluster", message, now=now)
    _tell_channels(cluster, "cluster", message, now=now)


def tell_maintenance(cluster: Cluster, *, before: Cluster, now: datetime) -> None:
    """Tell members of teams on the cluster, and channels, that it is maintained, at another time, or not after all."""
    was, planned = before.maintenance(now), cluster.maintenance(now)
    if planned is not None:
        title = f"Maintenance of {cluster.title}"
        message = Message(
            title if was is None else f"{title} has changed",
            planned.words(now),
            facts=() if was is None else (("Before", was.words(now)),),
            action=ACTION,
        )
    elif was is not None:
        text = f"The maintenance from {was.window(now)} does not take place."
        message = Message(f"No maintenance of {cluster.title}", text, action=ACTION)
    else:
        return
    _tell_members(cluster, "cluster_maintenance", message, now=now)
    _tell_channels(cluster, "cluster_maintenance", message, now=now)


def _tell_members(
    cluster: Cluster, about: str, message: Message, *, now: datetime
) -> None:
    """Tell members of teams on the cluster; mails about the same that wait are not sent."""
    take_back([NoticeKind.CLUSTER_ANNOUNCED], subject=(about, cluster.pk))
    tell(
        NoticeKind.CLUSTER_ANNOUNCED,
        to=User.objects.filter(memberships__team__in=teams_on(cluster)).distinct(),
        subject=(about, cluster.pk),
        link=reverse("cluster", args=[cluster.name]),
        message=message,
        now=now,
    )


def _tell_channels(
    cluster: Cluster, about: str, message: Message, *, now: datetime
) -> None:
    tell_channels(
        NoticeKind.CLUSTER_ANNOUNCED,
        subject=(about, cluster.pk),
        link=reverse("cluster", args=[cluster.name]),
        message=message,
        now=now,
    )
