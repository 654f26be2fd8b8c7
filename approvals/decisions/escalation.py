"""What happens by itself while people are silent: a reminder, a stand-in, the next level. A sweep, no timers.

Everything here is done once, whoever sweeps and however often: each request is locked and looked at again. Presence is
what the directory said last, so nothing here asks it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from accounts import people
from accounts.actions import object_ids
from accounts.models import DirectoryBrake, User
from approvals import notices
from approvals.decisions import deciders
from approvals.decisions.route_words import upper
from approvals.decisions.routing import open_step
from approvals.decisions.seats import (
    PERSON,
    holders,
    is_person,
    seat_of_person,
    written_seat,
)
from approvals.events import record_event
from approvals.models import Decision, Request, Step, StepQuerySet
from approvals.requests.vacancies import of_steps
from approvals.states import State
from audit.actors import PORTAL
from audit.events import Kind
from notices.kinds import NoticeKind
from policy.document import PLATFORM_LEADS, seat_words
from reconciling.turns import in_turn

# How many requests one sweep locks and looks at; with more, the sweeps take turns.
MAX_LOOKED_AT = 1_000
SWEEP_SECONDS = 60


@dataclass(frozen=True)
class Done:
    """Something that the clock did, as the audit log keeps it; `why` is late, away, empty, voted or back."""

    kind: Kind
    to: str
    why: str


def running() -> StepQuerySet:
    """The open steps whose time runs."""
    return Step.objects.open().filter(
        paused_at=None,
        request__state=State.WAITING,
        version=F("request__content_version"),
    )


def due(now: datetime) -> list[int]:
    """The requests at which something may be to do now, oldest first; with more than one sweep looks at, in turn.

    Those for which somebody stands in, or whose seat cannot be read, are among them until that changes.
    """
    late = Q(reminded_at=None, remind_at__lte=now) | Q(
        escalated_at=None, escalate_at__lte=now
    )
    steps = running().filter(
        late | Q(stand_in__isnull=False) | (Q(escalated_at=None) & _absent(now))
    )
    found = list(steps.order_by("request_id").values_list("request_id", flat=True))
    return in_turn(found, most=MAX_LOOKED_AT, seconds=SWEEP_SECONDS, now=now)


def _absent(now: datetime) -> Q:
    """Steps of which perhaps nobody is at work who could decide them: few queries for however many steps.

    Where somebody is at work, only steps that this person may not decide are looked at one by one.
    """
    voted = Decision.objects.filter(step=OuterRef("pk"), verdict__in=Decision.VOTES)
    waiting = (
        running()
        .filter(escalated_at=None, stand_in=None)
        .exclude(escalate_to=F("seat"))
    )
    seats = set(waiting.order_by().values_list("seat", flat=True).distinct())
    persons = set(filter(is_person, seats))
    known = people.of_oids(seat.removeprefix(PERSON) for seat in persons)
    staffed = {seat_of_person(user.oid) for user in deciders.at_work(known, now=now)}
    found = Q(seat__in=persons - staffed) | Q(_owner_has_voted(), seat__in=staffed)
    for seat in seats - persons:
        sitting = list(holders(seat))
        here = deciders.at_work(sitting, now=now)
        if not here:
            found |= Q(seat=seat) & ~Q(escalate_to=seat)
        elif len(here) < len(sitting):
            asked = Q(request__requester__in=[user.pk for user in here])
            found |= Q(seat=seat) & (asked | Q(Exists(voted)))
    return found


def _owner_has_voted() -> Exists:
    """Whether the one person whose seat a step is has voted, themselves or by somebody else, on what is asked."""
    votes = Decision.objects.filter(
        request=OuterRef("request"),
        content_version=OuterRef("version"),
        verdict__in=Decision.VOTES,
    ).annotate(of_by=written_seat("by__oid"), of_giver=written_seat("seat_of__oid"))
    seat = OuterRef("seat")
    return Exists(votes.filter(Q(of_by=seat) | Q(of_giver=seat)))


@transaction.atomic
def look(request_id: int, *, now: datetime) -> list[Done]:
    """Do what is due at one request, and tell those concerned; doing it again does nothing."""
    request = (
        Request.objects.locked()
        .select_related("team", "requester", "flavor__cluster")
        .get(pk=request_id)
    )
    step = open_step(request) if request.state == State.WAITING else None
    if step is None or step.opened_at is None or step.paused_at is not None:
        return []
    done = [
        *_remind(request, step, now=now),
        *pass_over(request, step, now=now),
        *_escalate(request, step, now=now),
    ]
    write_down(request, done)
    return done


def begin(request: Request, step: Step, *, now: datetime, lead: str = "") -> list[Done]:
    """Tell of a step that has just opened; who is out of office is passed over at once.

    What was done is for `write_down`, when nothing else is to be locked any more.
    """
    done = pass_over(request, step, now=now, tell=False)
    notices.waits(request, step, lead=lead, now=now)
    return done


def write_down(request: Request, done: Sequence[Done]) -> None:
    """Put what the clock did into the audit log."""
    for each in done:
        record_event(each.kind, request, actor=PORTAL, to=each.to, why=each.why)


def pass_over(
    request: Request, step: Step, *, now: datetime, tell: bool = True
) -> list[Done]:
    """Find who decides an open step while those who should are away, or take that back once they are there again."""
    if is_person(step.seat):
        return _manager(request, step, now=now, tell=tell)
    if step.escalated_at is not None or step.escalate_to == step.seat:
        return []
    if deciders.at_work(deciders.candidates(step, request, now=now), now=now):
        return []
    # A seat looks empty when the directory has emptied it: nobody is passed over for that.
    if DirectoryBrake.objects.open().exists():
        return []
    # Nobody is waited for where nobody is; whose seat was never read is not known yet, and so not passed over.
    vacant = of_steps([step], request.requester)
    if vacant.unread:
        return []
    why = "empty" if vacant.empty else "away"
    return [_pass_on(request, step, why=why, now=now, tell=tell)]


def _manager(request: Request, step: Step, *, now: datetime, tell: bool) -> list[Done]:
    """Find who decides for a manager who is away or has voted on another step; else it is the manager's own."""
    person = holders(step.seat).first()
    has_voted = person is not None and person.pk in deciders.voices(request)
    if person is not None and not has_voted and not person.is_out(now):
        return _take_back(request, step, person, now=now)
    if _still_stands_in(request, step, now=now):
        return []
    why = "voted" if has_voted else "away"
    found = _in_place_of(person, request, step, now=now)
    _keep(step, stand_in=found)
    if found is not None:
        if tell:
            lead = f"{upper(step.words)} {_reason(step, why)}, so this is for you."
            notices.waits(request, step, to=[found], lead=lead, now=now)
        return [Done(Kind.REQUEST_ESCALATED, found.name, why)]
    if step.escalated_at is not None:
        return []
    return [_pass_on(request, step, to=PLATFORM_LEADS, why=why, now=now, tell=tell)]


