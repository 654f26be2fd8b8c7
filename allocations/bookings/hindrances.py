"""What stands in the way of a booking, as far as the portal knows; writes nothing."""

from dataclasses import dataclass
from datetime import datetime

from allocations import provisioners
from allocations.bookings.levels import lowest
from allocations.bookings.promised import levels_of
from allocations.bookings.quotas import rooms_of
from allocations.models import Allocation
from allocations.schedule import Provisioner
from capacity.chain.words import INCREASE_ADVICE
from fleet.models import Cluster
from provisioning.desired.isolation import is_for
from ui.amounts import gpus


@dataclass(frozen=True, kw_only=True)
class Hindrance:
    """One thing that stands in the way: its code and place stay the same while the numbers in its sentence change."""

    code: str
    where: str
    sentence: str

    @property
    def key(self) -> str:
        """What tells it from any other hindrance."""
        return f"{self.code} {self.where}".strip()


def hindrances(allocation: Allocation, *, now: datetime) -> list[Hindrance]:
    """Everything that stands in the way of a locked booking."""
    both = of_place(allocation), _of_room(allocation, now=now)
    return [each for each in both if each is not None]


def of_place(allocation: Allocation) -> Hindrance | None:
    """Why a locked booking could not begin where it is to; None where it could."""
    place, flavor = allocation.tenancy, allocation.flavor
    cluster = (
        flavor.cluster
        if flavor is not None
        else place.cluster
        if place is not None
        else None
    )
    if place is not None and not place.is_here:
        return _of_cluster("is_leaving", place.cluster, "The team leaves {}.")
    if cluster is not None and not cluster.enabled:
        return _of_cluster("cluster_off", cluster, "{} is out of use.")
    if cluster is not None and cluster.is_away:
        words = f"{cluster.title} does not answer: {cluster.message}"
        return Hindrance(code="cluster_away", where=cluster.name, sentence=words)
    if place is not None and flavor is not None and not is_for(flavor, place):
        words = "These GPUs of {} are not for this team."
        return _of_cluster("not_for_this_team", flavor.cluster, words)
    refusal = provisioners.hindrance(allocation)
    if refusal is None:
        return None
    return Hindrance(
        code=refusal.code, where=allocation.where, sentence=refusal.message
    )


def _of_cluster(code: str, cluster: Cluster, words: str) -> Hindrance:
    return Hindrance(
        code=code, where=cluster.name, sentence=words.format(cluster.title)
    )


def _of_room(allocation: Allocation, *, now: datetime) -> Hindrance | None:
    """How many GPUs will be too few when a locked booking begins, as far as is known; None where all are there."""
    flavor, start = allocation.flavor, max(allocation.starts_at, now)
    if flavor is None:
        return _of_quota(allocation, start=start, now=now)
    # Its own GPUs are among what is promised: what is below zero then is missing.
    missing = -lowest(levels_of(flavor, now=now), start=start, end=start)
    if missing <= 0:
        return None
    why = f": {flavor.azure_limit} stops the pool" if flavor.is_kept_small else ""
    return Hindrance(
        code="not_enough_free",
        where=f"{flavor.cluster.name}/{flavor.name}",
        sentence=f"{gpus(missing, flavor.kind)} too few can be had on {flavor.cluster.title} when it begins{why}.",
    )


def _of_quota(
    allocation: Allocation, *, start: datetime, now: datetime
) -> Hindrance | None:
    """Which quota of Azure has no room for a locked booking's machines when it begins; None where all have."""
    if allocation.provisioner != Provisioner.AZURE:
        return None
    # Its own machines are among what is promised: what is below zero then is missing.
    found = [
        (lowest(one.levels, start=start, end=start), one.quota)
        for one in rooms_of(allocation.spec, now=now)
    ]
    left, quota = min(found, default=(0, ""))
    if left >= 0:
        return None
    return Hindrance(
        code="beyond_quota",
        where=quota,
        sentence=beyond(allocation, min(-left, allocation.count), quota),
    )


def beyond(allocation: Allocation, missing: int, quota: str) -> str:
    """That so many of a booking's machines are too many for a quota, and what to do."""
    return f"{missing} × {allocation.spec['vm_size']} more than {quota} has room for. {INCREASE_ADVICE}"
