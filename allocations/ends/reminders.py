"""Reminders of an end: each sent once, by whoever moves its moment on."""

from datetime import datetime

from django.db import transaction

from accounts.models import User
from allocations import webhooks
from allocations.models import Allocation
from allocations.notices import ending_notice
from allocations.schedule import next_reminder
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from notices.actions import tell_with_channels
from notices.channels.events import WebhookEvent
from notices.kinds import NoticeKind

MOST_AT_ONCE = 200


def due(now: datetime) -> list[int]:
    """Allocations of whose end somebody should be reminded by now, the nearest end first."""
    rows = Allocation.objects.live().filter(remind_at__lte=now).order_by("until")
    return list(rows.values_list("pk", flat=True)[:MOST_AT_ONCE])


@transaction.atomic
def remind(allocation_id: int, *, now: datetime) -> bool:
    """Send the newest reminder that is due, whatever was missed before it; False when there is none to send."""
    row = Allocation.objects.described().get(pk=allocation_id)
    if row.remind_at is None or row.remind_at > now:
        return False
    following = next_reminder(row.starts_at, row.until, after=now)
    # The moment is the guard: whoever moves it on sends the reminder.
    same = Allocation.objects.live().filter(pk=row.pk, remind_at=row.remind_at)
    if not same.update(remind_at=following) or row.until <= now:
        return False
    said, link = ending_notice(row, now=now)
    about = ("allocation", row.pk)
    members = User.objects.filter(memberships__team=row.team_id)
    tell_with_channels(
        NoticeKind.ALLOCATION_ENDING,
        to=members,
        subject=about,
        link=link,
        message=said,
        now=now,
    )
    webhooks.tell_of(WebhookEvent.ALLOCATION_ENDING, row, now=now)
    record(
        Kind.ALLOCATION_REMINDED,
        actor=PORTAL,
        subject=about,
        team_id=row.team_id,
        gpus=row.gpus,
        what=row.what,
        flavor=row.flavor.name if row.flavor is not None else "",
        reference=row.hold.reference,
        until=row.until.isoformat(),
    )
    return True
