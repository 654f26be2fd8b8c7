"""Everything that goes when a team leaves, and what stays: from the database, and from the clusters with evidence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Prefetch, Q, QuerySet

from accounts.models import ApiToken, Identity, Team
from allocations.budgets import money
from allocations.models import Allocation
from approvals.fulfilment import leaving as requests
from approvals.models import Request
from fleet.models import Cluster, Environment
from offboarding.models import Departure, DeparturePlace
from offboarding.plan import fingerprint
from provisioning.clusters import contents
from provisioning.clusters.contents import Contents
from provisioning.desired.manifests import tenancy_objects
from provisioning.models import Tenancy, TenancyQuerySet
from provisioning.stages import STANDS, Stage
from provisioning.words import plain

STAYS = (
    "The audit log, with every decision and who took it",
    "The ledger: what was spent, month by month",
    "Requests, allocations and their history",
    "The team’s name and its Entra group, so that it can come on board again",
)


@dataclass(frozen=True)
class Leaving:
    """Who leaves what and when: a departure, or a wish that nobody has asked for yet."""

    team: Team
    tenancies: Sequence[Tenancy]
    is_whole: bool
    leaves_at: datetime


@dataclass(frozen=True, kw_only=True)
class GoingObject:
    """An object that is deleted, with what it is to people."""

    kind: str
    name: str
    plain: str


@dataclass(frozen=True, kw_only=True)
class GoingPlace:
    """A place with its objects and with what was found in it; None while nobody has looked."""

    tenancy: Tenancy
    cluster: Cluster
    found: Contents | None
    objects: list[GoingObject]


@dataclass(frozen=True, kw_only=True)
class GoingGpus:
    """GPUs that go back."""

    row: Allocation
    what: str
    where: str
    until: datetime
    usd_freed: Decimal


@dataclass(frozen=True)
class Preview:
    """What goes: places with what is in them, GPUs, money, requests, and whom it concerns.

    `tokens` are those of its members, which stay; `team_tokens` and `team_identities` those of its pipelines, which
    end with the team.
    """

    places: list[GoingPlace]
    allocations: list[GoingGpus]
    gpus: int
    usd_freed: Decimal
    requests: list[Request]
    ends: list[Request]
    kept: list[Request]
    paid: list[Request]
    members: list[str]
    tokens: int
    team_tokens: int
    team_identities: int


def places_of(departure: Departure) -> TenancyQuerySet:
    """The places that a departure is from.

    While one from the platform waits to be confirmed, they are all where the team is, whenever it came there.
    """
    goes = Q(
        pk__in=DeparturePlace.objects.filter(departure=departure).values("tenancy")
    )
    if departure.is_whole and departure.is_asked:
        goes |= Q(team=departure.team_id, stage=Stage.HERE)
    return Tenancy.objects.filter(goes)


def with_places(rows: QuerySet[Departure]) -> QuerySet[Departure]:
    """With what `known_places` needs; two queries however many they are."""
    places = DeparturePlace.objects.select_related("tenancy__cluster")
    here = Tenancy.objects.filter(stage=Stage.HERE).select_related("cluster")
    return rows.select_related("team").prefetch_related(
        Prefetch("places", places),
        Prefetch("team__tenancies", here, to_attr="tenancies_here"),
    )


def known_places(departure: Departure) -> Sequence[Tenancy]:
    """The same as `places_of` without a query, of a departure that was fetched `with_places`."""
    places = {place.tenancy_id: place.tenancy for place in departure.places.all()}
    if departure.is_whole and departure.is_asked:
        here: Sequence[Tenancy] = departure.team.tenancies_here  # type: ignore[attr-defined]
        places |= {tenancy.pk: tenancy for tenancy in here}
    return list(places.values())


def stays_anywhere(team: Team, *, but: Sequence[int] = ()) -> bool:
    """Whether the team is on a cluster, or something of it is, but for some places."""
    return Tenancy.objects.present().filter(team=team).exclude(pk__in=but).exists()


def needs_second(places: Sequence[Tenancy]) -> bool:
    """Whether another platform lead confirms than who asked: where there is production."""
    return any(place.environment == Environment.PRODUCTION for place in places)


def of(departure: Departure) -> Leaving:
    """A departure as what leaves."""
    rows = places_of(departure).select_related("cluster", "team", "project")
    return Leaving(
        departure.team,
        list(rows.order_by("cluster__name")),
        departure.is_whole,
        departure.leaves_at,
    )


def content(leaving: Leaving) -> dict[str, Any]:
    """What a confirmation is about, as far as the portal itself knows it."""
    pks = [place.pk for place in leaving.tenancies]
    held = (
        Allocation.objects.granted()
        .of_gpus()
        .filter(tenancy__in=pks)
        .order_by("pk")
        .values_list("pk", "gpus", "until")
    )
    waiting = requests.waiting(leaving.team, pks, whole=leaving.is_whole)
    return {
        "places": sorted(
            (place.pk, place.stage, place.namespace) for place in leaving.tenancies
        ),
        "allocations": list(held),
        "requests": list(waiting.values_list("pk", "content_version")),
        "ends": list(
            requests.held(leaving.team, pks, whole=leaving.is_whole).values_list(
                "pk", flat=True
            )
        ),
    }


def seen(departure: Departure) -> str:
    """The fingerprint of a departure and of all that goes with it now."""
    return fingerprint({"version": departure.version, **content(of(departure))})


def read_places(
    leaving: Leaving, *, now: Callable[[], datetime]
) -> Mapping[int, Contents]:
    """What is in each place, asked of its cluster; outside of any transaction."""
    return {
        place.pk: contents.read(place, now=now)
        for place in leaving.tenancies
        if place.stage != "gone"
    }


def look(
    departure: Departure, *, now: Callable[[], datetime]
) -> Mapping[int, Contents]:
    """What is in the places of a departure that is not over; the claims that were found are kept for the export.

    Of a place that is away, gone or restored, what was kept before stays.
    """
    if departure.ended_at is not None:
        return {}
    found = read_places(of(departure), now=now)
    for tenancy_id, seen_there in found.items():
        if not seen_there.away:
            rows = departure.places.filter(
                tenancy_id=tenancy_id, tenancy__stage__in=STANDS
            )
            rows.update(claims=claims_of(seen_there), claims_at=seen_there.read_at)
    return found


def preview(
    leaving: Leaving, found: Mapping[int, Contents], *, now: datetime
) -> Preview:
    """Everything that goes, in a fixed number of queries."""
    pks = [place.pk for place in leaving.tenancies]
    rows = list(
        Allocation.objects.granted()
        .of_gpus()
        .filter(tenancy__in=pks)
        .select_related("flavor__cluster")
        .order_by("until", "pk")
    )
    freed = [_freed(row, max(now, leaving.leaves_at)) for row in rows]
    waiting = requests.waiting(
        leaving.team, pks, whole=leaving.is_whole
    ).select_related("requester", "flavor__cluster")
    without_gpus = requests.held(
        leaving.team, pks, whole=leaving.is_whole
    ).select_related("requester", "flavor__cluster")
    going = requests.going(without_gpus, now=now)
    members = leaving.team.memberships.of_people()
    active = members.filter(user__is_active=True).order_by("user__name")
    people = list(active.values_list("user__name", "user_id"))
    is_last = leaving.is_whole or not stays_anywhere(leaving.team, but=pks)
    return Preview(
        places=[_place(place, found.get(place.pk)) for place in leaving.tenancies],
        allocations=[
            GoingGpus(
                row=row, what=row.what, where=row.where, until=row.until, usd_freed=usd
            )
            for row, usd in zip(rows, freed, strict=True)
        ],
        gpus=sum(row.gpus for row in rows),
        usd_freed=sum(freed, Decimal(0)),
        requests=list(waiting),
        ends=going.ends,
        kept=going.kept,
        paid=going.paid,
        members=[name for name, _ in people],
        tokens=ApiToken.objects.usable(now)
        .filter(user__in=[pk for _, pk in people])
        .count(),
        team_tokens=ApiToken.objects.usable(now).of_team(leaving.team).count()
        if is_last
        else 0,
        team_identities=Identity.objects.acting(now).of_team(leaving.team).count()
        if is_last
        else 0,
    )


def claims_of(found: Contents | None) -> list[dict[str, Any]]:
    """The claims as they are kept and exported."""
    return [asdict(claim) for claim in found.claims] if found else []


def _freed(row: Allocation, end: datetime) -> Decimal:
    """USD that an allocation will not cost when it ends at this moment; a booking costs nothing before it begins."""
    if end >= row.until:
        return Decimal(0)
    start = max(end, row.starts_at)
    return money.cost_of(usd_per_hour=row.usd_per_hour, start=start, end=row.until)


def _place(place: Tenancy, found: Contents | None) -> GoingPlace:
    objects = tenancy_objects(place.desired) if place.spec else []
    return GoingPlace(
        tenancy=place,
        cluster=place.cluster,
        found=found,
        objects=[
            GoingObject(
                kind=one["kind"],
                name=one["metadata"]["name"],
                plain=plain(one["kind"], one["metadata"]["name"]),
            )
            for one in objects
            if one["kind"] != "PersistentVolumeClaim"
        ],
    )
