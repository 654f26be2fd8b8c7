"""Services that every team of a cluster may call, each named with the pods behind it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fleet.names import DNS_LABEL, LABEL_KEY, LABEL_VALUE, fits, is_shared_space

MOST_SERVICES = 20
MOST_LABELS = 8
SHAPE = "A service has a name, a namespace, labels and a port."


class ServiceRefused(ValueError):
    """Not a service that teams can share; the text says why."""


@dataclass(frozen=True, kw_only=True)
class SharedService:
    """Pods of another namespace that every team's pods may call, on one TCP port."""

    name: str
    namespace: str
    labels: tuple[tuple[str, str], ...]
    port: int

    def __post_init__(self) -> None:
        if not fits(DNS_LABEL, self.name):
            raise ServiceRefused(
                f"{self.name!r} cannot be a service's name: small letters, digits, hyphens."
            )
        if not is_shared_space(self.namespace):
            raise ServiceRefused(
                f"{self.namespace!r} is not a namespace whose services teams can share."
            )
        if type(self.port) is not int or not 1 <= self.port <= 65_535:
            raise ServiceRefused(f"{self.port!r} is not a port.")
        if not 1 <= len(self.labels) <= MOST_LABELS or len(dict(self.labels)) != len(
            self.labels
        ):
            raise ServiceRefused(
                f"{self.name} needs one to {MOST_LABELS} labels that its pods carry."
            )
        for key, value in self.labels:
            if not (
                fits(LABEL_KEY, key, longest=317) and fits(LABEL_VALUE, value) and value
            ):
                raise ServiceRefused(f"{key!r}: {value!r} is not a label of a pod.")

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "SharedService":
        """A service as `to_json` gives it; raises ServiceRefused for anything else."""
        try:
            labels = tuple(sorted(dict(stored["labels"]).items()))
            return cls(**{**stored, "labels": labels})
        except ServiceRefused:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise ServiceRefused(SHAPE) from error

    def to_json(self) -> dict[str, Any]:
        """The service as it is stored."""
        return asdict(self) | {"labels": dict(self.labels)}


def services_from(stored: object) -> tuple[SharedService, ...]:
    """Shared services as they are stored, by name, each once; raises ServiceRefused."""
    if not isinstance(stored, Iterable) or isinstance(stored, str | Mapping):
        raise ServiceRefused("Services are a list.")
    found = tuple(
        sorted(map(SharedService.from_json, stored), key=lambda service: service.name)
    )
    if (
        len({service.name for service in found}) != len(found)
        or len(found) > MOST_SERVICES
    ):
        raise ServiceRefused(
            f"Teams share up to {MOST_SERVICES} services, each named once."
        )
    return found
