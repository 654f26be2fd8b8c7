"""What of a ClusterQueue's quota is free: its own, what its cohort lends, and what it may borrow at most. Pure.

Amounts are in billionths. A cohort is all ClusterQueues that name it, and its own quota; parents are passed over.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.quantities import parse

Object = dict[str, Any]
Cell = tuple[str, str]
Amounts = Mapping[Cell, int]


@dataclass(frozen=True)
class Share:
    """One ClusterQueue's part of one resource of one flavor; None is without a limit."""

    nominal: int
    borrowing: int | None
    lending: int | None

    @property
    def kept(self) -> int:
        """What of the nominal quota nobody else may use."""
        return 0 if self.lending is None else max(0, self.nominal - self.lending)


NOTHING = Share(0, 0, 0)


class Pool:
    """Quotas and what is taken of them; `take` and `give` play through what would be."""

    def __init__(
        self,
        queues: Iterable[Object],
        cohorts: Iterable[Object],
        workloads: Iterable[Object],
    ) -> None:
        self._shares: dict[str, dict[Cell, Share]] = {}
        self._cohort: dict[str, str] = {}
        self._members: dict[str, list[str]] = defaultdict(list)
        for queue in queues:
            name, cohort = (
                _name(queue),
                str(part(queue, "spec").get("cohortName") or ""),
            )
            self._shares[name], self._cohort[name] = dict(_shares(queue)), cohort
            if cohort:
                self._members[cohort].append(name)
        self._extra = {
            _name(cohort): {cell: one.nominal for cell, one in _shares(cohort)}
            for cohort in cohorts
        }
        self._used: dict[str, dict[Cell, int]] = defaultdict(lambda: defaultdict(int))
        for workload in workloads:
            self.take(queue_of(workload), used_by(workload))

    def take(self, queue: str, amounts: Amounts, sign: int = 1) -> None:
        """Count amounts as used."""
        for cell, amount in amounts.items():
            self._used[queue][cell] += sign * amount

    def give(self, queue: str, amounts: Amounts) -> None:
        """Count amounts as used no more."""
        self.take(queue, amounts, -1)

    def share(self, queue: str, cell: Cell) -> Share:
        """A ClusterQueue's part of a resource of a flavor."""
        return self._shares.get(queue, {}).get(cell, NOTHING)

    def cohort(self, queue: str) -> str:
        """The cohort of a ClusterQueue; empty where it has none."""
        return self._cohort.get(queue, "")

    def path(self, queue: str) -> str:
        """A ClusterQueue below its cohort, as messages name it."""
        cohort = self.cohort(queue)
        return f"/{cohort}/{queue}" if cohort else f"/{queue}"

    def borrowed(self, queue: str, cell: Cell, extra: int = 0) -> int:
        """How much more than its nominal quota a queue uses, or would with some more."""
        return max(0, self._used[queue][cell] + extra - self.share(queue, cell).nominal)

    def available(self, queue: str, cell: Cell) -> int:
        """What a queue may still take; negative where more is used than there is."""
        share, used = self.share(queue, cell), self._used[queue][cell]
        if not self.cohort(queue):
            return share.nominal - used
        common = self._lent(queue, cell) - self._taken(queue, cell)
        if share.borrowing is not None:
            of_common = max(0, used - share.kept)
            common = min(
                common, share.nominal - share.kept - of_common + share.borrowing
            )
        return max(0, share.kept - used) + common

    def most(self, queue: str, cell: Cell) -> int:
        """What a queue could take if nobody used anything."""
        share = self.share(queue, cell)
        if not self.cohort(queue):
            return share.nominal
        common = self._lent(queue, cell)
        if share.borrowing is not None:
            common = min(common, share.nominal - share.kept + share.borrowing)
        return share.kept + common

    def _lent(self, queue: str, cell: Cell) -> int:
        cohort = self.cohort(queue)
        shares = [self.share(member, cell) for member in self._members[cohort]]
        return sum(one.nominal - one.kept for one in shares) + self._extra.get(
            cohort, {}
        ).get(cell, 0)

    def _taken(self, queue: str, cell: Cell) -> int:
        members = self._members[self.cohort(queue)]
        return sum(
            max(0, self._used[one][cell] - self.share(one, cell).kept)
            for one in members
        )


def queue_of(workload: Object) -> str:
    """The ClusterQueue that a Workload holds quota of; empty where it holds none."""
    return str(part(part(workload, "status"), "admission").get("clusterQueue") or "")


def used_by(workload: Object) -> dict[Cell, int]:
    """What a Workload holds."""
    found: dict[Cell, int] = defaultdict(int)
    for assignment in items(
        part(part(workload, "status"), "admission"), "podSetAssignments"
    ):
        usage = part(assignment, "resourceUsage")
        for resource, flavor in part(assignment, "flavors").items():
            found[str(flavor), resource] += parse(usage.get(resource)).nanos
    return dict(found)


def _shares(obj: Object) -> Iterator[tuple[Cell, Share]]:
    for group in items(part(obj, "spec"), "resourceGroups"):
        for flavor in items(group, "flavors"):
            for one in items(flavor, "resources"):
                share = Share(
                    parse(one.get("nominalQuota")).nanos,
                    _limit(one.get("borrowingLimit")),
                    _limit(one.get("lendingLimit")),
                )
                yield (str(flavor["name"]), str(one["name"])), share


def _limit(value: Any) -> int | None:
    return None if value is None else parse(value).nanos


def _name(obj: Object) -> str:
    return str(part(obj, "metadata").get("name") or "")
