"""Many tenancies held against what stands, object by object, so that no cluster is ever in memory as a whole. Pure.

An object whose version has not changed since it was found as wanted is as wanted: nobody has written to it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioning.desired.manifests import (
    TENANCY_LABEL,
    Manifest,
    sometimes,
    tenancy_objects,
)
from provisioning.desired.plan import Key, Verb, plan
from provisioning.desired.spec import TenancySpec
from provisioning.desired.usage import QUEUES, used_of

Ref = tuple[str, str]
Row = tuple[int, int, Mapping[str, Any]]
Lister = Callable[[Ref], Iterable[Manifest]]
Place = tuple[str, str, str]

# What was found as wanted is compared in full again after this long, however little seems to have changed.
REMEMBERED_SECONDS = 900


@dataclass
class SyncedTenancy:
    """A tenancy that was found as wanted: the version of each of its objects, by (kind, namespace, name)."""

    generation: int
    refs: frozenset[Ref]
    wanted: frozenset[Place]
    until: float
    versions: dict[Place, str] = field(default_factory=dict)
    used: dict[str, int] | None = None


@dataclass
class Compared:
    """What a look found: tenancies as wanted, those that differ, GPUs in use by tenancy, and what to remember."""

    same: list[int] = field(default_factory=list)
    differing: list[int] = field(default_factory=list)
    used: dict[int, dict[str, int]] = field(default_factory=dict)
    known: dict[int, SyncedTenancy] = field(default_factory=dict)

    def pass_on(self, tenancies: Iterable[int]) -> None:
        """Have these looked at by themselves, too, whatever was found."""
        chosen = set(tenancies) & set(self.same)
        self.same = [pk for pk in self.same if pk not in chosen]
        self.differing += sorted(chosen)


class _Tenancy:
    """One tenancy while its objects come by."""

    def __init__(
        self, row: Row, known: SyncedTenancy | None, *, seconds: float
    ) -> None:
        self.pk, self.generation, self.spec = row
        self.before: Mapping[Place, str] = {}
        self.manifests: dict[Place, Manifest] | None = None
        self.differs = False
        if (
            known is not None
            and known.generation == self.generation
            and known.until > seconds
        ):
            self.before = known.versions
            self.now = SyncedTenancy(
                known.generation, known.refs, known.wanted, known.until, {}, known.used
            )
            return
        self.manifests = self._render()
        refs = frozenset((m["apiVersion"], m["kind"]) for m in self.manifests.values())
        refs |= frozenset(sometimes(TenancySpec.from_json(self.spec)))
        # Not all at the same moment: a look that compares everything in full is a slow one.
        until = seconds + REMEMBERED_SECONDS * (1 + self.pk % 8 / 8)
        self.now = SyncedTenancy(
            self.generation, refs, frozenset(self.manifests), until
        )

    def meet(self, live: Manifest) -> None:
        """Take in an object that carries the tenancy's label."""
        metadata = live["metadata"]
        place = (live["kind"], metadata.get("namespace", ""), metadata["name"])
        version = metadata["resourceVersion"]
        if self.before.get(place) != version:
            self._compare(place, live)
        self.now.versions[place] = version

    def is_as_wanted(self) -> bool:
        """Whether nothing differed and nothing is missing, once all objects came by."""
        return not self.differs and self.now.wanted <= self.now.versions.keys()

    def _compare(self, place: Place, live: Manifest) -> None:
        if self.manifests is None:
            self.manifests = self._render()
        wanted = self.manifests.get(place)
        steps = plan([wanted] if wanted else [], {Key.of(live): live})
        self.differs = self.differs or any(
            step.verb is not Verb.KEEP or step.why for step in steps
        )
        if place[0] in QUEUES and wanted:
            self.now.used = used_of(live, TenancySpec.from_json(self.spec))

    def _render(self) -> dict[Place, Manifest]:
        return {
            _place(manifest): manifest
            for manifest in tenancy_objects(TenancySpec.from_json(self.spec))
        }


def compare(
    rows: Iterable[Row],
    known: Mapping[int, SyncedTenancy],
    lister: Lister,
    *,
    seconds: float,
) -> Compared:
    """Hold tenancies (id, generation, spec) against what stands; `lister` gives every object of a kind with our label.

    `seconds` is the time since 1970. Each kind is listed once; what the lister raises passes through.
    """
    tenancies = {
        row[0]: _Tenancy(row, known.get(row[0]), seconds=seconds) for row in rows
    }
    for ref in sorted(
        {ref for tenancy in tenancies.values() for ref in tenancy.now.refs}
    ):
        for live in lister(ref):
            owner = tenancies.get(_owner(live))
            if owner is not None:
                owner.meet(live)
    found = Compared()
    for pk, tenancy in tenancies.items():
        if not tenancy.is_as_wanted():
            found.differing.append(pk)
            continue
        found.same.append(pk)
        found.known[pk] = tenancy.now
        if tenancy.now.used is not None:
            found.used[pk] = tenancy.now.used
    return found


def _owner(live: Manifest) -> int:
    mark = live["metadata"]["labels"][TENANCY_LABEL]
    return int(mark) if mark.isdecimal() else 0


def _place(manifest: Manifest) -> Place:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]
