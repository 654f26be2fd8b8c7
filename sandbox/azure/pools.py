"""Agent pools of managed clusters: their nodes are those of the sandbox's Kubernetes clusters."""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.azure import clusters, sizes
from sandbox.azure.bodies import number_of
from sandbox.azure.clusters import Clusters
from sandbox.azure.errors import (
    ArmError,
    conflict,
    invalid,
    link_not_allowed,
    no_such_resource,
    pool_over_quota,
)
from sandbox.azure.fleet import Fleet
from sandbox.azure.operations import Operations
from sandbox.azure.roles import Roles
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.state import Resource, State
from sandbox.azure.usage import POOL, RESERVATION, Usage
from sandbox.azure_world import CLUSTER_IDENTITY_ID
from sandbox.clusters import GPU_TAINT, labels_of
from sandbox.world import NodeGroup

MANY = clusters.ONE + "/agentPools"
ONE = MANY + "/{pool}"
NAME = re.compile(r"[a-z][a-z0-9]{0,11}", re.ASCII)
MOST_NODES = 1000
FIXED = (
    "vmSize",
    "availabilityZones",
    "scaleSetPriority",
    "capacityReservationGroupID",
)
# What a call may say of a pool; anything else that AKS knows is taken and has no effect.
DEFAULTS: Mapping[str, Any] = {
    "count": 1,
    "mode": "User",
    "osType": "Linux",
    "osSKU": "Ubuntu",
    "type": "VirtualMachineScaleSets",
    "enableAutoScaling": False,
    "scaleSetPriority": "Regular",
}


