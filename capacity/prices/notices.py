"""What people are told about prices."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from django.urls import reverse

from capacity.prices.models import DoubtedPrice
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message

MAX_FACTS = 8


def tell_doubted(doubts: Sequence[DoubtedPrice], *, now: datetime) -> None:
    """Tell platform leads and their channels of prices that nobody believes yet."""
    first = doubts[0].price
    title = (
        str(first) if len(doubts) == 1 else f"{len(doubts)} machines in {first.region}"
    )
    message = Message(
        f"Azure's list price of {title} is doubtful",
        "It moved by more than a factor of three since the last reading. The price of before counts until a platform "
        "lead confirms the new one.",
        facts=tuple((one.price.size, _prices(one)) for one in doubts[:MAX_FACTS]),
        action="Look at this price",
    )
    about, link = ("price", first.pk), reverse("price", args=[first.pk])
    tell_leads(
        NoticeKind.PRICE_DOUBTED, subject=about, link=link, message=message, now=now
    )


def _prices(doubt: DoubtedPrice) -> str:
    return ", ".join(
        f"{way.replace('_', ' ')} ${_plain(getattr(doubt.price, way))} → ${_plain(usd)}"
        for way, usd in doubt.by_way.items()
    )


def _plain(usd: Decimal) -> str:
    return f"{usd.normalize():f}"
