"""Limits with how much of each is used, and what it was before."""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from capacity.chain.stages import Stage, stage_of
from web.rows import Row

# One reading of a limit is kept for each hour, for as long as a forecast looks back.
KEPT_FOR = timedelta(weeks=26)


class Meter(Row):
    """A limit as it was read last; `key` says which it is, `title` and `unit` how people are told of it."""

    key = models.CharField(max_length=200, unique=True)
    title = models.CharField(max_length=200)
    unit = models.CharField(max_length=20)
    limit = models.PositiveIntegerField()
    used = models.PositiveIntegerField()
    seen_at = models.DateTimeField()
    # The stage that people were told of (capacity.chain.stages).
    told_stage = models.PositiveSmallIntegerField(default=0)
    told_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["key"]
        constraints = [
            models.CheckConstraint(
                condition=Q(told_stage__in=[stage.value for stage in Stage]),
                name="a_meter_tells_known_stages",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.title}: {self.used} of {self.limit} {self.unit}"

    @property
    def percent(self) -> int:
        """What is used of it, rounded down; a limit of nothing is all used."""
        return 100 * self.used // self.limit if self.limit else 100

    @property
    def stage(self) -> Stage:
        """How near the limit is now."""
        return stage_of(self.percent)

    @property
    def left(self) -> int:
        """What is not used."""
        return max(0, self.limit - self.used)


class ReadingQuerySet(models.QuerySet["Reading"]):
    """Ways to look at readings."""

    def too_old(self, now: datetime) -> "ReadingQuerySet":
        """Those that no forecast looks at any more."""
        return self.filter(at__lt=now - KEPT_FOR)


class Reading(Row):
    """What a limit was in one hour: the most that was used in it, beside the limit of then."""

    meter = models.ForeignKey(Meter, models.CASCADE, related_name="readings")
    at = models.DateTimeField()
    limit = models.PositiveIntegerField()
    used = models.PositiveIntegerField()

    objects = ReadingQuerySet.as_manager()

    class Meta:
        ordering = ["at"]
        constraints = [
            models.UniqueConstraint(
                fields=["meter", "at"], name="a_meter_is_read_once_an_hour"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.meter_id} {self.at:%Y-%m-%d %H}h {self.used}"
