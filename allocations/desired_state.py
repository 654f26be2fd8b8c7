"""From what a team holds to what its tenancy should be. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from provisioning.spec import FlavorQuota, TenancySpec


@dataclass(frozen=True, kw_only=True)
class Place:
    """The parts of a tenancy's spec that allocations do not change."""

    tenancy: int
    team: str
    project: str
    cost_centre: str
    environment: str
    namespace: str
    entra_group: str
    cohort: str
    storage_class: str
    borrow_percent: int


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A flavor of the cluster, as far as a quota needs it."""

    name: str
    cpu_per_gpu: int
    memory_gib_per_gpu: int


def desired(place: Place, *, kinds: Iterable[Kind], held: Mapping[str, int]) -> TenancySpec:
    """The spec of a tenancy that holds these GPUs by flavor name; a flavor not held is there with none."""
    flavors = tuple(
        FlavorQuota(
            name=kind.name,
            gpus=held.get(kind.name, 0),
            borrow=held.get(kind.name, 0) * place.borrow_percent // 100,
            cpu_per_gpu=kind.cpu_per_gpu,
            memory_gib_per_gpu=kind.memory_gib_per_gpu,
        )
        for kind in sorted(kinds, key=lambda kind: kind.name)
    )
    return TenancySpec(
        tenancy=place.tenancy,
        team=place.team,
        project=place.project,
        cost_centre=place.cost_centre,
        environment=place.environment,
        namespace=place.namespace,
        entra_group=place.entra_group,
        cohort=place.cohort,
        storage_class=place.storage_class,
        flavors=flavors,
    )
