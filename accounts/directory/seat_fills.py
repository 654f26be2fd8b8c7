"""When the people of each seat that decides were last read from the directory."""

from django.db import models
from django.db.models import Q


class SeatFill(models.Model):
    """One seat, such as `platform_leads` or `group:OID`; the people themselves are accounts with its role or group."""

    seat = models.CharField(max_length=60, unique=True)
    words = models.CharField(max_length=200)
    people = models.PositiveIntegerField(default=0)
    # None while it was never read; what was read stays while the directory is away.
    read_at = models.DateTimeField(null=True)
    tried_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["seat"]
        constraints = [
            models.CheckConstraint(
                condition=Q(people=0) | Q(read_at__isnull=False),
                name="a_seat_is_filled_from_the_directory",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.seat}: {self.people}"
