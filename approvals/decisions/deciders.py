"""Who may decide a step now, and who of them is at work."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import F

from accounts import people
from accounts.models import Delegation, Membership, User
from accounts.roles import DECIDING
from accounts.stand_ins.actions import givers_for
from approvals.decisions.seats import holders, seats_of, seats_without_role
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
    if step.stand_in is not None and step.stand_in.is_active:
        sitting.append((step.stand_in, step.stand_in.pk))
    out = _voted(request) | {request.requester_id}
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


def _voted(request: Request) -> set[int]:
    votes = Decision.objects.filter(
        request=request,
        content_version=request.content_version,
        verdict__in=Decision.VOTES,
    )
    return {pk for row in votes.values_list("by_id", "seat_of_id") for pk in row}
