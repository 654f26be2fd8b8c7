"""What a subscription holds, as JSON data: resources by their id, whatever its capitals."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Resource = dict[str, Any]


@dataclass
class Clock:
    """The time of this Azure, which tests set forward."""

    ahead: float = 0.0

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time() + self.ahead


@dataclass
class State:
    """Resources, and what other modules keep under a name of their own; a change sets `dirty`."""

    clock: Clock = field(default_factory=Clock)
    resources: dict[str, Resource] = field(default_factory=dict)
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    dirty: bool = False

    def get(self, resource_id: str) -> Resource | None:
        """Return a resource, or None."""
        return self.resources.get(resource_id.lower())

    def put(self, resource: Resource) -> Resource:
        """Keep a resource under its id."""
        self.resources[resource["id"].lower()] = resource
        self.dirty = True
        return resource

    def remove(self, resource_id: str) -> None:
        """Forget a resource, if it is there."""
        self.resources.pop(resource_id.lower(), None)
        self.dirty = True

    def all(self, kind: str, below: str = "") -> Iterator[Resource]:
        """Yield the resources of a type whose ids begin so, by id."""
        prefix = f"{below.lower().rstrip('/')}/"
        for key, resource in sorted(self.resources.items()):
            if resource["type"].lower() == kind.lower() and key.startswith(prefix):
                yield resource

    def table(self, name: str) -> dict[str, Any]:
        """Return what a module keeps under a name; whoever changes it says so by `touch`."""
        return self.kept.setdefault(name, {})

    def touch(self) -> None:
        """Count the state as changed."""
        self.dirty = True

    def snapshot(self) -> dict[str, Any]:
        """Return everything for JSON, and count it as saved."""
        self.dirty = False
        return {
            "ahead": self.clock.ahead,
            "resources": self.resources,
            "kept": self.kept,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.clock.ahead = float(state["ahead"])
        self.resources = dict(state["resources"])
        self.kept = {name: dict(table) for name, table in state["kept"].items()}
        self.dirty = False
