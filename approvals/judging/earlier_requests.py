"""Gathering the other asks of a team and of a person that count when the route of the next one is chosen."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from operator import attrgetter

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from accounts.models import User
from approvals.models import Request, Step
from approvals.requests.wanted import Wanted, environment_of
from approvals.states import State
from policy.document import MANAGERS
from policy.route_size import Earlier

# A team that asks more often than this within a window is counted by its newest asks.
MAX_REQUESTS = 1_000
CENT = Decimal("0.01")
KIND = attrgetter(
    "granted", "of_team", "of_person", "seats", "offering", "environment", "flavor", "tier"
)  # what asks must have in common to be added up


def gather(
    wanted: Wanted, *, person: User, since: datetime, now: datetime, own: int = 0
) -> tuple[Earlier, ...]:
    """What the team and the person wait for, hold, or were granted since a moment, oldest first, runs added up.

    `own` is the hold of the request being judged. What a renewal goes on with counts in the renewal alone.
    """
    rows = _rows(wanted, person, since=since, now=now)
    if own:
        # What was asked after it waits behind it, and makes it no larger: holds are numbered in the order of asks.
        rows = rows.exclude(hold=own).exclude(state=State.WAITING, hold__gt=own)
    if wanted.renews is not None:
        rows = rows.exclude(pk=wanted.renews)
    # Of what was granted at one moment, what was asked first stands first.
    found = [_earlier(row, wanted, person, since=since) for row in list(rows[:MAX_REQUESTS])[::-1]]
    counted = sorted((each for each in found if each.gpus or each.usd), key=attrgetter("last"))
    return tuple(_added(list(run)) for _, run in groupby(counted, key=KIND))


def _rows(wanted: Wanted, person: User, *, since: datetime, now: datetime) -> QuerySet[Request]:
    granted = Q(state=State.APPROVED) & (Q(decided_at__gte=since) | Q(until__gt=now))
    theirs = Q(team_id=wanted.team.pk or 0) | Q(requester=person)
    return (
        Request.objects.filter(theirs, Q(state=State.WAITING) | granted)
        .annotate(
            goes_on=Exists(Request.objects.filter(renews=OuterRef("pk"), state=State.APPROVED)),
        )
        .select_related("team", "tenancy", "flavor", "allocation")
        .prefetch_related(Prefetch("steps", Step.objects.order_by("position")))
        .order_by("-created_at", "-pk")
    )


def _earlier(row: Request, wanted: Wanted, person: User, *, since: datetime) -> Earlier:
    at = row.decided_at or row.created_at
    units = _units(row, since=since)
    return Earlier(
        first=at,
        last=at,
        gpus=units * row.gpus // row.count,
        usd=(row.usd * units / row.count).quantize(CENT),
        granted=row.state == State.APPROVED,
        of_team=row.team_id == wanted.team.pk,
        of_person=row.requester_id == person.pk,
        seats=_seats(row),
        offering=row.offering,
        environment=_environment(row),
        flavor=row.flavor.name if row.flavor is not None else "",
        tier=row.team.tier,
    )


def _environment(row: Request) -> str:
    # A spec is read only where it has to be: a team may have asked often.
    if row.tenancy is not None and not row.of.judged_as:
        return row.tenancy.environment
    return environment_of(row.of, row.asked, row.tenancy)


def _units(row: Request, *, since: datetime) -> int:
    """How many units of a request count: all that waits or was granted lately, and of the rest what is held."""
    if row.state == State.WAITING:
        return row.count
    granted, is_recent = row.approved_count or 0, row.decided_at is not None and row.decided_at >= since
    held = row.allocation.gpus if row.allocation is not None and row.allocation.ended_at is None else 0
    if row.flavor_id is None:
        is_over = row.allocation is None or row.allocation.ended_at is not None
        return granted if is_recent or not is_over else 0
    if is_recent and not getattr(row, "goes_on", False):
        return granted
    return min(granted, -(-held * row.count // row.gpus))


def _seats(row: Request) -> tuple[str, ...]:
    """The steps that approved a request, or are to decide it, as a policy names them."""
    steps = row.current_steps
    if row.state == State.APPROVED:
        steps = [step for step in steps if step.done_at is not None]
    return tuple(sorted(MANAGERS if step.seat.startswith("person:") else step.seat for step in steps))


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
