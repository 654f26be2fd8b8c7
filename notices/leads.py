"""Telling who looks after the platform, and the channels."""

from collections.abc import Iterable
from datetime import datetime

from accounts.models import User
from accounts.people import holding
from accounts.roles import Permission
from notices.actions import tell_with_channels
from notices.kinds import NoticeKind
from notices.message import Message


def tell_leads(
    kind: NoticeKind,
    *,
    subject: tuple[str, int],
    link: str,
    message: Message,
    now: datetime,
    may: Permission = Permission.MANAGE_CLUSTERS,
    also: Iterable[User] = (),
) -> None:
    """Tell everybody who may do what is to be done, people besides, and channels; promises and errors as for `tell`."""
    tell_with_channels(
        kind,
        to=[*also, *holding(may)],
        subject=subject,
        link=link,
        message=message,
        now=now,
    )
