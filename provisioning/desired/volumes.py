"""A team's disks: the one that every namespace has, and those that were granted. Pure."""

from typing import Any

from provisioning.desired.objects import Manifest, guarded, placed
from provisioning.desired.quantities import gibibytes
from provisioning.desired.spec import MANY, TenancySpec

# Members make no claims of such a name (deploy/kubernetes/team-guards.yaml), so that none is in the way of a volume.
PREFIX = "volume-"
DATASETS = "datasets"
DATASETS_GIB = 100


def claim_name(name: str) -> str:
    """What the claim of a volume is called in the namespace."""
    return f"{PREFIX}{name}"


def claims(spec: TenancySpec) -> list[Manifest]:
    """The shared disk, and a claim for each volume.

    Many nodes mount what the cluster's class for shared disks makes; for one node its default class does.
    """
    shared = _claim(spec, DATASETS, DATASETS_GIB, MANY)
    return [
        shared,
        *(
            _claim(spec, claim_name(one.name), one.gib, one.access)
            for one in spec.volumes
        ),
    ]


def _claim(spec: TenancySpec, name: str, gib: int, access: str) -> Manifest:
    wanted: dict[str, Any] = {
        "accessModes": [access],
        "resources": {"requests": {"storage": gibibytes(gib)}},
    }
    if spec.storage_class and access == MANY:
        wanted["storageClassName"] = spec.storage_class
    return guarded(placed(spec, "v1", "PersistentVolumeClaim", name, spec=wanted))
