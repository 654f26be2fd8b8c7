"""What changes about limits: each is read again and again, its hour is kept, and people are told when it comes near."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record as append
from capacity.chain.stages import Stage, told_next
from capacity.metering.models import Meter, Reading
from capacity.metering.notices import tell_near

# A limit that nobody has read for so long is there no more.
GONE_AFTER = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class Level:
    """A limit as it is now."""

    key: str
    title: str
    unit: str
    limit: int
    used: int


@transaction.atomic
def note(level: Level, *, now: datetime) -> Meter:
    """Keep a limit's reading of this hour, and tell platform leads of a stage that it has newly reached."""
    told = {"title": level.title, "unit": level.unit}
    numbers = {"limit": level.limit, "used": level.used, "seen_at": now}
    Meter.objects.bulk_create(
        [Meter(key=level.key, **told, **numbers)], ignore_conflicts=True
    )
    meter = Meter.objects.select_for_update(no_key=True).get(key=level.key)
    if meter.seen_at > now:
        # Another worker has read it since.
        return meter
    stage, is_told = told_next(Stage(meter.told_stage), _percent(level))
    for name, value in {**told, **numbers, "told_stage": stage}.items():
        setattr(meter, name, value)
    if is_told:
        meter.told_at = now
        tell_near(meter, stage, now=now)
        append(
            Kind.LIMIT_NEAR,
            actor=PORTAL,
            subject=("limit", meter.pk),
            what=meter.title,
            percent=meter.percent,
            stage=int(stage),
        )
    meter.save()
    _keep_hour(meter, now)
    return meter


def forget(now: datetime) -> int:
    """Delete readings that no forecast looks at any more, and limits that are there no more; how many."""
    gone = Meter.objects.filter(seen_at__lt=now - GONE_AFTER).delete()[0]
    return gone + Reading.objects.too_old(now).delete()[0]


def _keep_hour(meter: Meter, now: datetime) -> None:
    """One row an hour, with the most that was used in it."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    row = Reading(meter=meter, at=hour, limit=meter.limit, used=meter.used)
    Reading.objects.bulk_create([row], ignore_conflicts=True)
    known = Reading.objects.filter(meter=meter, at=hour)
    changed = known.filter(Q(used__lt=meter.used) | ~Q(limit=meter.limit))
    changed.update(used=Greatest(F("used"), meter.used), limit=meter.limit)


def _percent(level: Level) -> int:
    return 100 * level.used // level.limit if level.limit else 100
