"""Telling the people of a cluster's teams what a platform lead announces there, such as when it is maintained."""

from datetime import datetime

from django.urls import reverse

from accounts.models import User
from fleet.models import Cluster
from notices.actions import take_back, tell, tell_channels
from notices.kinds import NoticeKind
from notices.message import Message
from ui.amounts import moment


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
    there = cluster.tenancies.exclude(stage="gone").values("team")
    tell(
        NoticeKind.CLUSTER_ANNOUNCED,
        to=User.objects.filter(memberships__team__in=there).distinct(),
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
