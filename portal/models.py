"""That the processes without a page are alive, as the database knows it."""

from datetime import datetime, timedelta

from django.db import models

# A worker writes every ten seconds; all of them may be busy with clusters that answer slowly.
LATE_AFTER = timedelta(minutes=2)


class Pulse(models.Model):
    """When workers last did what the clock asked of them: the clock, the broker and a worker are alive then.

    There is one row, and none before the first worker has run.
    """

    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S}"


def note_pulse(*, now: datetime) -> None:
    """Write down that a worker works."""
    Pulse.objects.update_or_create(pk=1, defaults={"at": now})


def last_pulse() -> datetime | None:
    """When a worker last worked; None where none ever has."""
    return Pulse.objects.values_list("at", flat=True).first()
