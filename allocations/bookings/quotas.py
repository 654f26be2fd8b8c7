"""How much of Azure's quotas is left from when on, beside all that is granted and booked of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allocations.bookings.levels import Change, Level, combined, levels
from allocations.models import Allocation
from allocations.schedule import Provisioner
from capacity.chain.sharing import GrowingNodes, machines_left
from capacity.connection import is_connected
from capacity.metering.keys import QuotaKey
from capacity.models import VmSize
from capacity.reservations.places import quota_place, subscription_of
from capacity.subscriptions.pools import Catalogue, quota_names, quota_words
from fleet.models import Flavor

Levels = tuple[Level, ...]


@dataclass(frozen=True)
class Room:
    """How many machines of a size fit a quota from when on; the quota is the subject of a sentence."""

    quota: str
    levels: Levels


@dataclass(frozen=True)
class Reserved:
    """Machines of a reservation that are granted, and the kind of GPU whose nodes they are; None for none.

    `to_come` are those of one that has begun that Azure has not made yet.
    """

    quotas: frozenset[QuotaKey]
    machines: int
    to_come: int
    vcpus_each: int
    flavor: int | None
    begun: datetime | None
    starts: datetime
    ends: datetime

    @property
    def vcpus(self) -> Sequence[Change]:
        """How its quotas change when it begins and ends."""
        return _while_held(
            -self.machines * self.vcpus_each, self.begun, self.starts, self.ends
        )

    @property
    def made(self) -> Sequence[Change]:
        """How many of its machines stand no more when it ends; a booking's do not stand yet."""
        return (
            [Change(self.ends, self.to_come - self.machines)]
            if self.begun is not None
            else []
        )

    @property
    def coming(self) -> Sequence[Change]:
        """How many more machines are to be made when it begins, and how many less when it ends."""
        machines = self.to_come if self.begun is not None else self.machines
        return _while_held(machines, self.begun, self.starts, self.ends)


