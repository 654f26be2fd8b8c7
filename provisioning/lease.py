"""The right to work on a tenancy: taken by conditional update, numbered, and lost by itself."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q

from provisioning.models import Tenancy

SECONDS = 5
LONGEST_WAIT = timedelta(minutes=5)


@dataclass(frozen=True)
class Lease:
    """A held lease; `number` is the fencing number that every write of its holder carries."""

    tenancy_id: int
    number: int

    def write(self, **fields: Any) -> bool:
        """Update the tenancy if this is still the newest lease; False when somebody else took over."""
        return bool(Tenancy.objects.filter(pk=self.tenancy_id, lease_no=self.number).update(**fields))

    def renew(self, *, now: datetime) -> bool:
        """Hold on for another five seconds; False when somebody else took over."""
        return self.write(lease_until=now + timedelta(seconds=SECONDS))


def take(tenancy_id: int, *, now: datetime) -> Lease | None:
    """Take the lease if nobody holds it; None otherwise.

    Taking it also books the next try, later with each attempt that left no status, so that a worker that dies loses
    nothing and a tenancy that kills its worker does not do so for ever.
    """
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    tenancy = Tenancy.objects.filter(free, pk=tenancy_id).only("lease_no", "attempts").first()
    if tenancy is None:
        return None
    wait = min(timedelta(seconds=SECONDS) * 2 ** min(max(tenancy.attempts - 1, 0), 8), LONGEST_WAIT)
    taken = Tenancy.objects.filter(free, pk=tenancy_id, lease_no=tenancy.lease_no).update(
        lease_no=F("lease_no") + 1,
        lease_until=now + timedelta(seconds=SECONDS),
        next_look_at=now + wait,
        attempts=F("attempts") + 1,
    )
    return Lease(tenancy_id, tenancy.lease_no + 1) if taken else None
