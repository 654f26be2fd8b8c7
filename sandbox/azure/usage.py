"""What is used of quota: virtual machines by the vCPUs that they have, and what is reserved and idle."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sandbox.azure import sizes
from sandbox.azure.errors import ArmError
from sandbox.azure.fleet import Fleet
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.sizes import TITLES, Size
from sandbox.azure.state import Resource, State
from sandbox.azure_world import AzureSpec

POOL = "Microsoft.ContainerService/managedClusters/agentPools"
RESERVATION = "Microsoft.Compute/capacityReservationGroups/capacityReservations"
SPOT_CORES, CORES = "lowPriorityCores", "cores"
PATTERN = "/subscriptions/{subscription}/providers/Microsoft.Compute/locations/{location}/usages"
PoolKey = tuple[str, str]
OverQuota = Callable[..., ArmError]


@dataclass(frozen=True)
class Usage:
    """Counts; nothing of it is kept, but for the limits."""

    state: State
    fleet: Fleet
    spec: AzureSpec

    def routes(self) -> list[Route]:
        """The operations of this module."""
        return [Route("GET", PATTERN, "2026-04-01", self.many)]

    def many(self, call: Call) -> Answer:
        """Answer with every family's use and limit in a region."""
        region = call.part("location").lower()
        used = self.used(region)
        rows = [
            {
                "limit": self.limit(region, name),
                "unit": "Count",
                "currentValue": used[name],
                "name": {"value": name, "localizedValue": title},
            }
            for name, title in TITLES.items()
        ]
        other = {"value": "availabilitySets", "localizedValue": "Availability Sets"}
        return Answer(
            200,
            {
                "value": [
                    {"limit": 2500, "unit": "Count", "currentValue": 0, "name": other},
                    *rows,
                ]
            },
        )

    def limit(self, region: str, name: str) -> int:
        """Return what may be used of a name in a region."""
        limits = self.state.table("limits")
        key = f"{region}/{name}".lower()
        if key in limits:
            return int(limits[key])
        return next(
            (
                one.limit
                for one in self.spec.limits
                if f"{one.region}/{one.name}".lower() == key
            ),
            0,
        )

    def raise_limit(self, region: str, name: str, limit: int) -> None:
        """Set a limit, and let the autoscalers look again."""
        self.state.table("limits")[f"{region}/{name}".lower()] = limit
        self.state.touch()
        self.fleet.wake()

    def used(
        self,
        region: str,
        *,
        nodes: Mapping[PoolKey, int] | None = None,
        reserved: Mapping[str, int] | None = None,
    ) -> Counter[str]:
        """Return the vCPUs in use by family, and of the whole region.

        `nodes` and `reserved` are what would be: so many nodes in a pool, so much under a reservation's id.
        """
        used: Counter[str] = Counter()
        taken: Counter[tuple[str, str, str]] = Counter()
        for (cluster, _), pool in self.pools(region):
            size = sizes.find(pool["properties"]["vmSize"])
            count = (nodes or {}).get((cluster, pool["name"]))
            zones = self._zones(cluster, pool, count)
            if size is None:
                continue
            if pool["properties"].get("scaleSetPriority") == "Spot":
                used[SPOT_CORES] += size.vcpus * len(zones)
                continue
            _add(used, size, len(zones))
            group = str(
                pool["properties"].get("capacityReservationGroupID") or ""
            ).lower()
            taken.update((group, size.name, zone) for zone in zones)
        for reservation in self._reservations(region):
            size = sizes.find(reservation["sku"]["name"])
            if size is not None:
                group = _parent(reservation["id"])
                in_use = taken[group, size.name, (reservation.get("zones") or [""])[0]]
                held = self.counted(reservation["id"])
                _add(
                    used,
                    size,
                    max(0, (reserved or {}).get(reservation["id"], held) - in_use),
                )
        return used

    def counted(self, resource_id: str) -> int:
        """Return how many machines of a reservation count, used or not."""
        return int(self.state.table("counted").get(resource_id.lower(), 0))

    def count(self, resource_id: str, machines: int) -> None:
        """Count so many machines under a reservation."""
        self.state.table("counted")[resource_id.lower()] = machines
        self.state.touch()

    def check(self, region: str, after: Counter[str], over: OverQuota) -> None:
        """Raise `over` for what would use more than now, and more than there may be."""
        before = self.used(region)
        if (name := self._excess(region, after)) is not None:
            more = after[name] - before[name]
            raise over(
                name,
                region,
                limit=self.limit(region, name),
                used=before[name],
                more=more,
            )

    def _excess(self, region: str, after: Counter[str]) -> str | None:
        before = self.used(region)
        names = (
            name
            for name in after
            if after[name] > max(before[name], self.limit(region, name))
        )
        return next(names, None)

    def permits(self, cluster: str, pools: Sequence[str]) -> bool:
        """Whether a cluster gets one node more of each of these pools."""
        region = self.fleet.specs[cluster].region
        more = Counter(pools)
        nodes = {
            (cluster, pool): len(self.fleet.machines(cluster, pool)) + count
            for pool, count in more.items()
        }
        return self._excess(region, self.used(region, nodes=nodes)) is None

    def machines(self, reservation: Resource) -> list[str]:
        """Return the ids of the machines that run under a reservation: those of its group's pools, size and zone."""
        group, size = (
            _parent(reservation["id"]),
            str(reservation["sku"]["name"]).lower(),
        )
        zone = (reservation.get("zones") or [""])[0]
        found = []
        for (cluster, name), pool in self.pools(reservation["location"]):
            said = pool["properties"]
            if str(said.get("capacityReservationGroupID") or "").lower() == group and (
                said["vmSize"].lower() == size
            ):
                found += [
                    self._machine_id(cluster, name, machine.name)
                    for machine in self.fleet.machines(cluster, name)
                    if machine.zone == zone
                ]
        return found

    def pools(self, region: str) -> Iterator[tuple[PoolKey, Resource]]:
        """Yield the pools of a region's clusters, with the names of cluster and pool."""
        for pool in self.state.all(POOL):
            cluster = pool["id"].split("/")[8]
            if (
                cluster in self.fleet.specs
                and self.fleet.specs[cluster].region == region.lower()
            ):
                yield (cluster, pool["name"]), pool

    def _zones(self, cluster: str, pool: Resource, count: int | None) -> list[str]:
        """The zone of each node that a pool has, or would have with so many."""
        there = [machine.zone for machine in self.fleet.machines(cluster, pool["name"])]
        if count is None:
            return there
        wanted = pool["properties"].get("availabilityZones") or [""]
        more = [wanted[number % len(wanted)] for number in range(len(there), count)]
        return (there + more)[:count]

    def _reservations(self, region: str) -> Iterator[Resource]:
        return (
            one
            for one in self.state.all(RESERVATION)
            if one["location"].lower() == region.lower()
        )

    def _machine_id(self, cluster: str, pool: str, node: str) -> str:
        spec, region = self.spec, self.fleet.specs[cluster].region
        group = f"MC_{spec.resource_group}_{cluster}_{region}"
        at = f"/subscriptions/{spec.subscription_id}/resourceGroups/{group}/providers/Microsoft.Compute"
        return f"{at}/virtualMachineScaleSets/aks-{pool}-vmss/virtualMachines/{node[-6:].lstrip('0') or '0'}"


def _add(used: Counter[str], size: Size, machines: int) -> None:
    used[size.family] += size.vcpus * machines
    used[CORES] += size.vcpus * machines


def _parent(resource_id: str) -> str:
    return resource_id.rpartition("/capacityReservations/")[0].lower()
