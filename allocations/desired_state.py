"""From what a team holds to what its tenancy should be. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fleet.egress import EgressRule
from fleet.services import SharedService
from provisioning.desired.priorities import DEFAULT_PRIORITY
from provisioning.desired.spec import GPU, KUEUE, FlavorQuota, TenancySpec, Volume


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
    weight: int = 1
    jupyterhub_namespace: str = ""
    services: tuple[SharedService, ...] = ()
    egress: tuple[EgressRule, ...] = ()
    by_name: bool = False
    dashboards: bool = True
    highest_priority: str = DEFAULT_PRIORITY
    queueing: str = KUEUE


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A flavor of the cluster, as far as a quota needs it."""

    name: str
    cpu_per_gpu: int
    memory_gib_per_gpu: int
    resource: str = GPU


def desired(
    place: Place,
    *,
    kinds: Iterable[Kind],
    held: Mapping[str, int],
    over: Mapping[str, int] | None = None,
    volumes: Iterable[Volume] = (),
    ended_volumes: Iterable[Volume] = (),
) -> TenancySpec:
    """The spec of a tenancy that holds these GPUs by flavor name; a flavor not held is there with none.

    `over` is what may still run although it is not held any more, `ended_volumes` what nobody has taken down yet.
    """
    flavors = tuple(
        FlavorQuota(
            name=kind.name,
            gpus=held.get(kind.name, 0),
            borrow=held.get(kind.name, 0) * place.borrow_percent // 100,
            cpu_per_gpu=kind.cpu_per_gpu,
            memory_gib_per_gpu=kind.memory_gib_per_gpu,
            resource=kind.resource,
            over=(over or {}).get(kind.name, 0),
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
        weight=place.weight,
        jupyterhub_namespace=place.jupyterhub_namespace,
        services=place.services,
        egress=place.egress,
        by_name=place.by_name,
        dashboards=place.dashboards,
        highest_priority=place.highest_priority,
        queueing=place.queueing,
        flavors=flavors,
        volumes=_in_order(volumes),
        ended_volumes=_in_order(ended_volumes),
    )


def _in_order(volumes: Iterable[Volume]) -> tuple[Volume, ...]:
    return tuple(sorted(volumes, key=lambda volume: volume.name))
