"""People and groups as the sandbox holds them: memberships, nesting, managers, app roles."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sandbox.world import Group, Person, World


@dataclass(frozen=True)
class Away:
    """Somebody's automatic replies: from `start` to `end`, or always while both are None."""

    start: datetime | None = None
    end: datetime | None = None

    def now(self, at: datetime) -> bool:
        """Tell whether the replies are sent at this moment."""
        return (self.start is None or self.start <= at) and (
            self.end is None or at < self.end
        )


@dataclass
class Directory:
    """The tenant's people and groups; every change sets `dirty` and calls the `watchers`."""

    world: World
    dirty: bool = False
    watchers: list[Callable[[], None]] = field(default_factory=list)
    people: dict[str, Person] = field(init=False)
    groups: dict[str, Group] = field(init=False)
    enabled: dict[str, bool] = field(init=False)
    members: dict[str, list[str]] = field(init=False)
    away: dict[str, Away] = field(default_factory=dict)
    assigned: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.people = {person.oid: person for person in self.world.people}
        self.groups = {group.oid: group for group in self.world.groups}
        self.enabled = {person.oid: person.enabled for person in self.world.people}
        self.members = {group.oid: list(group.groups) for group in self.world.groups}
        for person in self.world.people:
            for group in person.groups:
                self.members[group].append(person.oid)
        self.assigned = {
            person.oid: list(person.roles)
            for person in self.world.people
            if person.roles
        }

    def snapshot(self) -> dict[str, Any]:
        """Return what may change, ready for JSON."""
        return {
            "enabled": dict(self.enabled),
            "members": {key: list(row) for key, row in self.members.items()},
            "assigned": {key: list(row) for key, row in self.assigned.items()},
            "away": {
                oid: [
                    moment.isoformat() if moment else None
                    for moment in (row.start, row.end)
                ]
                for oid, row in self.away.items()
            },
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot; people and groups the world no longer has are left out."""
        known = self.people.keys() | self.groups.keys()
        self.enabled.update(
            {
                oid: bool(on)
                for oid, on in state["enabled"].items()
                if oid in self.people
            }
        )
        for oid, members in state["members"].items():
            if oid in self.groups:
                self.members[oid] = [member for member in members if member in known]
        self.assigned = {
            oid: list(values)
            for oid, values in state.get("assigned", self.assigned).items()
            if oid in known
        }
        self.away = {
            oid: Away(
                *(datetime.fromisoformat(moment) if moment else None for moment in row)
            )
            for oid, row in state.get("away", {}).items()
            if oid in self.people
        }

    def find_person(self, key: str) -> Person | None:
        """Return the person with this object id or user principal name."""
        if key in self.people:
            return self.people[key]
        return next(
            (person for person in self.people.values() if person.mail == key.lower()),
            None,
        )

    def groups_of(self, oid: str) -> list[str]:
        """Return the ids of all groups of a person or group, nested ones included, in the world's order."""
        found: set[str] = set()
        waiting = [oid]
        while waiting:
            member = waiting.pop()
            parents = [
                group for group, members in self.members.items() if member in members
            ]
            waiting.extend(parent for parent in parents if parent not in found)
            found.update(parents)
        return [group for group in self.groups if group in found]

    def roles_of(self, oid: str) -> list[str]:
        """Return the app roles of a person, their own and those of groups they are in directly, in a fixed order."""
        mine = [
            oid,
            *(group for group, members in self.members.items() if oid in members),
        ]
        values = {
            value for principal in mine for value in self.assigned.get(principal, ())
        }
        return [value for value in self.world.app_roles if value in values]

    def people_of(self, group: str) -> list[Person]:
        """Return everybody in a group or in a group inside it, in the world's order."""
        found: set[str] = set()
        waiting = [group]
        while waiting:
            for member in self.members.get(waiting.pop(), []):
                if member not in found:
                    found.add(member)
                    waiting.append(member)
        return [person for oid, person in self.people.items() if oid in found]

    def managers_of(self, person: Person) -> list[Person]:
        """Return the manager, the manager's manager and so on; a circle ends where it closes."""
        chain: list[Person] = []
        seen = {person.oid}
        current = person
        while current.manager and current.manager not in seen:
            current = self.people[current.manager]
            seen.add(current.oid)
            chain.append(current)
        return chain

    def set_enabled(self, oid: str, enabled: bool) -> None:
        """Allow or forbid a person to sign in."""
        self.enabled[oid] = enabled
        self._changed()

    def set_away(self, oid: str, away: Away | None) -> None:
        """Turn somebody's automatic replies on, or off with None."""
        if away is None:
            self.away.pop(oid, None)
        else:
            self.away[oid] = away
        self._changed()

    def is_away(self, oid: str) -> bool:
        """Tell whether somebody is out of office now."""
        return oid in self.away and self.away[oid].now(datetime.now(UTC))

    def add_member(self, group: str, oid: str) -> bool:
        """Put somebody into a group; False when already there."""
        if oid in self.members[group]:
            return False
        self.members[group].append(oid)
        self._changed()
        return True

    def remove_member(self, group: str, oid: str) -> bool:
        """Take somebody out of a group; False when not a direct member."""
        if oid not in self.members[group]:
            return False
        self.members[group].remove(oid)
        self._changed()
        return True

    def assign(self, principal: str, value: str) -> bool:
        """Assign an app role to a person or group; False when it is assigned already."""
        values = self.assigned.setdefault(principal, [])
        if value in values:
            return False
        values.append(value)
        self._changed()
        return True

    def withdraw(self, principal: str, value: str) -> bool:
        """Take an app role from a person or group; False when it is not assigned."""
        if value not in self.assigned.get(principal, ()):
            return False
        self.assigned[principal].remove(value)
        self._changed()
        return True

    def _changed(self) -> None:
        self.dirty = True
        for watcher in self.watchers:
            watcher()
