"""What a tenancy should be: the contract between what teams hold and what stands on a cluster. Pure.

A spec that exists is safe to render: whatever could reach another's namespace, select more than one, or exceed what
a flavor may have, is refused when it is made or read.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fleet import egress, services
from fleet.egress import EgressRule
from fleet.names import OBJECT_NAME, RESOURCE, WHOLE_GPU, is_shared_space
from fleet.services import SharedService
from provisioning.desired.naming import LONGEST, SLUG_PATTERN, namespaces_of
from provisioning.desired.priorities import DEFAULT_PRIORITY, PRIORITIES
from provisioning.drift import adopting

LARGEST_GPUS = 100_000
LARGEST_OF_A_GPU = 10_000
MOST_FLAVORS = 63
LARGEST_WEIGHT = 100
MOST_VOLUMES, LARGEST_GIB = 100, 65_536
ONCE, MANY = "ReadWriteOnce", "ReadWriteMany"
GPU = WHOLE_GPU
# Every cluster has the portal's own ResourceFlavor for work without GPUs, named like this.
CPU_FLAVOR = "quartermaster-cpu"
ENVIRONMENTS = ("dev", "test", "production")
KUEUE, VOLCANO = "kueue", "volcano"
STOPS = ("None", "Hold", "HoldAndDrain")

INSTALLATION = re.compile(r"[a-z0-9]{1,16}")
OBJECT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
VOLUME_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", re.ASCII)
COST_CENTRE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class SpecRefused(ValueError):
    """A desired state that must never reach a cluster."""


@dataclass(frozen=True, kw_only=True)
class FlavorQuota:
    """GPUs of one flavor: `gpus` guaranteed, `borrow` more when others leave theirs idle.

    Work may still run on `over` more, which the namespace has room for and the queue does not guarantee.
    """

    name: str
    gpus: int
    borrow: int = 0
    cpu_per_gpu: int = 8
    memory_gib_per_gpu: int = 64
    over: int = 0
    resource: str = GPU

    def __post_init__(self) -> None:
        _whole(
            self.gpus, self.borrow, self.over, self.cpu_per_gpu, self.memory_gib_per_gpu
        )
        allowed = 0 <= self.gpus <= LARGEST_GPUS and 0 <= self.borrow <= self.gpus
        if not (allowed and 0 <= self.over <= LARGEST_GPUS):
            raise SpecRefused(
                f"{self.gpus} GPUs with {self.borrow} to borrow is not a quota."
            )
        if not all(
            1 <= n <= LARGEST_OF_A_GPU
            for n in (self.cpu_per_gpu, self.memory_gib_per_gpu)
        ):
            raise SpecRefused(
                f"{self.cpu_per_gpu} CPUs and {self.memory_gib_per_gpu} GiB do not go with a GPU."
            )
        _fits(SLUG_PATTERN, self.name, "a flavor's name")
        if self.name.startswith("quartermaster"):
            raise SpecRefused(f"{self.name!r} is the portal's own flavor.")
        _fits(RESOURCE, self.resource, "a resource that stands for GPUs", longest=60)

    @property
    def room(self) -> int:
        """GPUs that pods of the namespace may have at most: guaranteed, borrowed, and those still in use."""
        return self.gpus + self.borrow + self.over


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A volume that was granted, of so many GiB, for one node at a time or many."""

    name: str
    gib: int
    access: str

    @classmethod
    def asked(cls, spec: Mapping[str, Any]) -> "Volume":
        """The volume that a spec of the catalogue asks for, whatever else stands in it; raises SpecRefused."""
        return cls(name=spec["name"], gib=spec["gib"], access=spec["access"])

    def __post_init__(self) -> None:
        _fits(VOLUME_NAME, self.name, "a volume's name")
        _whole(self.gib)
        if not 1 <= self.gib <= LARGEST_GIB or self.access not in (ONCE, MANY):
            raise SpecRefused(f"{self.gib} GiB for {self.access!r} is not a volume.")


