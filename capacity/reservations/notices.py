"""What people are told about reservations."""

from datetime import datetime

from django.urls import reverse

from capacity.reservations.models import Reservation
from capacity.reservations.states import State
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message


def tell_blocked(row: Reservation, *, why: str, now: datetime) -> None:
    """Tell platform leads and their channels that Azure keeps the portal from what it wants, with Azure's words."""
    paid = row.state == State.RELEASING
    message = Message(
        f"Azure does not let the portal {'release' if paid else 'make'} a reservation",
        f"{why} The portal tries again by itself, and at once when you have it tried again on its page. "
        f"{'What it holds is paid for meanwhile.' if paid else 'What was granted with it waits.'}",
        facts=(
            ("Team", row.team.name),
            ("Machines", f"{row.vm_size} in {row.region}"),
        ),
        action="Look at the reservation",
    )
    tell_leads(
        NoticeKind.RESERVATION_BLOCKED,
        subject=("reservation", row.pk),
        link=reverse("reservation", args=[row.pk]),
        message=message,
        now=now,
    )
