"""What is left when holdings end: work that still runs on their GPUs, and ends that a person must confirm first."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, Max, OuterRef, Q

from fleet.models import Flavor
from provisioning.models import Tenancy


class LeftoverQuerySet(models.QuerySet["Leftover"]):
    """Ways to look at what is left."""

    def open(self) -> "LeftoverQuerySet":
        """Not dealt with yet."""
        return self.filter(done_at=None)

    def due(self, now: datetime) -> "LeftoverQuerySet":
        """Those whose cluster should be looked at; one that is written off answers no more."""
        # Not by a join: an update of these rows, which is how they are claimed, has to see `look_at` itself once more.
        lost = Tenancy.objects.filter(
            pk=OuterRef("tenancy"), cluster__written_off_at__isnull=False
        )
        return self.open().filter(~Exists(lost), look_at__lte=now)


class Leftover(models.Model):
    """GPUs of an ended holding on which work may still run: until `stop_at`, or until it is done where that is null.

    While it is open the namespace's quota leaves room for them. `running` is what the last look saw above the quota.
    `look_at` is also the claim of whoever looks: it is moved ahead by conditional update before a look begins.
    """

    allocation = models.OneToOneField(
        "allocations.Allocation",
        models.PROTECT,
        related_name="leftover",
        primary_key=True,
    )
    tenancy = models.ForeignKey(Tenancy, models.PROTECT, related_name="leftovers")
    flavor = models.ForeignKey(Flavor, models.PROTECT, related_name="+")
    gpus = models.PositiveIntegerField()
    since = models.DateTimeField()
    stop_at = models.DateTimeField(null=True)
    running = models.JSONField(default=list)
    seen_at = models.DateTimeField(null=True)
    look_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True)
    # Why the cluster refused to stop what has to stop.
    trouble = models.CharField(max_length=600, blank=True, default="", db_default="")

    objects = LeftoverQuerySet.as_manager()

    class Meta:
        ordering = ["since", "allocation_id"]
        indexes = [
            models.Index(
                fields=["look_at"],
                condition=Q(done_at=None),
                name="leftover_looked_at_next",
            ),
            models.Index(
                fields=["tenancy", "flavor"],
                condition=Q(done_at=None),
                name="leftover_of_tenancy",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(gpus__gte=1), name="a_leftover_is_of_a_gpu"
            ),
            models.CheckConstraint(
                condition=Q(stop_at=None) | Q(stop_at__gte=F("since")),
                name="nothing_is_stopped_before_the_end",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.allocation_id}: {self.gpus} since {self.since:%Y-%m-%d %H:%M}"


class StoppedWork(models.Model):
    """A workload that was told to stop, written down before the cluster is told, so that none is lost or told twice."""

    leftover = models.ForeignKey(Leftover, models.PROTECT, related_name="stopped")
    tenancy = models.ForeignKey(Tenancy, models.PROTECT, related_name="+")
    uid = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    job = models.CharField(max_length=320)
    gpus = models.PositiveIntegerField()
    asked_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["asked_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenancy", "uid"],
                condition=Q(done_at=None),
                name="a_workload_is_stopped_once",
            ),
            models.CheckConstraint(
                condition=Q(done_at=None) | Q(done_at__gte=F("asked_at")),
                name="work_stops_after_it_was_asked_to",
            ),
        ]

    def __str__(self) -> str:
        return self.job


class BrakeQuerySet(models.QuerySet["Brake"]):
    """Ways to look at brakes."""

    def open(self) -> "BrakeQuerySet":
        """Those about which nobody has said anything yet."""
        return self.filter(answer="")

    def confirmed_until(self) -> datetime | None:
        """The latest moment at which somebody said that the clock was right; what was due by then may end."""
        latest: datetime | None = self.filter(answer=Brake.Answer.CONFIRMED).aggregate(
            at=Max("clock")
        )["at"]
        return latest


class Brake(models.Model):
    """So many holdings would have ended at one moment that a platform lead must say first that the clock is right.

    Confirmed, everything ends that was due at `clock`; nothing else follows from it.
    """

    class Answer(models.TextChoices):
        CONFIRMED = "confirmed", "let them end"
        DISMISSED = "dismissed", "the clock was wrong"
        PASSED = "passed", "not needed any more"

    clock = models.DateTimeField()
    due = models.PositiveIntegerField()
    live = models.PositiveIntegerField()
    answer = models.CharField(max_length=10, choices=Answer.choices, blank=True)
    answered_at = models.DateTimeField(null=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )

    objects = BrakeQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["answer"],
                condition=Q(answer=""),
                name="one_brake_is_on_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(answer="", answered_at=None, answered_by=None)
                | Q(answer="passed", answered_at__isnull=False, answered_by=None)
                | Q(
                    answer__in=["confirmed", "dismissed"],
                    answered_at__isnull=False,
                    answered_by__isnull=False,
                ),
                name="a_brake_is_answered_by_a_person",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.due} of {self.live} at {self.clock:%Y-%m-%d %H:%M}"
