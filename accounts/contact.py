"""When the directory last answered: one row, so that every process knows the same."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models.functions import Coalesce


class ContactQuerySet(models.QuerySet["Contact"]):
    """The one row, which is there from the first contact on."""

    def answered(self, now: datetime) -> None:
        """Note that the directory answered; an older answer never overwrites a newer one."""
        if not self.filter(pk=1).exists():
            self.bulk_create([self.model(pk=1)], ignore_conflicts=True)
        older = models.Q(answered_at=None) | models.Q(answered_at__lt=now)
        self.filter(older, pk=1).update(answered_at=now, failing_since=None, error="")

    def failed(self, now: datetime, error: str) -> None:
        """Note that the directory did not answer; what answered at the same moment or later counts more."""
        if not self.filter(pk=1).exists():
            self.bulk_create([self.model(pk=1)], ignore_conflicts=True)
        older = models.Q(answered_at=None) | models.Q(answered_at__lt=now)
        since = Coalesce(
            "failing_since", models.Value(now), output_field=models.DateTimeField()
        )
        self.filter(older, pk=1).update(
            failed_at=now, failing_since=since, error=error[:300]
        )

    def failing(self) -> Self:
        """The row while the last contact failed."""
        return self.filter(pk=1, failing_since__isnull=False)

    def silent_since(self) -> "models.QuerySet[Contact, datetime]":
        """The moment since when nothing was heard, while the last contact failed; no row otherwise."""
        return self.failing().values_list(
            Coalesce("answered_at", "failing_since"), flat=True
        )


class Contact(models.Model):
    """The last contact with Entra ID and Graph, of whichever process."""

    answered_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    failing_since = models.DateTimeField(null=True)
    error = models.CharField(max_length=300, blank=True)

    objects = ContactQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(pk=1), name="there_is_one_directory"
            )
        ]

    def __str__(self) -> str:
        return f"answered {self.answered_at}"
