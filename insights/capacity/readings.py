"""Readings of limits, day by day."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import DateTimeField, Max
from django.db.models.functions import TruncDay

from capacity.chain.forecast import Point
from capacity.models import Meter, Reading

LOOKED_BACK = timedelta(weeks=12)


def points_of(meters: Sequence[Meter], now: datetime) -> dict[int, list[Point]]:
    """The highest reading of each day of the last twelve weeks, by the meter's id; one query."""
    found: dict[int, list[Point]] = {one.pk: [] for one in meters}
    rows = (
        Reading.objects.filter(meter__in=meters, at__gte=now - LOOKED_BACK)
        .annotate(day=TruncDay("at", output_field=DateTimeField()))
        .values("meter", "day")
        .annotate(most=Max("used"))
        .order_by("day")
    )
    for row in rows:
        found[row["meter"]].append(Point(row["day"], row["most"]))
    return found
