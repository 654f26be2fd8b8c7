"""Who may decide a step now, and who of them is at work."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from django.db.models import F

from accounts import people
from accounts.models import Delegation, Membership, User
from accounts.roles import DECIDING
from accounts.stand_ins.actions import givers_for
from approvals.decisions.seats import (
    holders,
    seat_of_person,
    seats_of,
    seats_without_role,
    sits,
)
from approvals.models import Decision, Request, Step
from approvals.states import State


def seats_open(step: Step) -> list[str]:
    """The seats that may decide the step: its own and, once it was passed on, the next level's."""
    return list(
        dict.fromkeys(
            [step.seat, step.escalate_to] if step.escalated_at else [step.seat]
        )
    )


def decides(user: User, *, now: datetime) -> bool:
    """Whether deciding is this person's: by a role, or as a step that waits is their seat's or of who lent them one.

    Every page asks this: a role needs no query, and who has none and stands in for nobody one.
    """
    if any(user.may(permission) for permission in DECIDING):
        return True
    known = user.stands_in is False
    seats = seats_without_role(user) if known else seats_of(user, givers_for(user, now))
    steps = Step.objects.open().of(user, seats)
    return steps.filter(
        request__state=State.WAITING, version=F("request__content_version")
    ).exists()


def seat_for(user: User, step: Step, request: Request, *, now: datetime) -> User | None:
    """In whose seat a person may decide a step: their own, or that of somebody they stand in for; None for nobody's.

    Of several whom they stand in for it is one who has not voted yet, if there is one. The requester's seat is
    nobody's, whoever stands in for them.
    """
    if any(sits(user, seat) for seat in seats_open(step)):
        return user
    lenders = _lenders(user, step, request, now=now)
    out = voices(request) if lenders else frozenset()
    if (
        giver := next((each for each in lenders if each.pk not in out), None)
    ) is not None:
        return giver
    if _decides_above(user, step, request):
        return user
    return next(iter(lenders), None)


def _decides_above(user: User, step: Step, request: Request) -> bool:
    """Whether this person was named as one above a manager who cannot decide, which they have to be still."""
    return (
        step.stand_in_id == user.pk
        and str(user.oid) in request.requester.managers
        and user.is_active
    )


def _lenders(
    user: User, step: Step, request: Request, *, now: datetime
) -> Sequence[User]:
    """Those who lend this person a seat that may decide the step."""
    # Who is of the team that asks decides for it in nobody's place.
    if request.team_id in user.team_ids:
        return []
    seats = seats_open(step)
    return [
        giver
        for giver in givers_for(user, now)
        if giver.pk != request.requester_id and any(sits(giver, seat) for seat in seats)
    ]


def voices(request: Request) -> frozenset[int]:
    """Who has voted on what is asked now, and in whose seats: they are one voice over all steps, and it is heard once.

    Asks nothing where the decisions are at hand.
    """
    votes = _votes(request, request.content_version)
    found = (pk for vote in votes for pk in (vote.by_id, vote.seat_of_id))
    return frozenset(pk for pk in found if pk is not None)


def has_voted(request: Request, user: User, seat_of: User) -> bool:
    """Whether the voice of a person, or of whose seat they decide in, was heard on what is asked now."""
    return bool({user.pk, seat_of.pk} & voices(request))


def may_vote(user: User, step: Step, request: Request, *, now: datetime) -> bool:
    """Whether a vote of this person on the step would be taken: they have a seat for it and have not voted."""
    seat_of = seat_for(user, step, request, now=now)
    return seat_of is not None and not has_voted(request, user, seat_of)


def has_voted_elsewhere(
    step: Step, request: Request, *, by: datetime | None = None
) -> bool:
    """Whether the one person whose seat the step is has voted, themselves or by somebody else, on another step.

    With `by` only what was decided until then counts.
    """
    people_heard = (
        person
        for vote in _votes(request, step.version)
        if vote.step_id != step.pk and (by is None or vote.at <= by)
        for person in (vote.by, vote.seat_of)
    )
    return any(
        step.seat == seat_of_person(person.oid)
        for person in people_heard
        if person is not None
    )


def _votes(request: Request, version: int) -> Iterator[Decision]:
    """The votes on one version of what is asked."""
    return (
        decision
        for decision in request.decisions.all()
        if decision.verdict in Decision.VOTES and decision.content_version == version
    )


def candidates(step: Step, request: Request, *, now: datetime) -> list[User]:
    """Everybody who may decide the step now and has not voted on what is asked, at work or not, each once.

    One query for each seat, and three for those they lend it to and for the votes.
    """
    own = [
        user
        for seat in seats_open(step)
        for user in holders(seat)
        if user.pk != request.requester_id
    ]
    sitting = [(user, user.pk) for user in own]
    lent = lent_by(own, now=now)
    # Nobody of the team that asks decides for it in another's place.
    team = Membership.objects.filter(
        team=request.team_id, user__in=[each.to_id for each in lent]
    )
    theirs = set(team.values_list("user", flat=True)) if lent else set()
    sitting += [(each.to, each.giver_id) for each in lent if each.to_id not in theirs]
    if step.stand_in is not None and may_vote(step.stand_in, step, request, now=now):
        sitting.append((step.stand_in, step.stand_in.pk))
    out = voices(request) | {request.requester_id}
    return list(
        {
            user.pk: user for user, seat_of in sitting if not {user.pk, seat_of} & out
        }.values()
    )


def lent_by(givers: Iterable[User], *, now: datetime) -> list[Delegation]:
    """The delegations in force of these people, to who still has an account here."""
    in_force = Delegation.objects.in_force(now).filter(
        giver__in=[user.pk for user in givers]
    )
    return list(
        in_force.filter(to__in=people.present())
        .select_related("to")
        .order_by("starts_at", "pk")
    )


def at_work(users: Iterable[User], *, now: datetime) -> list[User]:
    """Those who are not out of office, as far as is known."""
    return [user for user in users if not user.is_out(now)]
