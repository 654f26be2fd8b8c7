"""What people are told about orphans."""

from collections.abc import Sequence
from datetime import datetime

from django.urls import reverse

from capacity.orphans.models import Orphan
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message

MAX_NAMED = 5


def tell_found(found: Sequence[Orphan], *, now: datetime) -> None:
    """Tell platform leads and their channels of what a reading newly found; one notice for all of it."""
    first, many = found[0], len(found)
    title = (
        "A reservation in Azure is orphaned"
        if many == 1
        else f"{many} reservations in Azure are orphaned"
    )
    message = Message(
        title,
        "It carries the portal's mark, but no team was granted it. Release it, or find out whose it is: what it holds "
        "is paid for."
        if many == 1
        else "They carry the portal's mark, but no team was granted them. Release them, or find out whose they are: "
        "what they hold is paid for.",
        facts=tuple((one.group[:60], one.title) for one in found[:MAX_NAMED]),
        action="Look at orphaned reservations",
    )
    about, link = ("orphan", first.pk), f"{reverse('reservations')}#orphans"
    tell_leads(
        NoticeKind.RESERVATION_ORPHANED,
        subject=about,
        link=link,
        message=message,
        now=now,
    )
