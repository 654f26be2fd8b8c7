"""What people are told about requests for more quota."""

from datetime import datetime

from django.urls import reverse

from capacity.increases.models import QuotaIncrease
from capacity.increases.states import State
from capacity.increases.words import SUPPORT
from capacity.metering.keys import quota_key
from capacity.metering.models import Meter
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message

TITLES = {
    State.GRANTED: "Azure grants {limit:,} vCPUs: {title}",
    State.REFUSED: "Azure refuses {limit:,} vCPUs: {title}",
    State.FAILED: "Azure could not be asked for {limit:,} vCPUs: {title}",
}
NEXT = {
    State.GRANTED: "The limit is read again now; what can be had follows.",
    State.REFUSED: SUPPORT,
    State.FAILED: "Somebody has to put right what is in the way, and ask again.",
}


def tell_answered(row: QuotaIncrease, *, now: datetime) -> None:
    """Tell who asked, the platform leads and their channels what became of a request."""
    state = State(row.state)
    message = Message(
        TITLES[state].format(limit=row.limit, title=row.title),
        NEXT[state],
        facts=(
            ("Before", f"{row.limit_before:,} vCPUs"),
            ("Asked for", f"{row.limit:,} vCPUs"),
            *((("Reason", row.message[:200]),) if state is not State.GRANTED else ()),
        ),
        action="Look at this limit",
    )
    about, link = ("quota_increase", row.pk), _page(row)
    tell_leads(
        NoticeKind.QUOTA_ANSWERED,
        subject=about,
        link=link,
        message=message,
        now=now,
        also=[row.asked_by],
    )


def _page(row: QuotaIncrease) -> str:
    key = quota_key(row.subscription, row.region, row.family)
    meter = Meter.objects.filter(key=key).values_list("pk", flat=True).first()
    return reverse("capacity") if meter is None else reverse("limit", args=[meter])
