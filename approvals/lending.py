"""Stand-ins, as the policy has it: it names Entra groups, whose people decide and have a seat to lend."""

from datetime import datetime

from accounts import people
from accounts.delegation import delegate
from accounts.models import Delegation, User
from approvals.models import Step
from approvals.standing import policy_in_force
from approvals.states import State

GROUP = "group:"


def lend(
    *, giver: User, to: User, starts_at: datetime, until: datetime, why: str, now: datetime
) -> Delegation:
    """Let somebody decide in the giver's place, whether by a role, as a manager or as one of a group that decides.

    Raises what `delegate` raises.
    """
    groups = groups_that_decide(now)
    return delegate(giver=giver, to=to, starts_at=starts_at, until=until, why=why, now=now, groups=groups)


def may_lend(user: User, *, now: datetime) -> bool:
    """Whether this person has a seat of their own to lend."""
    return people.decides(user, groups=groups_that_decide(now))


def groups_that_decide(now: datetime) -> frozenset[str]:
    """The object ids of the groups that the policy in force names, or the route of something that waits."""
    _, policy = policy_in_force(now)
    named = {seat for route in policy.routes for step in route.steps for seat in (step.by, step.escalate_to)}
    waiting = Step.objects.undecided().filter(request__state=State.WAITING)
    for name in ("seat", "escalate_to"):
        named.update(waiting.filter(**{f"{name}__startswith": GROUP}).values_list(name, flat=True).distinct())
    return frozenset(seat.removeprefix(GROUP) for seat in named if seat.startswith(GROUP))