@dataclass(frozen=True, kw_only=True)
class TenancySpec:
    """Everything the manifests of one tenancy follow from; flavors are sorted by name."""

    tenancy: int
    team: str
    project: str
    cost_centre: str
    environment: str
    namespace: str
    entra_group: str
    cohort: str
    storage_class: str
    flavors: tuple[FlavorQuota, ...]
    # Granted, and those that have ended and nobody has taken down yet: sorted by name.
    volumes: tuple[Volume, ...] = ()
    ended_volumes: tuple[Volume, ...] = ()
    base_cpu: int = 16
    base_memory_gib: int = 64
    # Foreign changes that became what is wanted; the tenancy keeps them beside its spec.
    adopted: tuple[tuple[str, str, str], ...] = ()
    # Which portal's tenancy it is, where several work on one cluster; not stored either.
    installation: str = ""
    # Of a team that leaves: what its queue does, and whether its people may still work here.
    stop: str = "None"
    access: bool = True
    # What its queue does while the cluster is maintained.
    maintenance: str = "None"
    # The team's share when several want more than they hold.
    weight: int = 1
    jupyterhub_namespace: str = ""
    services: tuple[SharedService, ...] = ()
    egress: tuple[EgressRule, ...] = ()
    # Whether the cluster's network is one that enforces ways out by DNS name (Cilium).
    by_name: bool = False
    dashboards: bool = True
    # No pod has a higher one; the lower ones are open, too.
    highest_priority: str = DEFAULT_PRIORITY
    # Whose queues the cluster has.
    queueing: str = KUEUE

    def __post_init__(self) -> None:
        # The namespace's name follows from the environment.
        if self.environment not in ENVIRONMENTS:
            raise SpecRefused(f"{self.environment!r} is not an environment.")
        for policy in (self.stop, self.maintenance):
            if policy not in STOPS:
                raise SpecRefused(f"{policy!r} stops no queue.")
        self._check_names()
        self._check_numbers()
        if self.highest_priority not in tuple(PRIORITIES):
            raise SpecRefused(f"{self.highest_priority!r} is not a priority.")
        _yes_or_no(self.access, self.dashboards, self.by_name)
        self._check_queueing()
        names = [flavor.name for flavor in self.flavors]
        if names != sorted(set(names)) or len(names) > MOST_FLAVORS:
            raise SpecRefused(
                f"A queue has up to {MOST_FLAVORS} flavors, each once, in order."
            )
        disks = [volume.name for volume in self.volumes]
        if disks != sorted(set(disks)) or len(disks) > MOST_VOLUMES:
            raise SpecRefused(
                f"A namespace has up to {MOST_VOLUMES} volumes, each once, in order."
            )

    def _check_queueing(self) -> None:
        if self.queueing not in (KUEUE, VOLCANO):
            raise SpecRefused(f"{self.queueing!r} has no queues.")
        if self.has_volcano and len(self.flavor_of) < len(self.flavors):
            raise SpecRefused(
                "Volcano's queues do not tell two flavors of one resource apart."
            )

    def _check_names(self) -> None:
        _fits(SLUG_PATTERN, self.team, "a team's name")
        _fits(SLUG_PATTERN, self.project, "a project's name")
        _fits(COST_CENTRE, self.cost_centre, "a cost centre")
        _fits(OBJECT_ID, self.entra_group, "the object id of a group")
        _fits(OBJECT_NAME, self.cohort, "a cohort's name")
        if self.installation != "":
            _fits(INSTALLATION, self.installation, "the mark of an installation")
        if self.storage_class != "":
            _fits(OBJECT_NAME, self.storage_class, "a storage class")
        names = namespaces_of(
            team=self.team, project=self.project, environment=self.environment
        )
        if self.namespace not in names:
            raise SpecRefused(
                f"{self.namespace!r} is not the namespace of {self.team} / {self.project}."
            )
        if self.jupyterhub_namespace != "" and not is_shared_space(
            self.jupyterhub_namespace
        ):
            raise SpecRefused(
                f"{self.jupyterhub_namespace!r} is not a namespace that a hub can live in."
            )

    def _check_numbers(self) -> None:
        _whole(self.tenancy, self.base_cpu, self.base_memory_gib, self.weight)
        if self.tenancy < 0 or not 1 <= self.weight <= LARGEST_WEIGHT:
            raise SpecRefused(f"A share is 1 to {LARGEST_WEIGHT}, not {self.weight}.")
        if not (
            0 <= self.base_cpu <= LARGEST_GPUS
            and 0 <= self.base_memory_gib <= LARGEST_GPUS
        ):
            raise SpecRefused(
                f"{self.base_cpu} CPUs and {self.base_memory_gib} GiB are not a base."
            )

    @property
    def stop_policy(self) -> str:
        """What its queue does: the stricter of what the team's leaving and the cluster's maintenance make of it."""
        return max(self.stop, self.maintenance, key=STOPS.index)

    @property
    def has_volcano(self) -> bool:
        """Whether its queue is Volcano's."""
        return self.queueing == VOLCANO

    @property
    def flavor_of(self) -> dict[str, str]:
        """The flavor of each resource, where no two have the same."""
        return {flavor.resource: flavor.name for flavor in self.flavors}

    @property
    def egress_by_range(self) -> tuple[EgressRule, ...]:
        """Ways out to ranges of addresses."""
        return tuple(rule for rule in self.egress if rule.cidrs)

    @property
    def egress_by_name(self) -> tuple[EgressRule, ...]:
        """Ways out to DNS names; none where nothing enforces them."""
        return tuple(rule for rule in self.egress if rule.names) if self.by_name else ()

    def gpus(self) -> int:
        """GPUs guaranteed over all flavors."""
        return sum(flavor.gpus for flavor in self.flavors)

    @property
    def resources(self) -> list[str]:
        """What stands for GPUs here: whole ones always, and each MIG profile that a flavor has."""
        return [GPU, *sorted({flavor.resource for flavor in self.flavors} - {GPU})]

    def to_json(self) -> dict[str, Any]:
        """The spec as it is stored, without what was taken over and whose it is; the same spec gives the same JSON."""
        stored = asdict(self) | {
            "flavors": [asdict(flavor) for flavor in self.flavors],
            "volumes": [asdict(volume) for volume in self.volumes],
            "ended_volumes": [asdict(volume) for volume in self.ended_volumes],
            "services": [service.to_json() for service in self.services],
            "egress": [rule.to_json() for rule in self.egress],
        }
        del stored["adopted"], stored["installation"]
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "TenancySpec":
        """The spec that `to_json` stored, by this version or an earlier one; raises SpecRefused."""
        flavors = tuple(FlavorQuota(**flavor) for flavor in stored["flavors"])
        rest = {
            "volumes": volumes_from(stored.get("volumes") or []),
            "ended_volumes": volumes_from(stored.get("ended_volumes") or []),
            "services": services_from(stored.get("services") or []),
            "egress": egress_from(stored.get("egress") or []),
            "adopted": adopting.from_json(stored.get("adopted") or {}),
        }
        return cls(**{**stored, "flavors": flavors, **rest})


