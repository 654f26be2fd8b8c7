"""The daily mail: one per person and day, at their hour, with everything that could wait for it."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Min

from notices.kinds import USUAL_HOUR, Way
from notices.models import Delivery, Digest, DigestHour, Notice
from reconciling.sweeping import for_each


def collect(*, now: datetime) -> int:
    """Put what waits into a mail for everybody whose hour has come; returns how many mails. Safe to run twice."""
    oldest = dict(
        Notice.objects.for_digest(now)
        .order_by()
        .values("person_id")
        .annotate(oldest=Min("at"))
        .values_list("person_id", "oldest")
    )
    hours = dict(
        DigestHour.objects.filter(person__in=oldest).values_list("person_id", "hour")
    )
    moments = {
        person: last_hour(now, hours.get(person, USUAL_HOUR)) for person in oldest
    }
    due = {
        person: moment for person, moment in moments.items() if oldest[person] <= moment
    }
    had = set(
        Digest.objects.filter(
            person__in=due, day__gte=(now - timedelta(days=1)).date()
        ).values_list("person_id", "day")
    )
    missing = [one for one in due.items() if (one[0], one[1].date()) not in had]
    return sum(for_each(missing, lambda one: _write(*one, now=now)))


def last_hour(now: datetime, hour: int) -> datetime:
    """The latest moment at this hour (UTC) that is not in the future."""
    today = now.replace(hour=hour, minute=0, second=0, microsecond=0)
    return today if today <= now else today - timedelta(days=1)


@transaction.atomic
def _write(person_id: int, moment: datetime, *, now: datetime) -> bool:
    """Write one person's mail for a day; False when another worker has, or what waited was taken back."""
    digest, is_new = Digest.objects.get_or_create(
        person_id=person_id, day=moment.date(), defaults={"at": now}
    )
    if not is_new:
        return False
    waiting = Notice.objects.for_digest(moment).filter(person=person_id)
    if not waiting.update(digest=digest):
        return False
    Delivery.objects.create(digest=digest, way=Way.EMAIL, next_at=now)
    return True
