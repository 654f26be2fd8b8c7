"""Stand-ins: somebody who decides lends their seat for some days to somebody else, who accepts it first."""

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

    def invited(self, now: datetime) -> "DelegationQuerySet":
        """Open and not answered yet: they count for nothing."""
        return self.open(now).filter(accepted_at=None)

    def in_force(self, now: datetime) -> "DelegationQuerySet":
        """Accepted and begun, neither ended nor over."""
        return self.open(now).filter(starts_at__lte=now, accepted_at__isnull=False)


class Delegation(models.Model):
    """`giver` lets `to` sit in their seat from `starts_at` until `until`; `ended_at` when it was ended earlier.

    Until `to` has accepted it is an invitation and counts for nothing. Who declines ends it.
    """

    class State(models.TextChoices):
        INVITED = "invited", "waits for their answer"
        ACCEPTED = "accepted", "accepted"
        DECLINED = "declined", "declined"
        ENDED = "ended", "ended"

    giver = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="delegations_given"
    )
    to = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="delegations_taken"
    )
    starts_at = models.DateTimeField()
    until = models.DateTimeField()
    why = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    accepted_at = models.DateTimeField(null=True)
    declined_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = DelegationQuerySet.as_manager()

    class Meta:
        ordering = ["-starts_at", "-id"]
        indexes = [
            models.Index(
                fields=["to", "until"],
                condition=Q(ended_at=None),
                name="stand_ins_seats",
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=~Q(giver=F("to")), name="nobody_stands_in_for_themselves"
            ),
            models.CheckConstraint(
                condition=Q(until__gt=F("starts_at")),
                name="a_stand_in_ends_after_it_starts",
            ),
            models.CheckConstraint(
                condition=Q(until__lte=F("starts_at") + LONGEST),
                name="a_stand_in_lasts_90_days_at_most",
            ),
            models.CheckConstraint(
                condition=Q(declined_at=None)
                | Q(accepted_at=None, ended_at__isnull=False),
                name="who_declined_never_stood_in",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.to_id} for {self.giver_id}"

    @property
    def state(self) -> "Delegation.State":
        """How it stands, whatever the time: what is over keeps its last state."""
        if self.declined_at is not None:
            return self.State.DECLINED
        if self.ended_at is not None:
            return self.State.ENDED
        return self.State.INVITED if self.accepted_at is None else self.State.ACCEPTED
