"""What the engine keeps in the database; each model that uses it has these fields in a table of its own."""

from datetime import datetime
from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import F, Q

M = TypeVar("M", bound=models.Model)


class LeasedQuerySet(models.QuerySet[M]):
    """Ways to look at rows that workers take one by one."""

    def due(self, now: datetime) -> Self:
        """What a worker should take: its time has come, nobody holds its lease, and it is not parked."""
        free = Q(lease_until=None) | Q(lease_until__lte=now)
        return self.filter(free, requeue_at__lte=now, parked_at=None)

    def wanted(self, now: datetime) -> Self:
        """What is worth a try: it is due, or something new is wanted of it and no try has failed since."""
        return self.filter(Q(requeue_at__lte=now) | Q(attempts=0))

    def parked(self) -> Self:
        """What is tried no more until somebody has it tried again."""
        return self.filter(parked_at__isnull=False)

    def requeue(self, now: datetime) -> int:
        """Have all of these tried now, whatever wait their failures had earned them; how many."""
        return self.update(requeue_at=now, attempts=0)


class ReconciledQuerySet(LeasedQuerySet[M]):
    """Ways to look at rows whose desired state is made true."""

    def wanted(self, now: datetime) -> Self:
        """What is worth a try: it is due, or another generation is wanted and no try has failed since."""
        return self.filter(
            Q(requeue_at__lte=now)
            | Q(attempts=0, observed_generation__lt=F("generation"))
        )


class Leased(models.Model):
    """A row that one worker at a time works on, again and again.

    A worker holds the lease by its number: a write with an older number changes nothing.
    """

    requeue_at = models.DateTimeField()
    # Tries in a row that did not succeed, and those of them that nobody came back from (reconciling.controller).
    attempts = models.PositiveIntegerField(default=0, db_default=0)
    unfinished = models.PositiveSmallIntegerField(default=0, db_default=0)
    parked_at = models.DateTimeField(null=True)
    lease_no = models.PositiveBigIntegerField(default=0, db_default=0)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(
                condition=Q(parked_at=None) | Q(lease_until=None),
                name="a_parked_%(class)s_is_worked_on_by_nobody",
            ),
        ]

    @property
    def same_desired(self) -> Q:
        """What tells that the same is wanted of the row as when it was read."""
        return Q()

    def retry(self, *, now: datetime) -> list[str]:
        """Have it tried now as if for the first time, parked or not; returns the fields to be saved."""
        self.requeue_at, self.attempts, self.unfinished, self.parked_at = (
            now,
            0,
            0,
            None,
        )
        return ["requeue_at", "attempts", "unfinished", "parked_at"]


class Reconciled(Leased):
    """A row whose desired state is made true outside: what is wanted, what was last made true, and how it stands.

    `generation` counts the desired states; `observed_generation` is the one that was last made true. `conditions` are
    those of reconciling.conditions.
    """

    generation = models.PositiveIntegerField(default=0)
    observed_generation = models.PositiveIntegerField(default=0)
    conditions = models.JSONField(default=list)

    class Meta(Leased.Meta):
        abstract = True
        constraints = [
            *Leased.Meta.constraints,
            models.CheckConstraint(
                condition=Q(observed_generation__lte=F("generation")),
                name="a_%(class)s_observes_what_was_wanted",
            ),
        ]

    @property
    def same_desired(self) -> Q:
        """What tells that no generation was wanted since."""
        return Q(generation=self.generation)


class Throttle(models.Model):
    """How hard one target may be worked on now, over all workers: a cluster, a subscription, a server.

    The target's key is that of the row, so a row that was never written need not be there.
    """

    # Seconds since 1970 until which the writes so far use up the budget (reconciling.rate).
    spent_until = models.FloatField(default=0)
    # Nobody calls the target before; set when it kept somebody waiting in vain, empty once it answers again.
    open_until = models.DateTimeField(null=True)
    # Until when one worker has the target for itself (reconciling.claims).
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    @property
    def stored(self) -> "models.QuerySet[Any]":
        """The row in the database, to be updated under conditions."""
        return type(self)._default_manager.filter(pk=self.pk)

    def ensure(self) -> None:
        """Make the row if there is none yet."""
        model: type[Any] = type(self)
        if not self.stored.exists():
            model._default_manager.bulk_create(
                [model(pk=self.pk)], ignore_conflicts=True
            )
