"""Gathering the other asks of a team and of a person that count when the route of the next one is chosen."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from accounts.models import User
from approvals.decisions.seats import pace_seat
from approvals.models import Request, Step
from approvals.requests.wanted import Wanted, environment_of
from approvals.states import State
from catalogue.offerings import OFFERINGS
from policy.route_size import Earlier

# A team that asks more often than this within a window is counted by its newest asks.
MAX_REQUESTS = 1_000
CENT = Decimal("0.01")
MINUTE = timedelta(minutes=1)
KIND = attrgetter(
    "granted",
    "of_team",
    "of_person",
    "seats",
    "offering",
    "environment",
    "flavor",
    "tier",
)  # what asks must have in common to be added up


class Asked(NamedTuple):
    """What is read of an earlier ask, in the order of COLUMNS: whole requests take four times as long."""

    request_id: int
    state: str
    team_id: int
    requester_id: int
    created_at: datetime
    decided_at: datetime | None
    offering: str
    spec: Mapping[str, Any]
    flavor: str | None
    tier: str
    environment: str | None
    units: int
    gpus: int
    usd: Decimal
    approved_count: int | None
    starts_at: datetime | None
    until: datetime
    approved_until: datetime | None
    allocated_gpus: int | None
    ended_at: datetime | None
    goes_on: bool

    @property
    def is_granted(self) -> bool:
        """Whether it was approved, and does not wait."""
        return self.state == State.APPROVED

    @property
    def share_of_time(self) -> Decimal:
        """How much of the time that was asked for it was granted for; all of it while it waits."""
        if self.approved_until is None:
            return Decimal(1)
        begins = self.starts_at or self.created_at
        asked, granted = self.until - begins, self.approved_until - begins
        return Decimal(granted // MINUTE) / max(asked // MINUTE, 1)

    @property
    def is_held(self) -> bool:
        """Whether what was granted has not ended."""
        return self.allocated_gpus is not None and self.ended_at is None


COLUMNS = (
    *(
        "pk",
        "state",
        "team_id",
        "requester_id",
        "created_at",
        "decided_at",
        "offering",
        "spec",
    ),
    *(
        "flavor__name",
        "team__tier",
        "tenancy__environment",
        "count",
        "gpus",
        "usd",
        "approved_count",
        "starts_at",
        "until",
        "approved_until",
    ),
    *("allocation__gpus", "allocation__ended_at", "goes_on"),
)


def gather(
    wanted: Wanted, *, person: User, since: datetime, now: datetime, own: int = 0
) -> tuple[Earlier, ...]:
    """What the team and the person wait for, hold, or were granted since a moment, oldest first, runs added up.

    `own` is the hold of the request being judged. What a renewal goes on with counts in the renewal alone.
    """
    rows = _rows(wanted, person, since=since, now=now)
    if own:
        rows = rows.exclude(hold=own)
    if wanted.renews is not None:
        rows = rows.exclude(pk=wanted.renews)
    # Of what was granted at one moment, what was asked first stands first.
    asked = [Asked(*row) for row in rows.values_list(*COLUMNS)[:MAX_REQUESTS]][::-1]
    seats = _seats(asked)
    found = [
        _earlier(row, seats[row.request_id], wanted, person, since=since)
        for row in asked
    ]
    counted = sorted(
        (each for each in found if each.gpus or each.usd), key=attrgetter("last")
    )
    return tuple(_added(list(run)) for _, run in groupby(counted, key=KIND))


def _rows(
    wanted: Wanted, person: User, *, since: datetime, now: datetime
) -> QuerySet[Request]:
    granted = Q(state=State.APPROVED) & (Q(decided_at__gte=since) | Q(until__gt=now))
    theirs = Q(team_id=wanted.team.pk or 0) | Q(requester=person)
    renewed = Request.objects.filter(renews=OuterRef("pk"), state=State.APPROVED)
    return (
        Request.objects.filter(theirs, Q(state=State.WAITING) | granted)
        .annotate(goes_on=Exists(renewed))
        .order_by("-created_at", "-pk")
    )


def _earlier(
    row: Asked, seats: tuple[str, ...], wanted: Wanted, person: User, *, since: datetime
) -> Earlier:
    at = row.decided_at or row.created_at
    counts = _counted(row, since=since)
    return Earlier(
        first=at,
        last=at,
        gpus=counts * row.gpus // row.units,
        usd=(row.usd * counts / row.units * row.share_of_time).quantize(CENT),
        granted=row.is_granted,
        of_team=row.team_id == wanted.team.pk,
        of_person=row.requester_id == person.pk,
        seats=seats,
        offering=row.offering,
        environment=_environment(row),
        flavor=row.flavor or "",
        tier=row.tier,
    )


def _environment(row: Asked) -> str:
    offering = OFFERINGS[row.offering]
    # A spec is read only where it has to be: a team may have asked often.
    if row.environment is not None and not offering.judged_as:
        return row.environment
    return environment_of(offering, offering.spec.model_validate(row.spec), None)


def _counted(row: Asked, *, since: datetime) -> int:
    """How many units of a request count: all that waits or was granted lately, and of the rest what is held."""
    if not row.is_granted:
        return row.units
    granted, is_recent = (
        row.approved_count or 0,
        row.decided_at is not None and row.decided_at >= since,
    )
    if row.flavor is None:
        return granted if is_recent or row.is_held else 0
    if is_recent and not row.goes_on:
        return granted
    held = (row.allocated_gpus or 0) if row.is_held else 0
    return min(granted, -(-held * row.units // row.gpus))


def _seats(rows: Iterable[Asked]) -> Mapping[int, tuple[str, ...]]:
    """By request the steps that approved it, or are to decide it, as a policy names them."""
    granted = {row.request_id: row.is_granted for row in rows}
    steps = Step.objects.filter(
        request__in=list(granted),
        version=F("request__content_version"),
        dropped_at=None,
    )
    found = defaultdict[int, list[str]](list)
    for request_id, seat, done_at in steps.order_by().values_list(
        "request_id", "seat", "done_at"
    ):
        if done_at is not None or not granted[request_id]:
            found[request_id].append(pace_seat(seat))
    return defaultdict(
        tuple, {request_id: tuple(sorted(seats)) for request_id, seats in found.items()}
    )


def _added(run: Sequence[Earlier]) -> Earlier:
    last = run[-1]
    return Earlier(
        first=run[0].first,
        last=last.last,
        gpus=sum(each.gpus for each in run),
        usd=sum((each.usd for each in run), Decimal(0)),
        granted=last.granted,
        of_team=last.of_team,
        of_person=last.of_person,
        seats=last.seats,
        offering=last.offering,
        environment=last.environment,
        flavor=last.flavor,
        tier=last.tier,
    )
