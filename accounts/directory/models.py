"""What the directory takes from people: doubts about an answer, what was taken so that it can come back, the brake."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q


class Reason(models.TextChoices):
    """What the directory says of somebody who would lose access."""

    UNKNOWN = "unknown", "not in the directory"
    BLOCKED = "blocked", "account disabled"
    RIGHTS = "rights", "group or role withdrawn"


REASONS = [value for value, _ in Reason.choices]


class DoubtQuerySet(models.QuerySet["Doubt"]):
    """Ways to look at doubts."""

    def unreleased(self) -> "DoubtQuerySet":
        """Those that no platform lead has let take effect."""
        return self.filter(released_at=None)


class Doubt(models.Model):
    """An answer of the directory that would take access from somebody and has not been acted on.

    `times` counts the answers in a row. `released_at` is when a platform lead said that it is true.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="doubt"
    )
    reason = models.CharField(max_length=10, choices=Reason.choices)
    since = models.DateTimeField()
    asked_at = models.DateTimeField()
    times = models.PositiveIntegerField(default=1)
    released_at = models.DateTimeField(null=True)

    objects = DoubtQuerySet.as_manager()

    class Meta:
        ordering = ["since", "user_id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(reason__in=REASONS), name="a_doubt_has_a_known_reason"
            ),
            models.CheckConstraint(
                condition=Q(times__gte=1), name="a_doubt_was_answered_once"
            ),
            models.CheckConstraint(
                condition=Q(asked_at__gte=F("since")), name="a_doubt_begins_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.reason}"


class AccessLossQuerySet(models.QuerySet["AccessLoss"]):
    """Ways to look at losses."""

    def restorable(self) -> "AccessLossQuerySet":
        """Those that have not come back."""
        return self.filter(restored_at=None)


class AccessLoss(models.Model):
    """One time at which the directory took access from somebody, with everything that was taken.

    `teams` are pairs of a team's key and the part in it; `fallback` says that the person was left with the role that
    everybody has. Tokens point here. `released` were let go by a platform lead, and are no sign of a mass change.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="access_losses"
    )
    reason = models.CharField(max_length=10, choices=Reason.choices)
    at = models.DateTimeField(db_index=True)
    roles = models.JSONField(default=list)
    groups = models.JSONField(default=list)
    teams = models.JSONField(default=list)
    fallback = models.BooleanField(default=False)
    released = models.BooleanField(default=False)
    restored_at = models.DateTimeField(null=True)
    restored_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )

    objects = AccessLossQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(reason__in=REASONS),
                name="access_is_lost_for_a_known_reason",
            ),
            models.CheckConstraint(
                condition=Q(restored_at=None, restored_by=None)
                | Q(restored_at__isnull=False, restored_by__isnull=False),
                name="access_is_restored_by_a_person",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} at {self.at:%Y-%m-%d %H:%M}: {self.reason}"


class DirectoryBrakeQuerySet(models.QuerySet["DirectoryBrake"]):
    """Ways to look at brakes on the directory."""

    def open(self) -> "DirectoryBrakeQuerySet":
        """The one that is on, if any."""
        return self.filter(answer="")


class DirectoryBrake(models.Model):
    """The directory would take too much at once, or is not the one that is known: it takes nothing until this ends."""

    class Cause(models.TextChoices):
        MASS = "mass", "too many at once"
        STRANGE = "strange", "not the directory that is known"

    class Answer(models.TextChoices):
        RELEASED = "released", "let it take effect"
        PASSED = "passed", "passed by itself"

    at = models.DateTimeField()
    cause = models.CharField(max_length=10, choices=Cause.choices)
    people = models.PositiveIntegerField()
    reason = models.CharField(max_length=300)
    notified_at = models.DateTimeField(null=True)
    answer = models.CharField(max_length=10, choices=Answer.choices, blank=True)
    answered_at = models.DateTimeField(null=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )

    objects = DirectoryBrakeQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["answer"],
                condition=Q(answer=""),
                name="one_directory_brake_is_on_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(cause__in=["mass", "strange"]),
                name="a_directory_brake_has_a_known_cause",
            ),
            models.CheckConstraint(
                condition=Q(answer="", answered_at=None, answered_by=None)
                | Q(answer="passed", answered_at__isnull=False, answered_by=None)
                | Q(
                    answer="released",
                    answered_at__isnull=False,
                    answered_by__isnull=False,
                ),
                name="a_directory_brake_is_released_by_a_person",
            ),
        ]

    def __str__(self) -> str:
        return self.reason
