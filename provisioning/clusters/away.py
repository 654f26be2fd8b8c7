"""Telling platform leads of clusters that do not answer: once, after some minutes, and once more when they are back."""

from datetime import datetime, timedelta

from django.urls import reverse

from fleet.models import Cluster, in_maintenance
from fleet.presenting import how_away
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message
from ui.amounts import moment, span

# A cluster that is upgraded, or a network that stumbles, is back before.
TOLD_AFTER = timedelta(minutes=5)


def note(cluster: Cluster, *, is_away: bool, now: datetime) -> None:
    """Keep since when a cluster is away, and tell who looks after it; `cluster` as it was read before the look.

    Inside the transaction that keeps what was seen.
    """
    mine = Cluster.objects.filter(pk=cluster.pk)
    if is_away:
        mine.filter(away_since=None).update(away_since=now)
        _tell_if_long(cluster.pk, now=now)
    elif mine.filter(away_told_at__isnull=False).update(
        away_since=None, away_told_at=None
    ):
        _tell_back(cluster, now=now)
    else:
        mine.exclude(away_since=None).update(away_since=None)


def _tell_if_long(cluster_id: int, *, now: datetime) -> None:
    """Tell of a cluster in use that is away for five minutes, once however many workers find out.

    One that is maintained surprises nobody: it is told if it is still away five minutes after that.
    """
    long_ago = now - TOLD_AFTER
    silent = (
        Cluster.objects.looked_after()
        .filter(pk=cluster_id, away_since__lte=long_ago, away_told_at=None)
        .exclude(in_maintenance(now, since=long_ago))
    )
    if not silent.update(away_told_at=now):
        return
    cluster = Cluster.objects.get(pk=cluster_id)
    since = moment(cluster.away_since or now, now)
    message = Message(
        f"{cluster.title} {how_away(cluster)} since {since}",
        f"{cluster.message} What runs there goes on. Nothing new is made there and nothing taken back until it is "
        "reached again; it is tried again by itself.",
        action="Look at the cluster",
    )
    _tell(cluster, message, now=now)


def _tell_back(cluster: Cluster, *, now: datetime) -> None:
    """Tell of a cluster that works again; `cluster` as it was read before."""
    since = cluster.away_since or now
    message = Message(
        f"{cluster.title} is back",
        f"It was away for {span(now - since)}. What waited for it is done now.",
        action="Look at the cluster",
    )
    _tell(cluster, message, now=now)


def _tell(cluster: Cluster, message: Message, *, now: datetime) -> None:
    about, link = ("cluster", cluster.pk), reverse("cluster", args=[cluster.name])
    tell_leads(
        NoticeKind.CLUSTER_AWAY, subject=about, link=link, message=message, now=now
    )
