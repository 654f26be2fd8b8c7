"""Seats in which nobody is known: said before an ask is sent and after it, instead of waited for."""

from collections.abc import Iterable, Sequence

from accounts.models import User
from approvals.decisions.routing import seat_of
from approvals.decisions.seats import holders
from approvals.models import Step
from policy.document import StepPlan


def is_vacant(seat: str, requester: User) -> bool:
    """Whether nobody but the requester is known to have this seat: nobody could decide."""
    return not holders(seat).exclude(pk=requester.pk).exists()


def vacant_plans(plans: Iterable[StepPlan], requester: User) -> list[str]:
    """The seats of a planned route in which nobody is known, in words."""
    seats = [seat_of(plan, requester) for plan in plans]
    return [words for seat, words in seats if is_vacant(seat, requester)]


def vacant_steps(steps: Iterable[Step], requester: User) -> list[str]:
    """The same of the steps of a request that nobody has decided yet."""
    return [step.words for step in steps if step.done_at is None and is_vacant(step.seat, requester)]


def vacancy_words(seats: Sequence[str]) -> str:
    """What to say of empty seats; empty for none."""
    if not seats:
        return ""
    return (
        f"Nobody is known as {' and '.join(seats)}, neither here nor in Entra ID, so nobody can decide there yet: "
        "a platform lead has to name somebody."
    )
