"""Stand-ins: somebody who decides lends their seat to somebody else for some days."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import F, Q

LONGEST = timedelta(days=90)


class DelegationQuerySet(models.QuerySet["Delegation"]):
    """Ways to look at delegations."""

    def open(self, now: datetime) -> "DelegationQuerySet":
        """Neither ended nor over; some may not have begun."""
        return self.filter(ended_at=None, until__gt=now)

    def in_force(self, now: datetime) -> "DelegationQuerySet":
        """Begun, neither ended nor over."""
        return self.open(now).filter(starts_at__lte=now)


class Delegation(models.Model):
    """`giver` lets `to` sit in their seat from `starts_at` until `until`; `ended_at` when it was ended earlier."""

    giver = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="delegations_given")
    to = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="delegations_taken")
    starts_at = models.DateTimeField()
    until = models.DateTimeField()
    why = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    objects = DelegationQuerySet.as_manager()

    class Meta:
        ordering = ["-starts_at", "-id"]
        indexes = [models.Index(fields=["to", "until"], condition=Q(ended_at=None), name="stand_ins_seats")]
        constraints = [
            models.CheckConstraint(condition=~Q(giver=F("to")), name="nobody_stands_in_for_themselves"),
            models.CheckConstraint(
                condition=Q(until__gt=F("starts_at")), name="a_stand_in_ends_after_it_starts"
            ),
            models.CheckConstraint(
                condition=Q(until__lte=F("starts_at") + LONGEST), name="a_stand_in_lasts_90_days_at_most"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.to_id} for {self.giver_id}"
