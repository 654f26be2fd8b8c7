"""Capacity reservation groups: what holds reservations together, and what pools are associated with."""

from dataclasses import dataclass
from typing import Any

from sandbox.azure.bodies import location_of, name_of, tags_of
from sandbox.azure.errors import ArmError, conflict, invalid, no_such_resource
from sandbox.azure.operations import Operations
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.state import Resource, State
from sandbox.azure.usage import RESERVATION, Usage

KIND = "Microsoft.Compute/capacityReservationGroups"
VERSION = "2026-04-01"
IN_GROUP = "/subscriptions/{subscription}/resourceGroups/{group}/providers/" + KIND
ONE = IN_GROUP + "/{name}"
EVERYWHERE = "/subscriptions/{subscription}/providers/" + KIND
TYPES = ("Targeted", "Open", "Block")
# Azure itself takes some seconds to notice that a group's last reservation is gone.
NOTICES_AFTER = 1.0
LONGEST_NAME = 80


@dataclass(frozen=True)
class Groups:
    """Creates, shows, changes and deletes them."""

    state: State
    operations: Operations
    usage: Usage

    def __post_init__(self) -> None:
        self.operations.teach(
            "group/delete", lambda resource_id, _: self.state.remove(resource_id)
        )

    def routes(self) -> list[Route]:
        """The operations of this module."""
        return [
            Route("GET", IN_GROUP, VERSION, self.many),
            Route("GET", EVERYWHERE, VERSION, self.many),
            Route("GET", ONE, VERSION, self.one),
            Route("PUT", ONE, VERSION, self.put),
            Route("PATCH", ONE, VERSION, self.patch),
            Route("DELETE", ONE, VERSION, self.delete),
        ]

    def one(self, call: Call) -> Answer:
        """Answer with a group."""
        return Answer(200, self._shown(self.need(call), call.query.get("$expand", "")))

    def many(self, call: Call) -> Answer:
        """Answer with the groups of a resource group, or of the subscription."""
        below = f"/subscriptions/{call.part('subscription')}"
        if "group" in call.parts:
            below = f"{below}/resourceGroups/{call.part('group')}"
        if (which := call.query.get("resourceIdsOnly")) is not None:
            if which not in ("CreatedInSubscription", "SharedWithSubscription", "All"):
                raise invalid(
                    f"The value '{which}' of parameter resourceIdsOnly is invalid."
                )
            rows = (
                []
                if which == "SharedWithSubscription"
                else list(self.state.all(KIND, below))
            )
            short = [
                {key: row[key] for key in ("id", "type", "location")} for row in rows
            ]
            return Answer(200, {"value": short})
        expand = call.query.get("$expand", "")
        return Answer(
            200,
            {
                "value": [
                    self._shown(row, expand) for row in self.state.all(KIND, below)
                ]
            },
        )

    def put(self, call: Call) -> Answer:
        """Create a group, or change the tags of one that is there."""
        body, resource_id = call.body(), id_of(call)
        known = self.state.get(resource_id)
        made = {
            "id": resource_id,
            "name": name_of(call.part("name"), LONGEST_NAME),
            "type": KIND,
            "location": location_of(body),
            "tags": tags_of(body),
            "zones": _zones(body),
            "properties": {"reservationType": _type(body)},
        }
        if known is None:
            return Answer(201, self._shown(self.state.put(made), ""))
        for field in ("location", "zones"):
            if made[field] != known[field]:
                raise _immutable(field)
        if made["properties"] != known["properties"]:
            raise _immutable("properties.reservationType")
        return Answer(
            200, self._shown(self.state.put({**known, "tags": made["tags"]}), "")
        )

    def patch(self, call: Call) -> Answer:
        """Change a group's tags."""
        known, body = self.need(call), call.body()
        asked = (body.get("properties") or {}).get("reservationType")
        if asked is not None and asked != known["properties"]["reservationType"]:
            raise _immutable("properties.reservationType")
        tags = tags_of(body) if "tags" in body else known["tags"]
        return Answer(200, self._shown(self.state.put({**known, "tags": tags}), ""))

    def delete(self, call: Call) -> Answer:
        """Delete a group that nothing is in and nothing is associated with."""
        known = self.state.get(id_of(call))
        if known is None:
            return Answer(204)
        if inside := self._inside(known):
            names = ", ".join(
                f"'{resource_id.partition('/providers/')[2]}'" for resource_id in inside
            )
            message = (
                "Cannot delete resource while nested resources exist. Some existing nested resource IDs include: "
                f"{names}."
            )
            raise conflict(message, "CannotDeleteResource")
        if pools := self._pools(known):
            message = f"Capacity reservation group '{known['name']}' is associated with {', '.join(pools)}."
            raise conflict(message)
        operation = self.operations.begin(call, "group/delete", known["id"])
        return Answer(
            202, None, self.operations.headers(call, operation, known["location"])
        )

    def need(self, call: Call) -> Resource:
        """Return the group that a call names; raise ArmError 404."""
        known = self.state.get(id_of(call))
        if known is None:
            raise no_such_resource(KIND, call.part("name"), call.part("group"))
        return known

    def left(self, group: str) -> None:
        """Remember that a group has just lost a reservation."""
        self.state.table("left")[group.lower()] = self.state.clock.now()

    def _inside(self, known: Resource) -> list[str]:
        """The reservations of a group, as Azure counts them: the last one for a moment more."""
        inside = [one["id"] for one in self.state.all(RESERVATION, known["id"])]
        left = float(self.state.table("left").get(known["id"].lower(), 0))
        is_slow = (
            self.operations.seconds > 0
            and self.state.clock.now() < left + NOTICES_AFTER
        )
        if is_slow and not inside:
            return [f"{known['id']}/capacityReservations/"]
        return inside

    def _pools(self, known: Resource) -> list[str]:
        return [
            f"{cluster}/{name}"
            for (cluster, name), pool in self.usage.pools(known["location"])
            if str(pool["properties"].get("capacityReservationGroupID") or "").lower()
            == known["id"].lower()
        ]

    def _shown(self, known: Resource, expand: str) -> Resource:
        inside = list(self.state.all(RESERVATION, known["id"]))
        said: dict[str, Any] = dict(known["properties"])
        if inside:
            said["capacityReservations"] = [{"id": one["id"]} for one in inside]
        machines = [
            {"id": resource_id}
            for one in inside
            for resource_id in self.usage.machines(one)
        ]
        if expand.lower() == "instanceview":
            said["instanceView"] = {
                "capacityReservations": [
                    {"name": one["name"], **view(self.state, self.usage, one)}
                    for one in inside
                ]
            }
        elif expand and expand.lower() != "virtualmachines/$ref":
            raise invalid(f"The value '{expand}' of parameter $expand is invalid.")
        if machines:
            said["virtualMachinesAssociated"] = machines
        return {**known, "properties": said}