def volumes_from(stored: object) -> tuple[Volume, ...]:
    """Volumes as a spec holds them; raises SpecRefused."""
    if not isinstance(stored, list):
        raise SpecRefused(f"{stored!r} are not volumes.")
    try:
        return tuple(Volume(**volume) for volume in stored)
    except TypeError as error:
        raise SpecRefused(f"{stored!r} are not volumes.") from error


def services_from(stored: object) -> tuple[SharedService, ...]:
    """Shared services as a cluster or a spec holds them, by name; raises SpecRefused."""
    try:
        return services.services_from(stored)
    except services.ServiceRefused as refusal:
        raise SpecRefused(str(refusal)) from refusal


def egress_from(stored: object) -> tuple[EgressRule, ...]:
    """Ways out as a cluster or a spec holds them, by name; raises SpecRefused."""
    try:
        return egress.egress_from(stored)
    except egress.EgressRefused as refusal:
        raise SpecRefused(str(refusal)) from refusal


def _fits(
    pattern: re.Pattern[str], text: object, what: str, *, longest: int = LONGEST
) -> None:
    if not (isinstance(text, str) and len(text) <= longest and pattern.fullmatch(text)):
        raise SpecRefused(f"{text!r} cannot be {what}.")


def _yes_or_no(*values: object) -> None:
    if any(type(value) is not bool for value in values):
        raise SpecRefused(f"{values!r} are not yes or no.")


def _whole(*numbers: object) -> None:
    if any(type(number) is not int for number in numbers):
        raise SpecRefused(f"{numbers!r} are not whole numbers.")
