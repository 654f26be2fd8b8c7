"""GPUs that teams held for weeks, and how much of them looks saw in use; NOW is a Friday."""

import csv
import io
from datetime import date, datetime, timedelta
from decimal import Decimal

from accounts.models import Team
from allocations.models import Allocation, UseDay
from fleet.models import Flavor
from provisioning.models import Tenancy
from tests import factories
from tests.insights.charged import granted
from tests.scene import DAY, HOUR, NOW, Scene

PAGE, FILE = "/capacity/utilisation", "/capacity/utilisation/file"
MONDAY = NOW - 4 * DAY - 12 * HOUR
WEEK = timedelta(weeks=1)


def seen(of: Tenancy, flavor: Flavor, day: date, used: int, of_held: int = 4) -> None:
    """A day on which looks saw so many GPUs in use."""
    UseDay.objects.create(
        tenancy=of,
        flavor=flavor,
        day=day,
        held_sum=of_held,
        used_sum=used,
        last_at=NOW - HOUR,
    )


def measured(scene: Scene, used: int, *, weeks_ago: int, days: int = 7) -> None:
    """Some days of a week on which so many of four GPUs of Vision were in use."""
    for number in range(days):
        day = MONDAY - weeks_ago * WEEK + number * DAY
        seen(scene.tenancy, scene.flavor, day.date(), used)


def held(scene: Scene, gpus: int, *, start: datetime, end: datetime) -> Allocation:
    """GPUs of Vision at a dollar an hour each, there from start to end."""
    return granted(scene.ada, scene.tenancy, scene.flavor, gpus, start=start, end=end)


def four_for_weeks(scene: Scene, weeks: int = 3) -> Allocation:
    """Four GPUs of Vision since a Monday so many weeks ago."""
    return held(scene, 4, start=MONDAY - weeks * WEEK, end=NOW + 2 * DAY)


def of_others(scene: Scene) -> Team:
    """Another team, which held one GPU at two dollars an hour for a day of last week."""
    speech = factories.team("Speech")
    other = factories.tenancy(speech, scene.tenancy.cluster)
    start, end = MONDAY - WEEK, MONDAY - WEEK + DAY
    row = granted(scene.priya, other, scene.flavor, 1, start=start, end=end)
    Allocation.objects.filter(pk=row.pk).update(usd_per_hour=Decimal(2))
    seen(other, scene.flavor, start.date(), 1, of_held=4)
    return speech


def lines(text: str) -> list[dict[str, str]]:
    """The lines of a CSV file by the names of its columns."""
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
