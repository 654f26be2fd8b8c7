"""What a tenancy should be: the contract between what teams hold and what stands on a cluster. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

LARGEST_GPUS = 100_000


class SpecRefused(ValueError):
    """A desired state that must never reach a cluster."""


@dataclass(frozen=True, kw_only=True)
class FlavorQuota:
    """GPUs of one flavor: `gpus` guaranteed, `borrow` more when others leave theirs idle."""

    name: str
    gpus: int
    borrow: int = 0
    cpu_per_gpu: int = 8
    memory_gib_per_gpu: int = 64

    def __post_init__(self) -> None:
        if not (0 <= self.gpus <= LARGEST_GPUS and 0 <= self.borrow <= self.gpus):
            raise SpecRefused(f"{self.gpus} GPUs with {self.borrow} to borrow is not a quota.")


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
    base_cpu: int = 16
    base_memory_gib: int = 64

    def gpus(self) -> int:
        """GPUs guaranteed over all flavors."""
        return sum(flavor.gpus for flavor in self.flavors)

    def to_json(self) -> dict[str, Any]:
        """The spec as it is stored; the same spec gives the same JSON."""
        return asdict(self) | {"flavors": [asdict(flavor) for flavor in self.flavors]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "TenancySpec":
        """The spec that `to_json` stored."""
        flavors = tuple(FlavorQuota(**flavor) for flavor in stored["flavors"])
        return cls(**{**stored, "flavors": flavors})