def view(state: State, usage: Usage, reservation: Resource) -> dict[str, Any]:
    """Return a reservation's instance view; ids in it are written in capitals, as Azure does now and then."""
    status = str(reservation["properties"]["provisioningState"])
    return {
        "utilizationInfo": {
            "currentCapacity": int(
                state.table("current").get(reservation["id"].lower(), 0)
            ),
            "virtualMachinesAllocated": [
                {"id": resource_id.upper()}
                for resource_id in usage.machines(reservation)
            ],
        },
        "statuses": [
            {
                "code": f"ProvisioningState/{status.lower()}",
                "level": "Error" if status == "Failed" else "Info",
                "displayStatus": f"Provisioning {status.lower()}",
            }
        ],
    }


def id_of(call: Call) -> str:
    """Return the id of the group that a call names."""
    at = f"/subscriptions/{call.part('subscription')}/resourceGroups/{call.part('group')}/providers/{KIND}"
    return f"{at}/{call.part('name')}"


def _type(body: dict[str, Any]) -> str:
    asked = str((body.get("properties") or {}).get("reservationType") or "Targeted")
    if asked not in TYPES:
        raise invalid(
            f"The value '{asked}' of parameter properties.reservationType is invalid."
        )
    if asked != "Targeted":
        message = f"Capacity reservation groups of type '{asked}' are not enabled for this subscription."
        raise ArmError(400, "NotSupported", message)
    return asked


def _zones(body: dict[str, Any]) -> list[str]:
    zones = body.get("zones") or []
    if not isinstance(zones, list) or any(
        zone not in ("1", "2", "3") for zone in zones
    ):
        raise invalid(
            "The zone(s) of the capacity reservation group are invalid.",
            "InvalidAvailabilityZone",
        )
    return zones


def _immutable(field: str) -> ArmError:
    return conflict(
        f"Changing property '{field}' is not allowed.", "PropertyChangeNotAllowed"
    )
