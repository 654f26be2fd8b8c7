"""How much a tenancy's namespace may hold: its ceiling, and the sizes of what names none. Pure."""

from collections import Counter

from provisioning.desired.objects import Manifest, placed
from provisioning.desired.priorities import closed
from provisioning.desired.quantities import count, gibibytes
from provisioning.desired.spec import TenancySpec
from provisioning.drift.adopting import PRIORITY_QUOTA

QUOTA = "team-quota"
# What a team's claims may take beside the volumes that it was granted, and how large one of them may be.
OWN_CLAIMS, OWN_GIB, LARGEST_OWN_GIB = 20, 2_048, 1_024


def quota(spec: TenancySpec) -> Manifest:
    """The namespace's ceiling, never below what the queue may admit.

    Kueue does not look at ResourceQuota: below nominal + borrowing, an admitted job would never get a pod and hold
    its share of the queue for ever. Work that outlives its allocation still has room. Of GPUs only `requests.`
    counts; `limits.` would be accepted and do nothing.
    """
    cpu, memory = room(spec)
    gpus, disks = ceilings(spec), (*spec.volumes, *spec.ended_volumes)
    hard = {
        "requests.cpu": count(cpu),
        "limits.cpu": count(cpu * 2),
        "requests.memory": gibibytes(memory),
        "limits.memory": gibibytes(memory * 2),
        **{f"requests.{resource}": count(number) for resource, number in gpus.items()},
        "pods": count(50 + 4 * sum(gpus.values())),
        "persistentvolumeclaims": count(OWN_CLAIMS + len(disks)),
        "requests.storage": gibibytes(OWN_GIB + sum(disk.gib for disk in disks)),
        "services.loadbalancers": "0",
        "services.nodeports": "0",
        "count/jobs.batch": "200",
        **({"count/jobs.batch.volcano.sh": "200"} if spec.has_volcano else {}),
        "count/secrets": "100",
    }
    return placed(spec, "v1", "ResourceQuota", QUOTA, spec={"hard": hard})


def room(spec: TenancySpec) -> tuple[int, int]:
    """The CPUs and the GiB of memory that pods of the namespace may ask for at most."""
    cpu = spec.base_cpu + sum(f.room * f.cpu_per_gpu for f in spec.flavors)
    memory = spec.base_memory_gib + sum(
        f.room * f.memory_gib_per_gpu for f in spec.flavors
    )
    return cpu, memory


def priority_quota(spec: TenancySpec) -> Manifest:
    """No pod of a priority that is closed to the tenancy: it would come before, or push out, what others were granted.

    A quota counts what is made, whoever makes it: a Job's pods as well as a pod by hand.
    """
    classes = {
        "scopeName": "PriorityClass",
        "operator": "In",
        "values": closed(spec.highest_priority),
    }
    scope = {"matchExpressions": [classes]}
    return placed(
        spec,
        "v1",
        "ResourceQuota",
        PRIORITY_QUOTA,
        spec={"hard": {"pods": "0"}, "scopeSelector": scope},
    )


def ceilings(spec: TenancySpec) -> dict[str, int]:
    """The most that pods may have of each resource that stands for GPUs, over all flavors."""
    found: Counter[str] = Counter(dict.fromkeys(spec.resources, 0))
    for flavor in spec.flavors:
        found[flavor.resource] += flavor.room
    return dict(found)


def limit_range(spec: TenancySpec) -> Manifest:
    """Sizes for containers that name none. Never GPUs: a maximum of 8 would make every container ask for 8."""
    container = {
        "type": "Container",
        "default": {"cpu": "2", "memory": "4Gi"},
        "defaultRequest": {"cpu": "500m", "memory": "1Gi"},
    }
    largest = max([LARGEST_OWN_GIB, *(one.gib for one in spec.volumes)])
    claim = {"type": "PersistentVolumeClaim", "max": {"storage": gibibytes(largest)}}
    return placed(
        spec, "v1", "LimitRange", "team-defaults", spec={"limits": [container, claim]}
    )
