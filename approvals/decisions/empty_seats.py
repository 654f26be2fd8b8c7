"""Seats in which nobody is known, of everything that waits: what a platform lead has to fill before anybody decides."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, Value
from django.db.models.functions import Concat

from accounts import people
from accounts.models import GroupHeld, SeatFill
from approvals.decisions.seats import PERSON, RIGHTS, IdText, written_seat
from approvals.models import Request, Step, StepQuerySet
from approvals.states import State

MAX_STEPS = 200


@dataclass(frozen=True)
class EmptySeat:
    """A seat and the requests that wait for it, oldest first."""

    words: str
    requests: tuple[Request, ...]

    @property
    def since(self) -> datetime:
        """When the oldest of them was asked for."""
        return self.requests[0].created_at


def vacant() -> StepQuerySet:
    """Undecided steps of waiting requests whose seat was read and nobody but the requester has; one query.

    The same rule as `vacancies.vacancies`, which asks for each step.
    """
    undone = Step.objects.undecided().filter(
        request__state=State.WAITING, version=F("request__content_version")
    )
    seat, requester = OuterRef("seat"), OuterRef("request__requester")
    filled = Q()
    for name, right in RIGHTS.items():
        filled |= Q(Exists(people.holding(right).exclude(pk=requester)), seat=name)
    groups = GroupHeld.objects.annotate(seat=Concat(Value("group:"), IdText("group")))
    in_group = groups.filter(seat=seat, user__in=people.present()).exclude(
        user=requester
    )
    named: Any = people.present().annotate(seat=written_seat("oid"))
    filled |= Q(Exists(in_group)) | Q(
        Exists(named.filter(seat=seat).exclude(pk=requester))
    )
    read = SeatFill.objects.filter(seat=seat, read_at__isnull=False)
    return undone.filter(Q(seat__startswith=PERSON) | Q(Exists(read))).exclude(filled)


def empty_seats() -> list[EmptySeat]:
    """Every empty seat that something waits for, the one first that was waited for longest."""
    steps = vacant().select_related("request__team", "request__flavor__cluster")
    found: dict[tuple[str, str], list[Request]] = {}
    for step in steps.order_by("request__created_at", "request_id")[:MAX_STEPS]:
        found.setdefault((step.seat, step.words), []).append(step.request)
    return [EmptySeat(words, tuple(requests)) for (_, words), requests in found.items()]
