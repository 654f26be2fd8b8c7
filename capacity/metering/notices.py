"""What people are told about limits."""

from datetime import datetime

from django.urls import reverse

from capacity.chain.stages import Stage
from capacity.metering.models import Meter
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message


def tell_near(meter: Meter, stage: Stage, *, now: datetime) -> None:
    """Tell platform leads and their channels that a limit has reached a stage."""
    message = Message(
        f"{meter.title} is at {meter.percent} %",
        f"{meter.used:,} of {meter.limit:,} {meter.unit} are used. {stage.words}",
        facts=(("Left", f"{meter.left:,} {meter.unit}"),),
        action="Look at this limit",
    )
    about, link = ("limit", meter.pk), reverse("limit", args=[meter.pk])
    tell_leads(
        NoticeKind.LIMIT_NEAR, subject=about, link=link, message=message, now=now
    )
