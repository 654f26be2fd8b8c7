"""What people are told about bookings."""

from datetime import datetime

from allocations.models import Allocation
from notices.message import Message
from ui.amounts import moment, usd


def blocked_message(row: Allocation, *, now: datetime) -> Message:
    """That something stands in the way of a booking that begins soon, and what happens then."""
    facts = [
        ("Team", row.team.name),
        ("Begins", moment(row.starts_at, now)),
        ("Ends", moment(row.until, now)),
    ]
    if row.where:
        facts.insert(1, ("Where", row.where))
    facts.append(("Cost a day", usd(row.usd_per_day)))
    return Message(
        title=f"{row.what} of {row.team.name}: something stands in the way",
        sentence=f"{row.hindrance} It begins by itself as soon as nothing does, and costs nothing before.",
        facts=tuple(facts),
        action="Open the booking",
    )
