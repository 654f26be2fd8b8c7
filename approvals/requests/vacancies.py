"""Seats in which nobody is known: said before an ask is sent and after it, instead of waited for.

A seat that was never read from the directory is not empty: who has it is only not known yet.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from accounts.models import SeatFill, User
from approvals.decisions.routing import seat_of
from approvals.decisions.seats import holders, is_person
from approvals.models import Step
from policy.document import StepPlan

Seat = tuple[str, str]


@dataclass(frozen=True)
class Vacancies:
    """Seats without anybody, in words: `empty` ones were read, `unread` ones never; `tried_at` is when that failed."""

    empty: list[str]
    unread: list[str]
    tried_at: datetime | None = None

    @property
    def words(self) -> str:
        """What to say of them; empty for none."""
        return " ".join(filter(None, [self._of_empty, self._of_unread]))

    @property
    def _of_empty(self) -> str:
        if not self.empty:
            return ""
        return (
            f"Nobody is known as {' and '.join(self.empty)}, neither here nor in Entra ID, so nobody can decide there "
            "yet: a platform lead has to name somebody."
        )

    @property
    def _of_unread(self) -> str:
        if not self.unread:
            return ""
        seats = " and ".join(self.unread)
        if self.tried_at is None:
            return (
                f"The portal has not read yet who {seats} are. It reads that from Entra ID within half a minute, "
                "and tells whoever it finds."
            )
        return (
            f"It is not known yet who {seats} are: Entra ID did not answer at {self.tried_at:%H:%M} UTC. "
            "The portal tries again every minute, and tells whoever it finds."
        )


def sorted_out(seats: Iterable[Seat]) -> Vacancies:
    """Which of these seats, in which nobody is known, are empty and which were never read; no query for none."""
    given = list(seats)
    if not given:
        return Vacancies([], [])
    known = {
        row.seat: row
        for row in SeatFill.objects.filter(seat__in=[seat for seat, _ in given])
    }
    read = {seat for seat, row in known.items() if row.read_at is not None}
    unread = [
        (seat, words)
        for seat, words in given
        if not is_person(seat) and seat not in read
    ]
    tried = [
        row.tried_at
        for seat, _ in unread
        if (row := known.get(seat)) is not None and row.tried_at
    ]
    return Vacancies(
        [words for seat, words in given if (seat, words) not in unread],
        [words for _, words in unread],
        max(tried, default=None),
    )


def vacancies(seats: Iterable[Seat], requester: User) -> Vacancies:
    """Those of the seats that nobody but the requester is known to have: nobody could decide."""
    nobody = [
        each for each in seats if not holders(each[0]).exclude(pk=requester.pk).exists()
    ]
    return sorted_out(nobody)


def of_plans(plans: Iterable[StepPlan], requester: User) -> Vacancies:
    """The seats of a planned route in which nobody is known."""
    return vacancies([seat_of(plan, requester) for plan in plans], requester)


def of_steps(steps: Iterable[Step], requester: User) -> Vacancies:
    """The same of the steps of a request that nobody has decided yet."""
    return vacancies(
        [(step.seat, step.words) for step in steps if step.done_at is None], requester
    )
