"""The projects of a team: where each has a namespace, what stands in it, who asked for it and since when."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from accounts.models import Project, Team
from allocations.models import Allocation
from approvals.models import Request
from approvals.states import State
from onboarding.models import Onboarding
from provisioning.models import Tenancy

MAX_WAITING = 20


@dataclass(frozen=True)
class Place:
    """One namespace of a project: what it holds in words, and who asked for it when."""

    tenancy: Tenancy
    gpus: int
    holds: tuple[str, ...]
    asked_by: str
    since: datetime


@dataclass(frozen=True)
class ProjectLine:
    """A project with its namespaces; `asked_by` and `since` are those of the first of them."""

    slug: str
    asked_by: str
    since: datetime
    places: tuple[Place, ...]

    @property
    def gpus(self) -> int:
        """GPUs that are held in all of its namespaces."""
        return sum(place.gpus for place in self.places)


def projects_of(team: Team) -> list[ProjectLine]:
    """Every project of a team by name, in four queries however many there are."""
    rows = (
        Tenancy.objects.present().filter(team=team).select_related("cluster", "project")
    )
    tenancies = list(rows.order_by("environment", "cluster__name"))
    origins = _origins(team)
    held, gpus = _held(team)
    places: dict[int, list[Place]] = defaultdict(list)
    for row in tenancies:
        asked_by, since = origins.get(row.pk, ("", row.created_at))
        places[row.project_id].append(
            Place(
                row, gpus.get(row.pk, 0), tuple(held.get(row.pk, ())), asked_by, since
            )
        )
    return [
        _line(project, places[project.pk]) for project in team.projects.order_by("slug")
    ]


def _line(project: Project, places: list[Place]) -> ProjectLine:
    first = min(places, key=lambda place: place.since, default=None)
    return ProjectLine(
        slug=project.slug,
        asked_by=first.asked_by if first else "",
        since=first.since if first else project.created_at,
        places=tuple(places),
    )


def waiting_for(team: Team) -> list[Request]:
    """Namespaces that are asked for and not decided yet, oldest first."""
    rows = (
        Request.objects.waiting()
        .filter(team=team, offering="namespace")
        .select_related("requester")
        .with_titles()
    )
    return list(rows.order_by("created_at", "pk")[:MAX_WAITING])


def _origins(team: Team) -> dict[int, tuple[str, datetime]]:
    """Who asked for each namespace and when: with the team, or later."""
    found: dict[int, tuple[str, datetime]] = {}
    asked = Request.objects.filter(
        team=team, offering="namespace", state=State.APPROVED, tenancy__isnull=False
    )
    for pk, name, at in asked.values_list("tenancy", "requester__name", "created_at"):
        if pk is not None:
            found[pk] = (name, at)
    first = Onboarding.objects.filter(team=team).values_list(
        "tenancy", "by__name", "submitted_at"
    )
    return found | {pk: (name, at) for pk, name, at in first}


def _held(team: Team) -> tuple[Mapping[int, list[str]], Mapping[int, int]]:
    """What stands in each namespace, in words, GPUs first, and how many GPUs are held there."""
    products: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    others: dict[int, list[str]] = defaultdict(list)
    live = (
        Allocation.objects.live()
        .filter(team=team, tenancy__isnull=False)
        .exclude(offering="namespace")
    )
    for row in live.select_related("flavor").order_by("starts_at", "pk"):
        if row.tenancy_id is None:
            continue
        if row.flavor is not None:
            products[row.tenancy_id][row.flavor.kind] += row.gpus
        else:
            others[row.tenancy_id].append(row.title)
    words = {
        pk: [f"{count} × {product}" for product, count in sorted(products[pk].items())]
        + others[pk]
        for pk in {*products, *others}
    }
    return words, {pk: sum(counts.values()) for pk, counts in products.items()}
