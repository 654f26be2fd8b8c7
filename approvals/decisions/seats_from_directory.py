"""Filling the seats that decide from the directory, so that who never signed in is told and decides, too.

People are taken over by their object id, with what their seat gives and nothing else; signing in makes them the same
person. What was read stays while the directory is away, with its age.
"""

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from accounts.actions import object_ids, take_over_seat
from accounts.directory.client import graph
from accounts.models import SeatFill, User
from accounts.people import present
from accounts.roles import APP_ROLES, Role
from approvals import notices
from approvals.decisions import deciders
from approvals.decisions.empty_seats import vacant
from approvals.decisions.escalation import running
from approvals.decisions.routing import open_step
from approvals.decisions.seats import holders
from approvals.judging.inputs import policy_in_force
from approvals.models import Request
from approvals.stand_ins.actions import GROUP, groups_that_decide
from approvals.states import State
from connectors.errors import ConnectorError
from connectors.graph import Graph, Person
from policy.document import ENGINEERING_LEADERSHIP, MANAGERS, PLATFORM_LEADS, seat_words
from reconciling.sweeping import for_each

logger = logging.getLogger(__name__)
KNOWN_FOR = timedelta(minutes=10)
RETRY_AFTER = timedelta(minutes=1)
MAX_PEOPLE = 200
ROLES: Mapping[str, Role] = {
    PLATFORM_LEADS: Role.PLATFORM_LEAD,
    ENGINEERING_LEADERSHIP: Role.ENGINEERING_LEADERSHIP,
}


def fill_due(now: datetime) -> int:
    """Read the seats that were not read for ten minutes from the directory; returns how many were read.

    A seat that cannot be taken over keeps no other from being read, and nobody from being told; the failures are
    raised once all have had their turn.
    """
    known = {row.seat: row for row in SeatFill.objects.all()}
    wanted = [*ROLES, *(f"{GROUP}{oid}" for oid in sorted(groups_that_decide(now)))]
    due = [seat for seat in wanted if seat not in known or _is_due(known[seat], now)]
    read: list[str] = []

    def fill_seat(seat: str) -> None:
        if _fill(seat, now=now):
            read.append(seat)

    try:
        for_each(due, fill_seat)
    finally:
        try:
            _take_managers_over(now)
        finally:
            try:
                for_each(_waiting_for_newcomers(), partial(_tell_newcomers, now=now))
            finally:
                new = [seat for seat in read if _is_first_time(known.get(seat))]
                for_each(_with_empty(new), partial(_tell_of_empty, now=now))
    return len(read)


def _is_first_time(before: SeatFill | None) -> bool:
    return before is None or before.read_at is None


def _with_empty(seats: Iterable[str]) -> list[int]:
    """What was asked for before these seats were read for the first time and found empty."""
    waiting = vacant().filter(seat__in=seats).order_by()
    return sorted(set(waiting.values_list("request_id", flat=True)))


def _locked(request_id: int) -> Request:
    rows = Request.objects.locked().select_related(
        "team", "requester", "flavor__cluster"
    )
    return rows.get(pk=request_id)


@transaction.atomic
def _tell_of_empty(request_id: int, *, now: datetime) -> None:
    request = _locked(request_id)
    if request.state == State.WAITING:
        notices.seats_empty(request, now=now)


def _waiting_for_newcomers() -> list[int]:
    """Requests whose open step is the seat of somebody who never signed in and was not told of it."""
    found = []
    for step in running().select_related("request").order_by("request_id")[:MAX_PEOPLE]:
        own = {
            user.pk
            for seat in deciders.seats_open(step)
            for user in holders(seat).filter(signed_in_at=None)
        }
        if own - notices.asked(step.request_id):
            found.append(step.request_id)
    return found


@transaction.atomic
def _tell_newcomers(request_id: int, *, now: datetime) -> None:
    """Tell those who became known after the step was opened that it waits for them, once each."""
    request = _locked(request_id)
    step = open_step(request) if request.state == State.WAITING else None
    if step is None or step.paused_at is not None:
        return
    told = notices.asked(request_id)
    may = deciders.candidates(step, request, now=now)
    new = [user for user in may if user.signed_in_at is None and user.pk not in told]
    if new:
        notices.waits(request, step, to=new, now=now)


def _is_due(row: SeatFill, now: datetime) -> bool:
    if row.tried_at is not None and row.tried_at > now - RETRY_AFTER:
        return False
    return row.read_at is None or row.read_at <= now - KNOWN_FOR


def _fill(seat: str, *, now: datetime) -> bool:
    """Take over everybody whose seat it is; what was read before stays when the directory does not answer."""
    row, _ = SeatFill.objects.get_or_create(
        seat=seat, defaults={"words": seat_words(seat)}
    )
    try:
        found = list(_people_of(seat, graph()))
    except ConnectorError as error:
        logger.warning(
            "a seat cannot be read", extra={"seat": seat, "error": error.message}
        )
        SeatFill.objects.filter(pk=row.pk).update(
            tried_at=now, error=error.message[:300]
        )
        return False
    roles = (ROLES[seat],) if seat in ROLES else ()
    groups = () if seat in ROLES else (seat.removeprefix(GROUP),)
    for person in found[:MAX_PEOPLE]:
        take_over_seat(person, roles=roles, groups=groups)
    SeatFill.objects.filter(pk=row.pk).update(
        tried_at=now, read_at=now, people=len(found), error="", words=seat_words(seat)
    )
    return True


def _people_of(seat: str, directory: Graph) -> Iterable[Person]:
    """Everybody with this seat who may sign in, each once; raises ConnectorError."""
    found: dict[str, Person] = {}
    if seat in ROLES:
        values = {value for value, role in APP_ROLES.items() if role is ROLES[seat]}
        for person in directory.people_with_role(settings.ENV.entra_client_id, values):
            found[person.oid] = person
        groups = [
            oid
            for oid, role in settings.ENV.role_groups.items()
            if role == ROLES[seat].value
        ]
    else:
        groups = [seat.removeprefix(GROUP)]
    for group in groups:
        for person in directory.members(group):
            found[person.oid] = person
    return [
        person
        for person in found.values()
        if person.enabled and object_ids([person.oid])
    ]


def _take_managers_over(now: datetime) -> None:
    """Take managers over of whom Entra ID has told, where the policy has managers decide."""
    _, policy = policy_in_force(now)
    if not any(step.by == MANAGERS for route in policy.routes for step in route.steps):
        return
    known = {str(oid) for oid in User.objects.values_list("oid", flat=True)}
    for names in (
        present().filter(~Q(manager_names={})).values_list("manager_names", flat=True)
    ):
        for oid in names.keys() - known:
            known.add(oid)
            person = Person(
                oid, names[oid].get("name") or "", names[oid].get("email") or ""
            )
            take_over_seat(person, roles=(), groups=())
