"""Capacity reservations: so many machines of a size that are kept, and paid for, used or not."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sandbox.azure import groups, sizes
from sandbox.azure.bodies import location_of, name_of, number_of, tags_of
from sandbox.azure.errors import (
    ArmError,
    busy,
    conflict,
    invalid,
    no_such_parent,
    no_such_resource,
    over_quota,
    size_not_available,
)
from sandbox.azure.groups import Groups
from sandbox.azure.operations import Operations
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.sizes import Size
from sandbox.azure.state import Resource, State
from sandbox.azure.usage import RESERVATION, Usage

IN_GROUP = groups.ONE + "/capacityReservations"
ONE = IN_GROUP + "/{reservation}"
MOST = 1000
LONGEST_NAME = 80


@dataclass(frozen=True)
class Reservations:
    """Creates, shows, changes and deletes them; what takes its time is an operation."""

    state: State
    operations: Operations
    usage: Usage
    groups: Groups

    def __post_init__(self) -> None:
        self.operations.teach("reservation/write", self._written, self._not_written)
        self.operations.teach("reservation/delete", self._deleted, self._not_deleted)

    def routes(self) -> list[Route]:
        """The operations of this module."""
        return [
            Route("GET", IN_GROUP, groups.VERSION, self.many),
            Route("GET", ONE, groups.VERSION, self.one),
            Route("PUT", ONE, groups.VERSION, self.put),
            Route("PATCH", ONE, groups.VERSION, self.patch),
            Route("DELETE", ONE, groups.VERSION, self.delete),
        ]

    def one(self, call: Call) -> Answer:
        """Answer with a reservation."""
        return Answer(200, self._shown(self._need(call), call.query.get("$expand", "")))

    def many(self, call: Call) -> Answer:
        """Answer with the reservations of a group."""
        group, expand = self.groups.need(call), call.query.get("$expand", "")
        rows = [
            self._shown(row, expand) for row in self.state.all(RESERVATION, group["id"])
        ]
        return Answer(200, {"value": rows})

    def put(self, call: Call) -> Answer:
        """Create a reservation, or change how many it reserves."""
        body, group = call.body(), self._group(call)
        resource_id = f"{group['id']}/capacityReservations/{call.part('reservation')}"
        known = self.state.get(resource_id)
        if known is not None:
            self._check_same(known, body)
            return self._change(call, known, body)
        wanted = self._read(call, group, body)
        self._check_alone(group, wanted)
        self._check_quota(wanted, int(wanted["sku"]["capacity"]))
        made = self.state.put(
            {
                **wanted,
                "id": resource_id,
                "properties": _born("Creating", self.state.clock.now()),
            }
        )
        return self._begin(call, made, before=0, status=201)

    def patch(self, call: Call) -> Answer:
        """Change how many a reservation reserves, or its tags."""
        return self._change(call, self._need(call), call.body())

    def delete(self, call: Call) -> Answer:
        """Delete a reservation that no machine is associated with."""
        resource_id = (
            f"{groups.id_of(call)}/capacityReservations/{call.part('reservation')}"
        )
        known = self.state.get(resource_id)
        if known is None:
            return Answer(204)
        if self.operations.running(resource_id) is not None:
            raise busy()
        if machines := self.usage.machines(known):
            message = (
                f"Capacity reservation '{known['name']}' cannot be deleted because it has {len(machines)} virtual "
                "machine(s) associated. Disassociate them before. See https://aka.ms/CapacityReservation."
            )
            raise conflict(message)
        known = self.state.put(_in_state(known, "Deleting"))
        operation = self.operations.begin(call, "reservation/delete", known["id"])
        return Answer(
            202, None, self.operations.headers(call, operation, known["location"])
        )

    def _change(self, call: Call, known: Resource, body: dict[str, Any]) -> Answer:
        if self.operations.running(known["id"]) is not None:
            raise busy()
        if "tags" in body:
            known = self.state.put({**known, "tags": tags_of(body)})
        before = self._current(known["id"])
        asked = (body.get("sku") or {}).get("capacity", before)
        capacity = number_of(asked, "sku.capacity", least=0, most=MOST)
        if (
            capacity == before
            and known["properties"]["provisioningState"] == "Succeeded"
        ):
            return Answer(200, self._shown(known, ""))
        self._check_quota(known, capacity)
        changed = _in_state(
            {**known, "sku": {**known["sku"], "capacity": capacity}}, "Updating"
        )
        return self._begin(call, self.state.put(changed), before=before, status=200)

    def _begin(self, call: Call, made: Resource, *, before: int, status: int) -> Answer:
        # What is asked for counts from now on; what is given up counts until it is.
        self.usage.count(made["id"], max(before, int(made["sku"]["capacity"])))
        operation = self.operations.begin(
            call, "reservation/write", made["id"], before=before
        )
        return Answer(
            status,
            self._shown(made, ""),
            self.operations.headers(call, operation, made["location"]),
        )

    def _written(self, resource_id: str, given: Mapping[str, Any]) -> None:
        known = self.state.resources[resource_id.lower()]
        capacity = int(known["sku"]["capacity"])
        self.state.table("current")[resource_id.lower()] = capacity
        self.usage.count(resource_id, capacity)
        self.state.put(_in_state(known, "Succeeded"))

    def _not_written(self, resource_id: str, given: Mapping[str, Any]) -> None:
        """All or nothing: what was there before is all that is there, and of no use until just that is asked for."""
        self.usage.count(resource_id, int(given["before"]))
        if (known := self.state.get(resource_id)) is not None:
            self.state.put(_in_state(known, "Failed"))

    def _deleted(self, resource_id: str, given: Mapping[str, Any]) -> None:
        self.state.remove(resource_id)
        self.state.table("current").pop(resource_id.lower(), None)
        self.usage.count(resource_id, 0)
        self.groups.left(resource_id.rpartition("/capacityReservations/")[0])

    def _not_deleted(self, resource_id: str, given: Mapping[str, Any]) -> None:
        if (known := self.state.get(resource_id)) is not None:
            self.state.put(_in_state(known, "Failed"))

    def _read(self, call: Call, group: Resource, body: dict[str, Any]) -> Resource:
        sku = body.get("sku") or {}
        capacity = number_of(sku.get("capacity"), "sku.capacity", least=0, most=MOST)
        location, zone = location_of(body), _zone(body)
        if location != group["location"]:
            message = (
                f"The location '{location}' of the capacity reservation must match the location '{group['location']}' "
                "of its capacity reservation group."
            )
            raise invalid(message)
        if (zone or "") not in (group["zones"] or [""]):
            message = (
                f"The zone '{zone or ''}' of the capacity reservation is not one of its capacity reservation group: "
                f"{', '.join(group['zones']) or 'none'}."
            )
            raise invalid(message)
        if (body.get("properties") or {}).get("scheduleProfile"):
            message = (
                "Future capacity reservations are not enabled for this subscription."
            )
            raise ArmError(400, "NotSupported", message)
        size = _size(
            str(sku.get("name") or ""), location, zone, call.part("subscription")
        )
        return {
            "name": name_of(call.part("reservation"), LONGEST_NAME),
            "type": RESERVATION,
            "location": location,
            "tags": tags_of(body),
            "sku": {"name": size.name, "capacity": capacity},
            "zones": [zone] if zone else [],
        }

    def _check_alone(self, group: Resource, wanted: Resource) -> None:
        for other in self.state.all(RESERVATION, group["id"]):
            if (other["sku"]["name"], other["zones"]) == (
                wanted["sku"]["name"],
                wanted["zones"],
            ):
                message = (
                    f"Capacity reservation group '{group['name']}' already has a capacity reservation "
                    f"'{other['name']}' for VM size '{wanted['sku']['name']}'"
                    f"{' in zone ' + wanted['zones'][0] if wanted['zones'] else ''}."
                )
                raise conflict(message)

    def _check_same(self, known: Resource, body: dict[str, Any]) -> None:
        asked = {
            "location": location_of(body),
            "sku.name": str(
                (body.get("sku") or {}).get("name") or known["sku"]["name"]
            ).lower(),
            "zones": [zone] if (zone := _zone(body)) else [],
        }
        there = {
            "location": known["location"],
            "sku.name": known["sku"]["name"].lower(),
            "zones": known["zones"],
        }
        for field, value in asked.items():
            if value != there[field]:
                raise conflict(
                    f"Changing property '{field}' is not allowed.",
                    "PropertyChangeNotAllowed",
                )

    def _check_quota(self, wanted: Resource, capacity: int) -> None:
        resource_id = str(wanted.get("id") or "")
        region = str(wanted["location"])
        after = self.usage.used(region, reserved={resource_id: capacity})
        if not resource_id:
            size = sizes.BY_NAME[wanted["sku"]["name"].lower()]
            after[size.family] += size.vcpus * capacity
            after["cores"] += size.vcpus * capacity
        self.usage.check(region, after, over_quota)

    def _current(self, resource_id: str) -> int:
        return int(self.state.table("current").get(resource_id.lower(), 0))

    def _group(self, call: Call) -> Resource:
        resource_id = groups.id_of(call)
        group = self.state.get(resource_id)
        if group is None:
            raise no_such_parent(
                "capacityReservationGroups/capacityReservations", resource_id
            )
        return group

    def _need(self, call: Call) -> Resource:
        known = self.state.get(
            f"{groups.id_of(call)}/capacityReservations/{call.part('reservation')}"
        )
        if known is None:
            name = f"{call.part('name')}/{call.part('reservation')}"
            raise no_such_resource(RESERVATION, name, call.part("group"))
        return known

    def _shown(self, known: Resource, expand: str) -> Resource:
        said = dict(known["properties"])
        if machines := self.usage.machines(known):
            said["virtualMachinesAssociated"] = [
                {"id": resource_id} for resource_id in machines
            ]
        if expand.lower() == "instanceview":
            said["instanceView"] = groups.view(self.state, self.usage, known)
        elif expand and expand.lower() != "virtualmachines/$ref":
            raise invalid(f"The value '{expand}' of parameter $expand is invalid.")
        return {**known, "properties": said}


def _size(name: str, region: str, zone: str | None, subscription: str) -> Size:
    size = sizes.find(name)
    if size is None or region not in size.zones:
        message = f"The value {name} provided for the VM size is not valid in location '{region}'."
        raise invalid(message)
    if "Targeted" not in size.reservable_as:
        kind = " of type Targeted" if size.reservable_as else ""
        message = (
            f"Capacity Reservation{kind} is not supported for VM size {size.name}."
        )
        raise ArmError(400, "NotSupported", message)
    closed = size.closed.get(region)
    if (zone and zone not in size.zones[region]) or (
        closed is not None and (not closed or zone in closed)
    ):
        raise size_not_available(size.name, region, zone or "", subscription)
    return size


def _zone(body: dict[str, Any]) -> str | None:
    zones = body.get("zones") or []
    if (
        not isinstance(zones, list)
        or len(zones) > 1
        or any(zone not in ("1", "2", "3") for zone in zones)
    ):
        message = "A capacity reservation has one availability zone at most."
        raise invalid(message, "InvalidAvailabilityZone")
    return zones[0] if zones else None


def _born(state: str, now: float) -> dict[str, Any]:
    at = datetime.fromtimestamp(now, UTC).isoformat()
    return {
        "reservationId": str(uuid.uuid4()),
        "platformFaultDomainCount": 3,
        "provisioningState": state,
        "provisioningTime": at,
        "timeCreated": at,
    }


def _in_state(known: Resource, state: str) -> Resource:
    return {**known, "properties": {**known["properties"], "provisioningState": state}}
