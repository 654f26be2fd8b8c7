"""How much of its error budget a service has used, over a window that ends today. Pure.

The budget is the share of requests that may fail (Google, "The Site Reliability Workbook", chapter 5): of a million
requests that 99.9 % must be answered of, a thousand.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

from workloads.service_levels.tiers import Objective, seconds

# The window in days, and the last part of it; half of a budget that goes within that part goes too fast.
DAYS, LATELY, TOO_MUCH = 30, 7, 0.5
# Below these shares of the budget all is well again: around its limits a service would be news with every request.
CALM, CALM_LATELY = 0.9, 0.4
MINUTES = DAYS * 24 * 60


class State(StrEnum):
    """How a service stands."""

    UNKNOWN = "unknown"
    FEW = "few"
    WELL = "well"
    FAST = "fast"
    SPENT = "spent"

    @property
    def words(self) -> str:
        """The state as people read it."""
        return WORDS[self][0]

    @property
    def advice(self) -> str:
        """What to do; empty where nothing is."""
        return WORDS[self][1]


WORDS = {
    State.UNKNOWN: ("Not measured", ""),
    State.FEW: ("Too few requests", ""),
    State.WELL: ("Within its budget", ""),
    State.FAST: (
        "Burning fast",
        "Hold changes back until what fails is understood: at this pace the rest is gone within a week.",
    ),
    State.SPENT: (
        "Budget used up",
        "Change nothing but what makes it more reliable until requests that failed have left the 30 days.",
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Day:
    """What was counted on a day (UTC); `p99` is the seconds of its worst hour, None where none had a hundred requests.

    Where `is_beyond`, it was more than that: the buckets of the histogram end there.
    """

    day: date
    requests: float
    failed: float
    p99: float | None
    is_beyond: bool = False

    @property
    def latency(self) -> str:
        """Its latency as people read it; empty where it is not known."""
        return latency(self.p99, self.is_beyond)


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Requests of the window, those that failed, those that may; `lately` are those that failed in its last days.

    `days` is how many of the window's there are since its first request was counted: a service that is measured
    since yesterday has the budget of thirty such days, not that of the few requests so far, which a single error would
    use up.
    `p99` is the seconds of the worst hour of today or yesterday.
    """

    objective: Objective
    requests: float
    failed: float
    lately: float
    p99: float | None
    days: int
    is_beyond: bool = False

    @property
    def may_fail(self) -> float:
        """How many of the requests of a whole window may fail, at as many a day as were counted so far."""
        return self.requests * DAYS / self.days * float(self.objective.may_fail)

    @property
    def availability(self) -> float | None:
        """The share that was answered, from 0 to 1; None without requests."""
        return 1 - self.failed / self.requests if self.requests else None

    @property
    def used(self) -> float | None:
        """The share of the budget that is used: above 1 it is overspent; None without requests."""
        return self.failed / self.may_fail if self.may_fail else None

    @property
    def minutes_left(self) -> float | None:
        """For how many minutes it could still fail altogether, at its usual number of requests."""
        if self.used is None:
            return None
        return max(0.0, 1 - self.used) * MINUTES * float(self.objective.may_fail)

    @property
    def state(self) -> State:
        """How it stands; of a budget of less than one request nothing is told."""
        if self.used is None:
            return State.UNKNOWN
        if self.may_fail < 1:
            return State.FEW
        if self.used >= 1:
            return State.SPENT
        if self.lately / self.may_fail >= TOO_MUCH:
            return State.FAST
        return State.WELL

    @property
    def is_calm(self) -> bool:
        """Whether it is within its budget, with some room."""
        room = self.state is State.WELL and (self.used or 0) < CALM
        return room and self.lately / self.may_fail < CALM_LATELY

    @property
    def is_slow(self) -> bool:
        """Whether it answers later than its objective says, as far as can be seen."""
        if self.p99 is None:
            return False
        promised = self.objective.p99_seconds
        return self.p99 > promised or (self.is_beyond and self.p99 >= promised)

    @property
    def needs_care(self) -> bool:
        """Whether somebody should do something about it now."""
        return self.state in (State.SPENT, State.FAST) or self.is_slow

    @property
    def is_unseen(self) -> bool:
        """Whether nobody can see if it is slow: requests took longer than its histogram tells, but that is promised."""
        return self.p99 is not None and self.is_beyond and not self.is_slow

    @property
    def latency(self) -> str:
        """Its latency as people read it; empty where it is not known."""
        return latency(self.p99, self.is_beyond)

    @property
    def within(self) -> str:
        """How fast 99 of 100 requests were answered in the worst hour, as a part of a sentence."""
        return f"{'not even ' if self.is_beyond else ''}within {seconds(self.p99 or 0)}"


def latency(p99: float | None, is_beyond: bool) -> str:
    """A latency of which perhaps only the least is known, as people read it; empty where none is."""
    if p99 is None:
        return ""
    return f"over {seconds(p99)}" if is_beyond else seconds(p99)


def budget_of(
    days: Iterable[Day],
    objective: Objective,
    *,
    today: date,
    first: date | None = None,
) -> Budget:
    """What the days of the window that ends today add up to.

    `first` is the day from which it is counted, where that may lie before these days: one that had no requests for a
    month, as what is scaled to zero, is not new when it has some again.
    """
    window = [one for one in days if today - timedelta(DAYS) < one.day <= today]
    lately = [one for one in window if one.day > today - timedelta(LATELY)]
    latencies = [
        (one.p99, one.is_beyond)
        for one in window
        if one.p99 is not None and one.day >= today - timedelta(1)
    ]
    p99, is_beyond = max(latencies, default=(None, False))
    return Budget(
        objective=objective,
        requests=sum(one.requests for one in window),
        failed=sum(one.failed for one in window),
        lately=sum(one.failed for one in lately),
        p99=p99,
        is_beyond=is_beyond,
        days=_counted_days([one.day for one in window], today=today, first=first),
    )


def _counted_days(window: Iterable[date], *, today: date, first: date | None) -> int:
    begins = min([*window, first or today, today])
    return min((today - begins).days + 1, DAYS)