@dataclass(frozen=True)
class QuotasInTime:
    """Quotas with all that is granted and booked of them: GPUs allocated from when on, and what is reserved."""

    known: Catalogue
    now: datetime
    gpus: Mapping[int, Levels]
    reserved: Sequence[Reserved]

    @classmethod
    def read(cls, known: Catalogue, *, now: datetime) -> "QuotasInTime":
        """What there is by now; two queries."""
        return cls(known, now, _gpus(known, now), list(_reserved(known)))

    def vcpus_left(self, key: QuotaKey, *, but: int = 0) -> Levels:
        """vCPUs of a quota that are left from now on, but for what the nodes of one pool take; empty for one not read.

        They are below zero where more is promised than there is.
        """
        row = self.known.quotas.get(key)
        if row is None:
            return ()
        sharing = (
            one for one in self.known.nodes if key in one.quotas and one.pool != but
        )
        reserved = [
            change for one in self.reserved if key in one.quotas for change in one.vcpus
        ]
        parts = (
            (Level(self.now, row.limit - row.used),),
            levels(-self.known.reserved_to_come(key), reserved, now=self.now),
            *(self._taken_by(one) for one in sharing),
        )
        return combined(parts, by=sum)

    def standing(self, nodes: GrowingNodes) -> Levels:
        """How many of some nodes take no more quota: those that were made of a reservation go when it ends."""
        changes = [
            change
            for one in self.reserved
            if one.flavor in nodes.kinds
            for change in one.made
        ]
        return levels(nodes.standing, changes, now=self.now)

    def coming(self, nodes: GrowingNodes) -> Levels:
        """How many machines are reserved or booked for some nodes that are not made yet: they take quota themselves."""
        changes = [
            change
            for one in self.reserved
            if one.flavor in nodes.carrying
            for change in one.coming
        ]
        return levels(nodes.to_come, changes, now=self.now)

    def to_add(self, nodes: GrowingNodes) -> Levels:
        """vCPUs of the nodes that have to be added for GPUs that are allocated, beside what is reserved for them."""
        kinds = [*nodes.kinds]

        def vcpus(amounts: Sequence[int]) -> int:
            standing, coming, *gpus = amounts
            return nodes.vcpus_to_come(
                dict(zip(kinds, gpus, strict=True)), standing=standing + coming
            )

        parts = (
            self.standing(nodes),
            self.coming(nodes),
            *(self.gpus[one] for one in kinds),
        )
        return combined(parts, by=vcpus)

    def _taken_by(self, nodes: GrowingNodes) -> Levels:
        return tuple(Level(one.at, -one.free) for one in self.to_add(nodes))

    def machines_left(
        self, key: QuotaKey, size: VmSize, nodes: GrowingNodes | None
    ) -> Levels:
        """How many machines of a size fit a quota, where some nodes are made of them; empty for a quota not read."""
        own = nodes if nodes is not None and key in nodes.quotas else None
        left = self.vcpus_left(key, but=own.pool if own is not None else 0)
        if not left or own is None:
            return (
                combined([left], by=lambda vcpus: vcpus[0] // size.vcpus)
                if left
                else ()
            )

        def machines(amounts: Sequence[int]) -> int:
            vcpus, carried = amounts
            return machines_left(
                vcpus, each=size.vcpus, carried=carried, per_node=own.vcpus
            )

        return combined([left, self.to_add(own)], by=machines)


def rooms_of(spec: Mapping[str, Any], *, now: datetime) -> list[Room]:
    """How many machines that are asked for fit each quota from when on; none where nothing was read. Seven queries."""
    if not is_connected():
        return []
    place = quota_place(spec)
    known = Catalogue.at([place])
    size = known.size(place, spec["vm_size"])
    if size is None:
        return []
    quotas, nodes = (
        QuotasInTime.read(known, now=now),
        known.nodes_for(spec.get("nodes_for", "")),
    )
    found = (
        (name, quotas.machines_left(QuotaKey(*place, name), size, nodes))
        for name in quota_names(size, is_spot=False)
    )
    return [Room(quota_words(name, size), left) for name, left in found if left]


def totals_of(flavor: Flavor, *, now: datetime) -> Levels:
    """How many GPUs of a kind can be had from when on, with what others are promised of its quotas.

    Six queries in Azure, none elsewhere.
    """
    known = Catalogue.of([flavor.cluster]) if flavor.azure_nodes is not None else None
    nodes = known.nodes_of(flavor) if known is not None else None
    if known is None or nodes is None:
        return (Level(now, flavor.gpus_total),)
    quotas, each = QuotasInTime.read(known, now=now), nodes.vcpus
    left = [
        one for key in nodes.quotas if (one := quotas.vcpus_left(key, but=nodes.pool))
    ]

    def total(amounts: Sequence[int]) -> int:
        standing, coming, *vcpus = amounts
        # What is reserved for the nodes takes quota itself: where that is too little, so many of it are not made.
        return flavor.obtainable_with(
            max(0, standing) + max(0, coming + min(vcpus) // each)
        )

    parts = (quotas.standing(nodes), quotas.coming(nodes), *left)
    return combined(parts, by=total) if left else (Level(now, flavor.gpus_total),)


def _gpus(known: Catalogue, now: datetime) -> Mapping[int, Levels]:
    """GPUs of each kind that are allocated from when on."""
    changes: dict[int, list[Change]] = defaultdict(list)
    rows = Allocation.objects.granted().filter(
        flavor__in=[one.pk for one in known.flavors]
    )
    for flavor, begun, starts, ends, gpus in rows.values_list(
        "flavor", "begun_at", "starts_at", "kept_until", "gpus"
    ):
        changes[flavor] += _while_held(gpus, begun, starts, ends)
    return {
        one.pk: levels(one.allocated, changes[one.pk], now=now) for one in known.flavors
    }


def _reserved(known: Catalogue) -> Iterator[Reserved]:
    kinds = {one.key: one for one in known.flavors}
    rows = (
        Allocation.objects.granted()
        .filter(provisioner=Provisioner.AZURE)
        .select_related("reservation")
    )
    missing: dict[int, int] = {}
    # What ends first gives back what was not made first: of several grants for one reservation the others keep it.
    for row in rows.order_by("kept_until", "pk"):
        to_come = _to_come(row, missing)
        flavor = kinds.get(row.spec.get("nodes_for", ""))
        # What has begun stays where it was made, whatever became of the cluster since.
        began = row.reservation
        subscription = (
            began.subscription if began is not None else subscription_of(flavor)
        )
        place = (subscription, row.spec["region"])
        size = known.size(place, row.spec["vm_size"])
        if size is not None:
            yield Reserved(
                quotas=frozenset(
                    QuotaKey(*place, one) for one in quota_names(size, is_spot=False)
                ),
                machines=row.count,
                to_come=to_come,
                vcpus_each=size.vcpus,
                flavor=None if flavor is None else flavor.pk,
                begun=row.begun_at,
                starts=row.starts_at,
                ends=row.kept_until,
            )


def _to_come(allocation: Allocation, missing: dict[int, int]) -> int:
    """How many of its machines Azure has not made; `missing` keeps how many are left to others of a reservation."""
    reservation = allocation.reservation
    if reservation is None:
        return 0
    left = missing.get(reservation.pk, max(0, reservation.machines - reservation.held))
    found = min(allocation.count, left)
    missing[reservation.pk] = left - found
    return found


def _while_held(
    amount: int, begun: datetime | None, starts: datetime, ends: datetime
) -> Sequence[Change]:
    """How much more is taken when a booking begins, and how much less when it or what is held ends."""
    end = Change(ends, -amount)
    return [end] if begun is not None else [Change(starts, amount), end]
