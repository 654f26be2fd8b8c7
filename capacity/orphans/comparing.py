"""Reservations in Azure beside those in the portal's records: what is in one of them alone. Pure.

Azure is listed between two looks at the records: what is recorded before or after counts as known. Only what
carries the portal's own mark, on the reservation and on its group, is the portal's.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class OrphanKind(StrEnum):
    """In which way the portal and Azure differ."""

    ORPHANED = "orphaned"
    FOREIGN = "foreign"
    MISSING = "missing"
    DIFFERS = "differs"

    @property
    def words(self) -> str:
        """As people read it."""
        return {
            "orphaned": "Orphaned",
            "foreign": "Somebody else’s",
            "missing": "Missing in Azure",
            "differs": "Size differs",
        }[self.value]

    @property
    def tone(self) -> str:
        """The badge's tone."""
        return {
            "orphaned": "bad",
            "foreign": "past",
            "missing": "bad",
            "differs": "waiting",
        }[self.value]


@dataclass(frozen=True, kw_only=True)
class Held:
    """A reservation in Azure: machines that it holds, those that run, and those that it counts as associated."""

    name: str
    vm_size: str
    zone: str = ""
    machines: int = 0
    used: int = 0
    associated: int = 0
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class Group:
    """A reservation group in Azure with its reservations; `mark` is the installation that its tags name, or empty."""

    resource_group: str
    name: str
    region: str
    mark: str = ""
    team: str = ""
    reservations: Sequence[Held] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others in its subscription; capitals do not count."""
        return group_key(self.resource_group, self.name)


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A reservation in the portal's records; `is_reserved` where Azure had what its generation wants, or refuses it."""

    number: int
    generation: int
    resource_group: str
    group: str
    name: str
    region: str
    zone: str
    vm_size: str
    machines: int
    is_reserved: bool

    @property
    def key(self) -> tuple[str, str]:
        """The group that it is in."""
        return group_key(self.resource_group, self.group)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One difference. `name` is empty for a group without reservations, `recorded` None for what is orphaned."""

    kind: OrphanKind
    resource_group: str
    group: str
    name: str
    region: str
    zone: str = ""
    vm_size: str = ""
    machines: int = 0
    used: int = 0
    associated: int = 0
    team: str = ""
    recorded: Recorded | None = None

    @property
    def key(self) -> str:
        """What it is about, whatever its capitals: stays the same from reading to reading."""
        return f"{self.resource_group}/{self.group}/{self.name}".lower()


def differences(
    found: Iterable[Group],
    *,
    mark: str,
    before: Iterable[Recorded],
    after: Iterable[Recorded],
) -> list[Difference]:
    """What Azure has without a record, what is somebody else's, and what of the records Azure has not, or otherwise."""
    groups = {one.key: one for one in found}
    earlier = {one.number: one for one in before}
    later = {one.number: one for one in after}
    known = {
        (*one.key, one.name.lower()) for one in (*earlier.values(), *later.values())
    }
    with_record = {one.key for one in (*earlier.values(), *later.values())}
    rows = [
        one
        for group in groups.values()
        for one in _orphaned(group, mark, known, with_record)
    ]
    # What changed while Azure was listed is compared the next time.
    same = [
        one
        for one in later.values()
        if earlier.get(one.number) == one and one.is_reserved
    ]
    return rows + [
        one for recorded in same for one in _not_as_recorded(recorded, groups)
    ]


def _orphaned(
    group: Group,
    mark: str,
    known: set[tuple[str, str, str]],
    with_record: set[tuple[str, str]],
) -> Iterator[Difference]:
    is_ours = bool(mark) and group.mark == mark
    empty = Difference(
        kind=OrphanKind.ORPHANED,
        resource_group=group.resource_group,
        group=group.name,
        name="",
        region=group.region,
        team=group.team,
    )
    for one in group.reservations:
        if (*group.key, one.name.lower()) not in known:
            yield replace(
                empty,
                kind=OrphanKind.ORPHANED
                if is_ours and one.mark == mark
                else OrphanKind.FOREIGN,
                name=one.name,
                zone=one.zone,
                vm_size=one.vm_size,
                machines=one.machines,
                used=one.used,
                associated=one.associated,
            )
    if is_ours and not group.reservations and group.key not in with_record:
        yield empty


def _not_as_recorded(
    recorded: Recorded, groups: Mapping[tuple[str, str], Group]
) -> Iterator[Difference]:
    group = groups.get(recorded.key)
    there = next(
        (
            one
            for one in (group.reservations if group else ())
            if one.name.lower() == recorded.name.lower()
        ),
        None,
    )
    if there is not None and there.machines == recorded.machines:
        return
    yield Difference(
        kind=OrphanKind.MISSING if there is None else OrphanKind.DIFFERS,
        resource_group=recorded.resource_group,
        group=recorded.group,
        name=recorded.name,
        region=recorded.region,
        zone=recorded.zone,
        vm_size=recorded.vm_size,
        machines=there.machines if there else 0,
        used=there.used if there else 0,
        associated=there.associated if there else 0,
        recorded=recorded,
    )


def group_key(resource_group: str, group: str) -> tuple[str, str]:
    return resource_group.lower(), group.lower()
