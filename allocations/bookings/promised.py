"""What is promised of a kind of GPU from when until when: by what is held now, and by bookings."""

from datetime import datetime

from django.db.models import Exists, F, OuterRef

from allocations.bookings.levels import Change, Level, levels
from allocations.models import Allocation
from fleet.models import Flavor


def levels_of(flavor: Flavor, *, now: datetime, but: int = 0) -> tuple[Level, ...]:
    """How many GPUs of a kind are free from now on; one query.

    `but` is a hold whose GPUs count as going on: they are to be kept longer.
    """
    rows = Allocation.objects.filter(flavor=flavor, ended_at=None).exclude(hold=but)
    changes = []
    for begun, starts, ends, gpus in rows.values_list("begun_at", "starts_at", "kept_until", "gpus"):
        if begun is None:
            changes.append(Change(starts, -gpus))
        changes.append(Change(ends, gpus))
    return levels(flavor.gpus_total - flavor.allocated, changes, now=now)


def take_unpromised(flavor: Flavor, gpus: int) -> bool:
    """Take GPUs of a kind of which nothing is booked, in one statement; False, and nothing taken, otherwise.

    Whoever calls holds the lock of the kind: an update that waited for it would not look again at what is booked.
    """
    booked = Allocation.objects.booked().filter(flavor=OuterRef("pk"))
    rows = Flavor.objects.filter(~Exists(booked), pk=flavor.pk, gpus_total__gte=F("allocated") + gpus)
    return bool(rows.update(allocated=F("allocated") + gpus))


def has_bookings(flavor: Flavor) -> bool:
    """Whether anything of a kind is booked."""
    return Allocation.objects.booked().filter(flavor=flavor).exists()