@dataclass(frozen=True)
class Pools:
    """Creates, shows, scales and deletes them."""

    state: State
    operations: Operations
    usage: Usage
    fleet: Fleet
    clusters: Clusters
    roles: Roles

    def __post_init__(self) -> None:
        self.operations.teach("pool/write", self._written, self._not_written)
        self.operations.teach("pool/delete", self._deleted, self._not_written)

    def routes(self) -> list[Route]:
        """The operations of this module."""
        return [
            Route("GET", MANY, clusters.VERSION, self.many),
            Route("GET", ONE, clusters.VERSION, self.one),
            Route("PUT", ONE, clusters.VERSION, self.put),
            Route("DELETE", ONE, clusters.VERSION, self.delete),
        ]

    def begin(self) -> None:
        """Describe the world's node groups as pools, unless there are some already, and have them looked after."""
        for name, spec in self.fleet.specs.items():
            at = self.clusters.id_of(name)
            if not list(self.state.all(POOL, at)):
                for group in spec.node_groups:
                    self.state.put(
                        _resource(f"{at}/agentPools/{group.name}", _described(group))
                    )
            self.fleet.begin(name)
            for pool in self.state.all(POOL, at):
                self.fleet.keep(name, pool)

    def one(self, call: Call) -> Answer:
        """Answer with a pool."""
        return Answer(200, self._shown(self.clusters.need(call), self._need(call)))

    def many(self, call: Call) -> Answer:
        """Answer with the pools of a cluster."""
        cluster = self.clusters.need(call)
        rows = self.state.all(POOL, self.clusters.id_of(cluster))
        return Answer(200, {"value": [self._shown(cluster, row) for row in rows]})

    def put(self, call: Call) -> Answer:
        """Create a pool, or change it: its count, its limits, its labels."""
        cluster, said = self.clusters.need(call), call.body().get("properties") or {}
        resource_id = f"{self.clusters.id_of(cluster)}/agentPools/{call.part('pool')}"
        known = self.state.get(resource_id)
        if known is None:
            wanted = _read(call.part("pool"), {**DEFAULTS, **said})
            wanted = self._associated(call, resource_id, wanted)
            made, status, doing = _resource(resource_id, wanted), 201, "Creating"
        else:
            self._check_change(call, known, said)
            wanted = _read(known["name"], {**known["properties"], **said})
            made, status, doing = _resource(resource_id, wanted), 200, "Updating"
        self._check_quota(cluster, made)
        made["properties"]["provisioningState"] = doing
        self.state.put(made)
        operation = self.operations.begin(
            call, "pool/write", resource_id, cluster=cluster
        )
        headers = self.operations.headers(
            call, operation, self.fleet.specs[cluster].region
        )
        return Answer(status, self._shown(cluster, made), headers)

    def delete(self, call: Call) -> Answer:
        """Delete a pool with its nodes; what reservation it was associated with, it no longer is."""
        cluster = self.clusters.need(call)
        known = self.state.get(
            f"{self.clusters.id_of(cluster)}/agentPools/{call.part('pool')}"
        )
        if known is None:
            return Answer(204)
        self._check_idle(known)
        others = self.state.all(POOL, self.clusters.id_of(cluster))
        is_last = not any(
            one["properties"]["mode"] == "System"
            for one in others
            if one["id"] != known["id"]
        )
        if known["properties"]["mode"] == "System" and is_last:
            raise invalid(
                "There has to be at least one system agent pool.", "SystemPoolRequired"
            )
        known["properties"]["provisioningState"] = "Deleting"
        self.state.put(known)
        operation = self.operations.begin(
            call, "pool/delete", known["id"], cluster=cluster
        )
        headers = self.operations.headers(
            call, operation, self.fleet.specs[cluster].region
        )
        return Answer(202, None, headers)

    def _written(self, resource_id: str, given: Mapping[str, Any]) -> None:
        pool, cluster = self.state.resources[resource_id.lower()], str(given["cluster"])
        said = pool["properties"]
        self._check_quota(cluster, pool)
        self.fleet.resize(cluster, pool, self._wanted(cluster, pool))
        said["provisioningState"] = "Succeeded"
        self.state.put(pool)
        self.fleet.keep(cluster, pool)

    def _not_written(self, resource_id: str, given: Mapping[str, Any]) -> None:
        if (pool := self.state.get(resource_id)) is not None:
            pool["properties"]["provisioningState"] = "Failed"
            self.state.put(pool)

    def _deleted(self, resource_id: str, given: Mapping[str, Any]) -> None:
        pool = self.state.resources[resource_id.lower()]
        self.fleet.forget(str(given["cluster"]), pool)
        self.state.remove(resource_id)

    def _wanted(self, cluster: str, pool: Resource) -> int:
        """How many nodes a pool shall have: with an autoscaler, as many as it has, within its limits."""
        said = pool["properties"]
        if not said["enableAutoScaling"]:
            return int(said["count"])
        there = len(self.fleet.machines(cluster, pool["name"]))
        return max(int(said["minCount"]), min(there, int(said["maxCount"])))

    def _associated(
        self, call: Call, resource_id: str, wanted: dict[str, Any]
    ) -> dict[str, Any]:
        """What of a group's id stays: nothing where it has no reservation, and nobody says so."""
        asked = wanted.pop("capacityReservationGroupID", None)
        if not asked:
            return wanted
        group = self.state.get(str(asked))
        if (
            group is None
            or group["type"] != "Microsoft.Compute/capacityReservationGroups"
        ):
            name = str(asked).rpartition("/")[2]
            raise no_such_resource(
                "Microsoft.Compute/capacityReservationGroups", name, call.part("group")
            )
        action = "Microsoft.Compute/capacityReservationGroups/deploy/action"
        if not self.roles.allows(CLUSTER_IDENTITY_ID, action, group["id"]):
            write = f"{POOL}/write"
            raise link_not_allowed(CLUSTER_IDENTITY_ID, write, resource_id, group["id"])
        has_reservation = any(True for _ in self.state.all(RESERVATION, group["id"]))
        return (
            {**wanted, "capacityReservationGroupID": asked}
            if has_reservation
            else wanted
        )

    def _check_change(self, call: Call, known: Resource, said: dict[str, Any]) -> None:
        self._check_idle(known)
        etag = call.headers.get("if-match", "")
        if etag not in ("", "*", known["properties"]["eTag"]):
            message = f"The eTag of agent pool '{known['name']}' has changed since it was read."
            raise ArmError(412, "PreconditionFailed", message, is_bare=True)
        for field in FIXED:
            there = known["properties"].get(field) or None
            if field in said and (said[field] or None) != there:
                raise invalid(
                    f"Changing property 'properties.{field}' is not allowed.",
                    "PropertyChangeNotAllowed",
                )

    def _check_idle(self, known: Resource) -> None:
        if self.operations.running(known["id"]) is not None:
            doing = known["properties"]["provisioningState"]
            message = (
                f"Operation is not allowed: Another operation ({doing}) is in progress, please wait for it to finish "
                "before starting a new operation. See https://aka.ms/aks-pending-operation for more details"
            )
            raise conflict(message)

    def _check_quota(self, cluster: str, pool: Resource) -> None:
        region = self.fleet.specs[cluster].region
        count = self._wanted(cluster, pool)
        size = sizes.find(pool["properties"]["vmSize"])
        more = count - len(self.fleet.machines(cluster, pool["name"]))
        if size is None or more <= 0:
            return
        after = self.usage.used(region, nodes={(cluster, pool["name"]): count})
        if self.state.get(pool["id"]) is None:
            family = (
                "lowPriorityCores"
                if pool["properties"]["scaleSetPriority"] == "Spot"
                else size.family
            )
            for name in (
                (family,) if family == "lowPriorityCores" else (family, "cores")
            ):
                after[name] += size.vcpus * self._unreserved(cluster, pool, more)
        self.usage.check(region, after, pool_over_quota)

    def _unreserved(self, cluster: str, pool: Resource, nodes: int) -> int:
        """How many nodes of a new pool find no idle reservation."""
        group = str(pool["properties"].get("capacityReservationGroupID") or "")
        idle = 0
        for reservation in self.state.all(RESERVATION, group) if group else ():
            if (
                reservation["sku"]["name"].lower()
                == pool["properties"]["vmSize"].lower()
            ):
                idle += max(
                    0,
                    self.usage.counted(reservation["id"])
                    - len(self.usage.machines(reservation)),
                )
        return max(0, nodes - idle)

    def _need(self, call: Call) -> Resource:
        cluster = self.clusters.need(call)
        known = self.state.get(
            f"{self.clusters.id_of(cluster)}/agentPools/{call.part('pool')}"
        )
        if known is None:
            message = f"Could not find Agent Pool '{call.part('pool')}' in cluster '{cluster}'."
            raise ArmError(404, "NotFound", message, is_bare=True)
        return known

    def _shown(self, cluster: str, pool: Resource) -> Resource:
        said = dict(pool["properties"])
        if said["provisioningState"] == "Succeeded":
            said["count"] = len(self.fleet.machines(cluster, pool["name"]))
        return {**pool, "properties": said}


