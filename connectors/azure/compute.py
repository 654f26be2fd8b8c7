"""Azure Compute: sizes, what is used of quota, capacity reservations and their groups. The only importer of its SDK.

Names are given by whoever reserves, so that what is asked twice is there once. Ids that Azure answers with may be in
capitals: compare them by `ids.same`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from connectors.azure.ids import check, same
from connectors.azure.session import DONE, AzureSession, Operation, shaped, word
from connectors.errors import PermanentError

INSTANCE_VIEW = "instanceView"
TARGETED = "Targeted"
LOCATION = "Location"
NO_TAGS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Size:
    """A size of virtual machines in one region, and whether this subscription gets it there.

    `zones` are those where it may be used, `closed_zones` those where Azure refuses it to this subscription. `closed`
    is why it is refused in the whole region (`NotAvailableForSubscription`, `QuotaId`), empty where it is not.
    `reservable_as` are the kinds of capacity reservation that it knows.
    """

    name: str
    location: str
    family: str
    vcpus: int
    gpus: int
    memory_gib: float
    zones: tuple[str, ...] = ()
    closed_zones: tuple[str, ...] = ()
    closed: str = ""
    reservable_as: frozenset[str] = frozenset()

    @property
    def is_reservable(self) -> bool:
        """Whether its capacity can be reserved on demand."""
        return TARGETED in self.reservable_as

    @classmethod
    def of(cls, told: Any, location: str) -> "Size":
        """What the SDK gives for one."""
        known = {each.name: each.value for each in told.capabilities or ()}
        places = [
            each
            for each in told.location_info or ()
            if same(each.location or "", location)
        ]
        closed_zones, closed = _closed(told.restrictions or (), location)
        zones = {zone for each in places for zone in each.zones or ()} - closed_zones
        return cls(
            name=str(told.name),
            location=location,
            family=str(told.family),
            vcpus=int(known["vCPUs"]),
            gpus=int(float(known.get("GPUs") or 0)),
            memory_gib=float(known.get("MemoryGB") or 0),
            zones=tuple(sorted(zones)),
            closed_zones=tuple(sorted(closed_zones)),
            closed=closed,
            reservable_as=_kinds(known),
        )


@dataclass(frozen=True)
class Usage:
    """What is used of a limit in a region, in vCPUs: of a family, of `cores` (all), or of `lowPriorityCores` (spot)."""

    name: str
    title: str
    used: int
    limit: int

    @property
    def left(self) -> int:
        """What may still be used; a limit may have been lowered below what is."""
        return max(0, self.limit - self.used)


@dataclass(frozen=True)
class ReservationGroup:
    """A capacity reservation group; `reservations` and `machines` are ids."""

    id: str
    name: str
    location: str
    kind: str = TARGETED
    zones: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    reservations: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()

    @classmethod
    def of(cls, told: Any) -> "ReservationGroup":
        """What the SDK gives for one."""
        said = told.properties
        return cls(
            id=str(told.id),
            name=str(told.name),
            location=str(told.location),
            kind=word(said and said.reservation_type) or TARGETED,
            zones=tuple(told.zones or ()),
            tags=dict(told.tags or {}),
            reservations=_ids(said and said.capacity_reservations),
            machines=_ids(said and said.virtual_machines_associated),
        )


@dataclass(frozen=True)
class Reservation:
    """A capacity reservation: so many machines of a size.

    `state` is Creating, Updating, Succeeded, Failed or Deleting. `capacity` is what was asked for last, `held` what
    Azure holds now: less while or after a change failed. `associated` are the machines of the group's users that
    match, `allocated` those of them that run; both are ids. More allocated than held is legal, and without guarantee.
    """

    id: str
    name: str
    location: str
    size: str
    capacity: int
    state: str
    zone: str = ""
    held: int = 0
    allocated: tuple[str, ...] = ()
    associated: tuple[str, ...] = ()
    created_at: datetime | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def used(self) -> int:
        """How many of those that are held run machines."""
        return min(self.held, len(self.allocated))

    @property
    def idle(self) -> int:
        """How many of those that are held run none."""
        return self.held - self.used

    @property
    def overallocated(self) -> int:
        """How many machines run beyond what is held."""
        return max(0, len(self.allocated) - self.held)

    @classmethod
    def of(cls, told: Any) -> "Reservation":
        """What the SDK gives for one, read with its instance view."""
        said, view = told.properties, told.properties.instance_view
        use = view.utilization_info if view else None
        held = use.current_capacity if use else None
        return cls(
            id=str(told.id),
            name=str(told.name),
            location=str(told.location),
            size=str(told.sku.name),
            capacity=int(told.sku.capacity),
            state=word(said.provisioning_state),
            zone=(told.zones or [""])[0],
            # Before 2023 Azure said nothing of it, and held what was asked for.
            held=int(told.sku.capacity if held is None else held),
            allocated=_ids(use and use.virtual_machines_allocated),
            associated=_ids(said.virtual_machines_associated),
            created_at=said.time_created,
            tags=dict(told.tags or {}),
        )


@dataclass(frozen=True)
class AzureCompute:
    """Reads sizes and quota, and reserves capacity; raises as `session` says."""

    session: AzureSession

    def sizes(self, location: str) -> list[Size]:
        """Return the sizes of virtual machines of a region, also those that this subscription does not get there."""
        check(region=location)
        query = f"location eq '{location}'"
        rows = self.session.call(
            lambda: list(self._client.resource_skus.list(filter=query))
        )
        machines = [row for row in rows if row.resource_type == "virtualMachines"]
        return [shaped(lambda row: Size.of(row, location), row) for row in machines]

    def usages(self, location: str) -> list[Usage]:
        """Return what is used of each limit in a region; reserved capacity counts, used or not."""
        check(region=location)
        rows = self.session.call(lambda: list(self._client.usage.list(location)))
        return [shaped(_usage, row) for row in rows]

    def group(self, resource_group: str, name: str) -> ReservationGroup | None:
        """Return a group, None where there is none of this name."""
        check(resource_group=resource_group, reservation_group=name)
        told = self.session.read(
            lambda: self._groups.get(resource_group, name, expand=INSTANCE_VIEW)
        )
        return None if told is None else shaped(ReservationGroup.of, told)

    def groups(self, resource_group: str = "") -> list[ReservationGroup]:
        """Return the groups of a resource group, or of the whole subscription."""
        if resource_group:
            check(resource_group=resource_group)
        rows = self.session.call(
            lambda: list(
                self._groups.list_by_resource_group(resource_group)
                if resource_group
                else self._groups.list_by_subscription()
            )
        )
        return [shaped(ReservationGroup.of, row) for row in rows]

    def ensure_group(
        self,
        resource_group: str,
        name: str,
        *,
        location: str,
        zones: Iterable[str] = (),
        tags: Mapping[str, str] = NO_TAGS,
    ) -> ReservationGroup:
        """Make sure that there is a group; raises PermanentError(code="immutable") for one elsewhere of this name."""
        from azure.mgmt.compute.models import CapacityReservationGroup

        there = self.group(resource_group, name)
        if there is not None:
            wanted = (location, tuple(sorted(zones)))
            if (there.location, tuple(sorted(there.zones))) != wanted:
                raise PermanentError(
                    f"The group {name} is there already, in another region or other zones.",
                    code="immutable",
                )
            return there
        body = CapacityReservationGroup(
            location=location, zones=list(zones) or None, tags=dict(tags)
        )
        told = self.session.call(
            lambda: self._groups.create_or_update(resource_group, name, body)
        )
        return shaped(ReservationGroup.of, told)

    def begin_delete_group(self, resource_group: str, name: str) -> Operation:
        """Delete a group that has no reservation; done where there is none.

        TemporaryError while Azure still counts its last reservation, which it does for some seconds.
        """
        check(resource_group=resource_group, reservation_group=name)
        return self._unless_gone(
            lambda polling: self._groups.begin_delete(
                resource_group, name, polling=polling
            )
        )

    def reservation(
        self, resource_group: str, group: str, name: str
    ) -> Reservation | None:
        """Return a reservation with its use, None where there is none of this name."""
        check(resource_group=resource_group, reservation_group=group, reservation=name)
        told = self.session.read(
            lambda: self._reservations.get(
                resource_group, group, name, expand=INSTANCE_VIEW
            )
        )
        return None if told is None else shaped(Reservation.of, told)

    def reservations(self, resource_group: str, group: str) -> list[Reservation]:
        """Return the reservations of a group with their use; none of a group that is not there."""
        check(resource_group=resource_group, reservation_group=group)
        rows = self.session.read(
            lambda: list(
                self._reservations.list_by_capacity_reservation_group(
                    resource_group, group, expand=INSTANCE_VIEW
                )
            )
        )
        return [shaped(Reservation.of, row) for row in rows or ()]

    def begin_create_reservation(
        self,
        resource_group: str,
        group: str,
        name: str,
        *,
        location: str,
        size: str,
        capacity: int,
        zone: str = "",
        tags: Mapping[str, str] = NO_TAGS,
    ) -> Operation:
        """Reserve capacity, all of it or nothing. The same once more is one reservation.

        PermanentError with code quota, no_capacity, size_not_available, not_supported (the size cannot be reserved),
        no_parent (the group is not there), not_allowed (the group has one for this size and zone) or immutable.
        """
        from azure.mgmt.compute.models import CapacityReservation, Sku

        check(resource_group=resource_group, reservation_group=group, reservation=name)
        body = CapacityReservation(
            location=location,
            sku=Sku(name=size, capacity=capacity),
            zones=[zone] if zone else None,
            tags=dict(tags),
        )
        return self.session.begin(
            lambda polling: self._reservations.begin_create_or_update(
                resource_group, group, name, body, polling=polling
            )
        )

    def begin_resize_reservation(
        self, resource_group: str, group: str, name: str, capacity: int
    ) -> Operation:
        """Change how many machines are reserved; one whose raise failed is of use again once it has its old number."""
        from azure.mgmt.compute.models import CapacityReservationUpdate, Sku

        check(resource_group=resource_group, reservation_group=group, reservation=name)
        return self.session.begin(
            lambda polling: self._reservations.begin_update(
                resource_group,
                group,
                name,
                CapacityReservationUpdate(sku=Sku(capacity=capacity)),
                polling=polling,
            )
        )

    def begin_delete_reservation(
        self, resource_group: str, group: str, name: str
    ) -> Operation:
        """Delete a reservation that no machine is associated with; done where there is none."""
        check(resource_group=resource_group, reservation_group=group, reservation=name)
        return self._unless_gone(
            lambda polling: self._reservations.begin_delete(
                resource_group, group, name, polling=polling
            )
        )

    def _unless_gone(self, start: Any) -> Operation:
        try:
            return self.session.begin(start)
        except PermanentError as error:
            if error.code in ("not_found", "no_parent"):
                return DONE
            raise

    @property
    def _client(self) -> Any:
        from azure.mgmt.compute import ComputeManagementClient

        return self.session.client(ComputeManagementClient)

    @property
    def _groups(self) -> Any:
        return self._client.capacity_reservation_groups

    @property
    def _reservations(self) -> Any:
        return self._client.capacity_reservations


def _usage(told: Any) -> Usage:
    name = str(told.name.value)
    return Usage(
        name,
        str(told.name.localized_value or name),
        int(told.current_value),
        int(told.limit),
    )


def _kinds(known: Mapping[str, str]) -> frozenset[str]:
    if str(known.get("CapacityReservationSupported")).lower() != "true":
        return frozenset()
    # Older answers say only that it is supported.
    named = str(known.get("SupportedCapacityReservationTypes") or TARGETED)
    return frozenset(kind.strip() for kind in named.split(","))


def _closed(restrictions: Iterable[Any], location: str) -> tuple[set[str], str]:
    """The zones that are closed to this subscription, and why the whole region is, if it is."""
    zones: set[str] = set()
    for each in restrictions:
        info = each.restriction_info
        places = (info and info.locations) or each.values_property or ()
        if not any(same(place, location) for place in places):
            continue
        if word(each.type) == LOCATION:
            return zones, word(each.reason_code) or "NotAvailableForSubscription"
        zones |= set((info and info.zones) or ())
    return zones, ""


def _ids(rows: Any) -> tuple[str, ...]:
    return tuple(str(row.id) for row in rows or ())