def _still_stands_in(request: Request, step: Step, *, now: datetime) -> bool:
    """Whether somebody stands in who can still decide: the seat may have been lent to them until now."""
    there = step.stand_in
    return (
        there is not None
        and not there.is_out(now)
        and deciders.may_vote(there, step, request, now=now)
    )


def _in_place_of(
    person: User | None, request: Request, step: Step, *, now: datetime
) -> User | None:
    """Who decides for somebody who cannot: whom they named, else the next above them who is known and at work.

    Nobody who has voted, nor in the seat of somebody who has.
    """
    out = deciders.voices(request) | {request.requester_id}
    lent = (
        deciders.lent_by([person], now=now) if person and person.pk not in out else []
    )
    # Nobody of the team that asks decides for it in another's place.
    named = [each.to for each in lent if request.team_id not in each.to.team_ids]
    chain = [oid for given in request.requester.managers for oid in object_ids([given])]
    oid = step.seat.removeprefix(PERSON)
    above = chain[chain.index(oid) + 1 :] if oid in chain else chain
    free = deciders.at_work([*named, *people.of_oids(above)], now=now)
    return next((user for user in free if user.pk not in out), None)


def _take_back(
    request: Request, step: Step, person: User, *, now: datetime
) -> list[Done]:
    """Let a manager who is there again decide alone; while the directory is silent the last that it said holds."""
    is_back = not person.is_away or (
        person.away_until is not None and person.away_until <= now
    )
    if step.stand_in is None or not is_back:
        return []
    _keep(step, stand_in=None)
    return [Done(Kind.REQUEST_ESCALATED, person.name, "back")]


def _remind(request: Request, step: Step, *, now: datetime) -> list[Done]:
    if step.reminded_at is not None or step.remind_at is None or step.remind_at > now:
        return []
    _keep(step, reminded_at=now)
    return [_tell_again(request, step, now=now)]


def _escalate(request: Request, step: Step, *, now: datetime) -> list[Done]:
    if (
        step.escalated_at is not None
        or step.escalate_at is None
        or step.escalate_at > now
    ):
        return []
    if step.escalate_to == step.seat:  # nobody is above them
        _keep(step, escalated_at=now)
        return [_tell_again(request, step, now=now)]
    return [_pass_on(request, step, why="late", now=now, tell=True)]


def _tell_again(request: Request, step: Step, *, now: datetime) -> Done:
    notices.waits(
        request,
        step,
        lead="It still waits for you.",
        kind=NoticeKind.REQUEST_REMINDER,
        now=now,
    )
    return Done(Kind.REQUEST_REMINDED, step.words, "late")


def _pass_on(
    request: Request, step: Step, *, why: str, now: datetime, tell: bool, to: str = ""
) -> Done:
    """Let the next level decide, too."""
    to = to or step.escalate_to
    _keep(step, escalated_at=now, escalate_to=to)
    if tell:
        lead = f"{upper(step.words)} {_reason(step, why)}, so it is passed on to you."
        level = [user for user in holders(to) if user.pk != request.requester_id]
        notices.waits(
            request,
            step,
            to=people.at_work(level, now=now),
            lead=lead,
            kind=NoticeKind.REQUEST_ESCALATED,
            now=now,
        )
    return Done(Kind.REQUEST_ESCALATED, seat_words(to), why)


def _reason(step: Step, why: str) -> str:
    """Why the step is not decided by those whose it is, as their sentence goes on."""
    be, have = ("is", "has") if is_person(step.seat) else ("are", "have")
    reasons = {
        "away": f"{be} out of office",
        "empty": f"{be} not known to anybody",
        "voted": f"{have} decided a step of it already",
    }
    return reasons.get(why, f"{have} not decided yet")


def _keep(step: Step, **fields: object) -> None:
    for name, value in fields.items():
        setattr(step, name, value)
    step.save(update_fields=list(fields))
