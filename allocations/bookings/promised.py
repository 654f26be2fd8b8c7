"""What is promised of a kind of GPU from when until when: by what is held now, and by bookings."""

from datetime import datetime

from django.db.models import Exists, F, Q

from allocations.bookings.levels import Change, Level, combined, levels
from allocations.bookings.quotas import totals_of
from allocations.models import Allocation, AllocationQuerySet
from allocations.schedule import Provisioner
from fleet.models import Flavor


def levels_of(flavor: Flavor, *, now: datetime, but: int = 0) -> tuple[Level, ...]:
    """How many GPUs of a kind are free from now on; one query, and six more where Azure keeps its pool small.

    `but` is a hold whose GPUs count as going on: they are to be kept longer.
    """
    rows = Allocation.objects.filter(flavor=flavor, ended_at=None).exclude(hold=but)
    changes = []
    for begun, starts, ends, gpus in rows.values_list(
        "begun_at", "starts_at", "kept_until", "gpus"
    ):
        if begun is None:
            changes.append(Change(starts, -gpus))
        changes.append(Change(ends, gpus))
    taken = levels(-flavor.allocated, changes, now=now)
    return combined((totals_of(flavor, now=now), taken), by=sum)


def booked_beside(flavor: Flavor) -> AllocationQuerySet:
    """Bookings that may leave less of a kind: its own, and others that may take from the same quotas of Azure."""
    theirs = Q(flavor=flavor)
    if flavor.azure_nodes is not None:
        region = flavor.cluster.region
        theirs |= Q(flavor__azure_nodes__isnull=False, flavor__cluster__region=region)
        theirs |= Q(provisioner=Provisioner.AZURE, spec__region=region)
    return Allocation.objects.booked().filter(theirs)


def take_unpromised(flavor: Flavor, gpus: int) -> bool:
    """Take GPUs of a kind of which nothing is booked, in one statement; False, and nothing taken, otherwise.

    Whoever calls holds the lock of the kind: an update that waited for it would not look again at what is booked.
    """
    is_booked = Exists(booked_beside(flavor))
    rows = Flavor.objects.filter(
        ~is_booked, pk=flavor.pk, gpus_total__gte=F("allocated") + gpus
    )
    return bool(rows.update(allocated=F("allocated") + gpus))


def has_bookings(flavor: Flavor) -> bool:
    """Whether anything is booked that may leave less of a kind."""
    return booked_beside(flavor).exists()
