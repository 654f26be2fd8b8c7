"""What the engine keeps in the database; each model that uses it has these fields in a table of its own."""

from typing import Any

from django.db import models


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
            model._default_manager.bulk_create([model(pk=self.pk)], ignore_conflicts=True)