def _resource(resource_id: str, said: dict[str, Any]) -> Resource:
    etag = str(uuid.uuid4())
    made = {
        "provisioningState": "Succeeded",
        "powerState": {"code": "Running"},
        **said,
        "eTag": etag,
    }
    made |= {
        "orchestratorVersion": clusters.KUBERNETES,
        "currentOrchestratorVersion": clusters.KUBERNETES,
    }
    return {
        "id": resource_id,
        "name": resource_id.rpartition("/")[2],
        "type": POOL,
        "properties": made,
    }


def _described(group: NodeGroup) -> dict[str, Any]:
    """A node group of the world as a call would have said it."""
    said = {
        **DEFAULTS,
        "count": group.nodes,
        "vmSize": group.instance_type,
        "mode": "System" if group.name == "system" else "User",
        "nodeLabels": labels_of(group),
        "nodeTaints": ["{}={}:{}".format(*GPU_TAINT)] if group.gpus else [],
    }
    if group.most:
        said |= {
            "enableAutoScaling": True,
            "minCount": group.nodes,
            "maxCount": group.most,
        }
    return said | ({"scaleSetPriority": "Spot"} if group.spot else {})


def _read(name: str, said: dict[str, Any]) -> dict[str, Any]:
    if not NAME.fullmatch(name):
        message = (
            f"The value of parameter agentPoolProfile.name is invalid. Error details: '{name}' must begin with a "
            "lower case letter, and have twelve lower case letters and digits at most."
        )
        raise invalid(message)
    if sizes.find(str(said.get("vmSize") or "")) is None:
        message = f"The VM size of {said.get('vmSize')} is not allowed in your subscription in location."
        raise invalid(message, "VMSizeNotSupported")
    least = 1 if said["mode"] == "System" else 0
    count = number_of(
        said["count"], "agentPoolProfile.count", least=least, most=MOST_NODES
    )
    if said["enableAutoScaling"]:
        _check_limits(said, count)
    else:
        said = {**said, "minCount": None, "maxCount": None}
    return {key: value for key, value in said.items() if value is not None}


def _check_limits(said: dict[str, Any], count: int) -> None:
    low = number_of(
        said.get("minCount"), "agentPoolProfile.minCount", least=0, most=MOST_NODES
    )
    high = number_of(
        said.get("maxCount"), "agentPoolProfile.maxCount", least=1, most=MOST_NODES
    )
    if low > high:
        raise invalid(
            "The value of parameter agentPoolProfile.minCount is greater than maxCount."
        )
    if not low <= count <= high:
        message = (
            f"The value of parameter agentPoolProfile.count was {count}. It must be greater or equal to minCount:{low} "
            f"and less than or equal to maxCount:{high}."
        )
        raise invalid(message)
