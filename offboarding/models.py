"""A team's leaving: who asked, who confirmed, from when, how long everything is kept, and how it ended."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from accounts.models import Team
from accounts.teams import TeamScopedQuerySet
from provisioning.models import Tenancy
from provisioning.stages import Stage

LONGEST_RETENTION = 365


class DepartureQuerySet(TeamScopedQuerySet["Departure"]):
    """Ways to look at departures."""

    def open(self) -> "DepartureQuerySet":
        """Asked or under way: not ended in any way."""
        return self.filter(ended_at=None)

    def under_way(self) -> "DepartureQuerySet":
        """Confirmed and not ended."""
        return self.filter(ended_at=None, confirmed_at__isnull=False)


class Departure(models.Model):
    """A team leaves one cluster or, `is_whole`, the platform; its places say which clusters.

    Until `leaves_at` work goes on, or with `hold` only what runs already. Then everything is kept for
    `retention_days` and deleted.
    """

    class End(models.TextChoices):
        WITHDRAWN = "withdrawn", "was taken back before it was confirmed"
        RESTORED = "restored", "was undone: the team was restored"
        GONE = "gone", "is done: nothing is left"

    team = models.ForeignKey(Team, models.PROTECT, related_name="departures")
    is_whole = models.BooleanField()
    leaves_at = models.DateTimeField()
    hold = models.BooleanField()
    retention_days = models.PositiveSmallIntegerField()
    reason = models.CharField(max_length=500)
    needs_second = models.BooleanField()
    version = models.PositiveIntegerField(default=1)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+"
    )
    asked_at = models.DateTimeField()
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    confirmed_at = models.DateTimeField(null=True)
    # More than usual was to be deleted at once: this one goes only when a platform lead agrees to it, however few the
    # others have become.
    held_back_at = models.DateTimeField(null=True)
    agreed_at = models.DateTimeField(null=True)
    # Whether its date had been carried out anywhere before it was restored: then its GPUs were given back.
    took_gpus = models.BooleanField(default=False)
    ended_by = models.CharField(max_length=200, blank=True)
    ended_at = models.DateTimeField(null=True)
    end = models.CharField(max_length=10, choices=End.choices, blank=True)

    objects = DepartureQuerySet.as_manager()

    class Meta:
        ordering = ["-asked_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(needs_second=False)
                | Q(confirmed_by=None)
                | ~Q(confirmed_by=F("asked_by")),
                name="a_second_person_confirms_for_production",
            ),
            models.CheckConstraint(
                condition=Q(confirmed_at=None, confirmed_by=None)
                | Q(confirmed_at__isnull=False, confirmed_by__isnull=False),
                name="a_confirmed_departure_has_a_confirmer",
            ),
            models.CheckConstraint(
                condition=Q(
                    retention_days__gte=1, retention_days__lte=LONGEST_RETENTION
                ),
                name="what_a_team_leaves_is_kept_1_to_365_days",
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None, end="")
                | Q(ended_at__isnull=False, end="withdrawn", confirmed_at=None)
                | Q(
                    ended_at__isnull=False,
                    end__in=["restored", "gone"],
                    confirmed_at__isnull=False,
                ),
                name="a_departure_ends_as_it_went",
            ),
        ]

    @property
    def is_asked(self) -> bool:
        """Whether it waits to be confirmed."""
        return self.confirmed_at is None and self.ended_at is None

    @property
    def is_held_back(self) -> bool:
        """Whether its deleting waits for a platform lead."""
        return self.held_back_at is not None and self.agreed_at is None

    @property
    def is_stopped(self) -> bool:
        """Whether work has stopped in every place: it was drained, and that has reached its cluster."""
        return all(place.is_stopped for place in self.places.all())

    def __str__(self) -> str:
        return (
            f"{self.team_id} leaves {'the platform' if self.is_whole else 'a cluster'}"
        )

    @property
    def retained_until(self) -> datetime:
        """Until when everything can be restored: later than was said where work stopped late."""
        planned = self.leaves_at + timedelta(days=self.retention_days)
        kept = (place.tenancy.kept_until for place in self.places.all())
        return max([planned, *(until for until in kept if until is not None)])


class DeparturePlace(models.Model):
    """A place that a departure is from; a place is left once at a time."""

    departure = models.ForeignKey(Departure, models.CASCADE, related_name="places")
    tenancy = models.ForeignKey(Tenancy, models.PROTECT, related_name="departures")
    is_open = models.BooleanField(default=True)
    # What was kept there, as the last preview read it from the cluster.
    claims = models.JSONField(default=list)
    claims_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["tenancy__cluster__name"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenancy"],
                condition=Q(is_open=True),
                name="a_place_is_left_once_at_a_time",
            ),
        ]

    @property
    def is_stopped(self) -> bool:
        """Whether work has stopped here; a cluster that does not answer later changes nothing of it."""
        left = self.tenancy
        if left.stage == Stage.RETAINED:
            return left.observed_generation == left.generation
        return left.stage != Stage.LEAVING

    def __str__(self) -> str:
        return f"{self.departure_id}: {self.tenancy_id}"
