"""A month's charges added up: by team, by cost centre, by project, by what it is, or by who asked for it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from allocations.budgets.money import NOTHING, Amount
from catalogue.offerings import OFFERINGS
from insights.costs.charges import Charge, narrowed_to


class By(StrEnum):
    """What charges are added up by."""

    TEAM = "team"
    COST_CENTRE = "cost_centre"
    PROJECT = "project"
    KIND = "kind"
    PERSON = "person"

    @property
    def words(self) -> str:
        """As a head of a column says it."""
        return LABELS[self]


LABELS: Mapping[By, str] = {
    By.TEAM: "Team",
    By.COST_CENTRE: "Cost centre",
    By.PROJECT: "Project",
    By.KIND: "Kind",
    By.PERSON: "Who asked",
}


@dataclass(frozen=True, kw_only=True)
class Line:
    """What is charged in a month under one key of a `By`; `teams` are the slugs of those whose charges these are.

    `is_of_part` where other charges of one of those teams are left out.
    """

    key: str
    name: str
    teams: frozenset[str]
    spent: Amount
    to_end: Amount
    idle_usd: Decimal
    is_of_part: bool


def lines(charges: Iterable[Charge], by: By) -> Sequence[Line]:
    """The charges added up, the highest at the end of the month first."""
    groups: dict[str, list[Charge]] = {}
    for one in charges:
        groups.setdefault(KEYS[by](one), []).append(one)
    found = [
        summed(rows, key=key, name=NAMES[by](rows[0])) for key, rows in groups.items()
    ]
    return sorted(found, key=lambda line: (-line.to_end.usd, line.name.casefold()))


def summed(charges: Sequence[Charge], *, key: str = "", name: str = "") -> Line:
    """All of them together."""
    spent = to_end = NOTHING
    for one in charges:
        spent, to_end = spent.plus(one.spent), to_end.plus(one.to_end)
    return Line(
        key=key,
        name=name,
        teams=frozenset(one.allocation.team.slug for one in charges),
        spent=spent,
        to_end=to_end,
        idle_usd=sum((one.idle_usd for one in charges), Decimal(0)),
        is_of_part=any(one.is_of_part for one in charges),
    )


def of_team(charges: Iterable[Charge], slug: str) -> Sequence[Charge]:
    """Those of the team with this slug."""
    return [one for one in charges if one.allocation.team.slug == slug]


def on_cost_centre(charges: Iterable[Charge], code: str) -> Sequence[Charge]:
    """Those on the cost centre of this code, in upper or lower case."""
    return narrowed_to(
        charges, lambda one: one.cost_centre.casefold() == code.casefold()
    )


def kind_of(charge: Charge) -> str:
    """What is charged for: a kind of GPU on whatever cluster, or the name of another offering."""
    row = charge.allocation
    return OFFERINGS[row.offering].name if row.flavor is None else row.flavor.words


def project_of(charge: Charge) -> str:
    """The project of a team under which it is put, "vision/detection"; of what stands on no cluster the team alone."""
    row = charge.allocation
    project = "" if row.tenancy is None else row.tenancy.project.slug
    return f"{row.team.slug}/{project}".rstrip("/")


KEYS: Mapping[By, Callable[[Charge], str]] = {
    By.TEAM: lambda one: one.allocation.team.slug,
    By.COST_CENTRE: lambda one: one.cost_centre.casefold(),
    By.PROJECT: project_of,
    By.KIND: kind_of,
    By.PERSON: lambda one: str(one.allocation.requester.oid),
}
NAMES: Mapping[By, Callable[[Charge], str]] = {
    By.TEAM: lambda one: one.allocation.team.name,
    By.COST_CENTRE: lambda one: one.cost_centre,
    By.PROJECT: lambda one: (
        project_of(one)
        if one.allocation.tenancy is not None
        else f"{project_of(one)}, no project"
    ),
    By.KIND: kind_of,
    By.PERSON: lambda one: one.allocation.requester.name,
}
