"""Stand-ins, as the policy has it: it names Entra groups, whose people decide and have a seat to lend."""

from datetime import datetime

from django.db import transaction
from django.urls import reverse

from accounts import people
from accounts.models import Delegation, User
from accounts.stand_ins import actions as delegation
from approvals.judging.inputs import policy_in_force
from approvals.models import Step
from approvals.states import State
from notices.actions import tell
from notices.kinds import NoticeKind
from notices.message import Message
from ui.amounts import moment

GROUP = "group:"


@transaction.atomic
def lend(
    *,
    giver: User,
    to: User,
    starts_at: datetime,
    until: datetime,
    why: str,
    now: datetime,
) -> Delegation:
    """Ask somebody to decide in the giver's place, whether by a role, as a manager or as one of a group that decides.

    They are told, and it counts once they accept. Raises what `delegate` raises.
    """
    groups = groups_that_decide(now)
    made = delegation.delegate(
        giver=giver,
        to=to,
        starts_at=starts_at,
        until=until,
        why=why,
        now=now,
        groups=groups,
    )
    _tell(
        made,
        to=to,
        title=f"{giver.name} asks you to stand in",
        sentence=f"{giver.name} asks you to decide requests in their place {period(made, now)}. "
        "It counts once you accept. You decide under your own name, and never about what you asked for.",
        action="Accept or decline",
        now=now,
    )
    return made


@transaction.atomic
def accept(row: Delegation, *, by: User, now: datetime) -> None:
    """Stand in for the giver, who is told; doing so again changes nothing. Raises what `delegation.accept` raises."""
    if delegation.accept(row, by=by, now=now):
        sentence = f"{by.name} decides in your place {period(row, now)}. You keep deciding, too."
        _tell(
            row,
            to=row.giver,
            title=f"{by.name} stands in for you",
            sentence=sentence,
            now=now,
        )


@transaction.atomic
def decline(row: Delegation, *, by: User, now: datetime) -> None:
    """Refuse to stand in; the giver is told. Raises what `delegation.decline` raises."""
    if delegation.decline(row, by=by, now=now):
        sentence = f"{by.name} does not stand in for you {period(row, now)}. Name somebody else."
        title = f"{by.name} declined to stand in"
        _tell(
            row,
            to=row.giver,
            title=title,
            sentence=sentence,
            action="Name somebody else",
            now=now,
        )


@transaction.atomic
def end(row: Delegation, *, by: User, now: datetime) -> None:
    """End it from either side; the other is told. Raises what `end_delegation` raises."""
    if not delegation.end_delegation(row, by=by, now=now):
        return
    other = row.to if by.pk == row.giver_id else row.giver
    if row.accepted_at is None and by.pk == row.giver_id:
        title, sentence = (
            f"{by.name} has taken it back",
            f"You need not stand in {period(row, now)}.",
        )
    else:
        title, sentence = (
            "A stand-in has ended",
            f"{by.name} ended it. {row.to.name} no longer decides for {row.giver.name}.",
        )
    _tell(row, to=other, title=title, sentence=sentence, now=now)


def period(row: Delegation, now: datetime) -> str:
    """ "from Fri 20 Nov, 12:00 UTC until Mon 23 Nov, 12:00 UTC"."""
    return f"from {moment(row.starts_at, now)} until {moment(row.until, now)}"


def _tell(
    row: Delegation,
    *,
    to: User,
    title: str,
    sentence: str,
    now: datetime,
    action: str = "Open the page",
) -> None:
    facts = (("Why", row.why),) if row.why else ()
    said = Message(title=title, sentence=sentence, facts=facts, action=action)
    tell(
        NoticeKind.STAND_IN,
        to=[to],
        subject=("delegation", row.pk),
        link=reverse("stand-in"),
        message=said,
        now=now,
    )


def may_lend(user: User, *, now: datetime) -> bool:
    """Whether this person has a seat of their own to lend."""
    return people.decides(user, groups=groups_that_decide(now))


def groups_that_decide(now: datetime) -> frozenset[str]:
    """The object ids of the groups that the policy in force names, or the route of something that waits."""
    _, policy = policy_in_force(now)
    named = {
        seat
        for route in policy.routes
        for step in route.steps
        for seat in (step.by, step.escalate_to)
    }
    waiting = Step.objects.undecided().filter(request__state=State.WAITING)
    for name in ("seat", "escalate_to"):
        named.update(
            waiting.filter(**{f"{name}__startswith": GROUP})
            .values_list(name, flat=True)
            .distinct()
        )
    return frozenset(
        seat.removeprefix(GROUP) for seat in named if seat.startswith(GROUP)
    )
