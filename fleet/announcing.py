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


def teams_on(cluster: Cluster) -> QuerySet[Team]:
    """The teams that are on a cluster, or are leaving it."""
    rows = cluster.tenancies.exclude(stage="gone")
    return Team.objects.filter(pk__in=rows.values("team"))


def tell_closed_or_open(cluster: Cluster, *, now: datetime) -> None:
    """Tell members of teams on the cluster that it takes no new requests from now on, or takes them again."""
    about = ("cluster_use", cluster.pk)
    take_back([NoticeKind.CLUSTER_ANNOUNCED], subject=about)
    message = (
        Message(
            f"{cluster.title} takes requests again",
            "What your team holds there can be kept longer, and more can be asked for.",
            action="Look at the cluster",
        )
        if cluster.enabled
        else Message(
            f"{cluster.title} takes no new requests",
            "What your team holds there goes on until it ends, and is not kept longer. Ask for GPUs elsewhere.",
            action="Look at the cluster",
        )
    )
    tell(
        NoticeKind.CLUSTER_ANNOUNCED,
        to=User.objects.filter(memberships__team__in=teams_on(cluster)).distinct(),
        subject=about,
        link=reverse("cluster", args=[cluster.name]),
        message=message,
        now=now,
    )


def tell_announced(cluster: Cluster, *, now: datetime) -> None:
    """Tell members of teams on the cluster, and channels; mails of the announcement before that wait are not sent."""
    about = ("cluster", cluster.pk)
    take_back([NoticeKind.CLUSTER_ANNOUNCED], subject=about)
    text = cluster.announces(now)
    if not text:
        return
    until = cluster.announced_until
    message = Message(
        f"About {cluster.title}",
        text,
        facts=(("Until", moment(until, now)),) if until is not None else (),
        action="Look at the cluster",
    )
    link = reverse("cluster", args=[cluster.name])
    tell(
        NoticeKind.CLUSTER_ANNOUNCED,
        to=User.objects.filter(memberships__team__in=teams_on(cluster)).distinct(),
        subject=about,
        link=link,
        message=message,
        now=now,
    )
    tell_channels(
        NoticeKind.CLUSTER_ANNOUNCED,
        subject=about,
        link=link,
        message=message,
        now=now,
    )
