"""What is decided at once, and by whom the rest: pure. Preview, verdict, what-if and simulator are this one function.

All rules hold: the policy approves. One does not: the people of the first route that takes the ask decide.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from allocations.bookings.levels import lowest
from allocations.budgets import money
from allocations.budgets.money import Amount
from fleet.growth import grows
from policy.document import Policy, StepPlan, Thresholds
from policy.route_size import RouteSize, choose
from policy.rules import Arrival, Ask, Coming, Rule, Standing, applied
from ui.amounts import moment

__all__ = [
    "Ask",
    "Coming",
    "Evaluation",
    "Outcome",
    "Rule",
    "Standing",
    "evaluate",
    "later_automatic",
    "nearest_automatic",
]

DAY = timedelta(days=1)
AT_ONCE = {
    Arrival.WRITTEN: "Yours in about 5 seconds.",
    Arrival.WHEN_IT_ANSWERS: "The cluster does not answer now: yours, and charged, once it does.",
    Arrival.COMMITTED: "Committed to Git in about 5 seconds, yours once the cluster follows.",
    Arrival.PROPOSED: "A pull request opens in about 5 seconds, yours once it is merged.",
    Arrival.IN_AZURE: "Azure makes it within minutes, or says why not.",
}
# Rules that time alone may mend: what is taken now comes back, what was asked lately falls out of the windows.
MENDED_BY_TIME = frozenset(
    (
        *("free", "after", "budget", "budget_hours", "budget_soft"),
        *("window", "window_person", "window_usd", "window_usd_person"),
    )
)
# Those, and what else comes by the doing of others: use, a quota in Azure, a confirmed cost centre, a booking given up.
CHANGES_BY_ITSELF = MENDED_BY_TIME | {"use", "quota", "cost_centre", "booked"}


class Outcome(StrEnum):
    """The policy's answer; IMPOSSIBLE can be approved by nobody as it stands."""

    AUTOMATIC = "automatic"
    PEOPLE = "people"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """The answer with every rule, the deciding ones first, and who decides in which order."""

    outcome: Outcome
    rules: tuple[Rule, ...]
    route: tuple[StepPlan, ...]
    usd: Decimal
    usd_per_day: Decimal
    gpu_hours: Decimal
    at_once: str
    size: RouteSize | None = None  # what the route was chosen by, where people decide

    @property
    def sentence(self) -> str:
        """The answer in one sentence, the same on page, API, mail and card."""
        if self.outcome is Outcome.AUTOMATIC:
            return f"Automatic. {self.at_once}"
        if self.outcome is Outcome.IMPOSSIBLE:
            return (
                "Not possible as it stands: "
                + next(rule.text for rule in self.rules if rule.blocks)
                + "."
            )
        who = ", then ".join(step.words for step in self.route)
        decides = (
            "decides"
            if len(self.route) == 1 and self.route[0].by == "managers"
            else "decide"
        )
        return f"{who[0].upper()}{who[1:]} {decides}{self.because}."

    @property
    def because(self) -> str:
        """Why more people decide than the single ask needs: ": 14 GPUs with the 7 granted on Mon 16 Nov"; or ""."""
        return (
            f": {self.size.words}" if self.size is not None and self.size.words else ""
        )


def evaluate(ask: Ask, standing: Standing, policy: Policy) -> Evaluation:
    """Judge an ask; the same arguments always give the same answer."""
    kind = (ask.offering, ask.environment, ask.flavor, ask.tier)
    hourly, gpus = ask.usd_per_hour, ask.gpus
    parts = money.by_month(
        gpus=gpus, usd_per_hour=hourly, start=ask.begins(standing.now), end=ask.until
    )
    total = money.NOTHING
    for part in parts.values():
        total = total.plus(part)
    asked = _as_asked(ask, total, now=standing.now)
    rules = list(applied(ask, standing, policy.thresholds_for(*kind), parts, asked))
    fails = blocked = False
    for rule in rules:
        fails, blocked = fails or not rule.holds, blocked or rule.blocks
    if fails:
        rules.sort(key=lambda rule: (not rule.blocks, rule.holds))
    route, size = (
        choose(policy.routes_for(*kind), ask, asked.usd, standing.earlier)
        if fails
        else (None, None)
    )
    return Evaluation(
        outcome=Outcome.IMPOSSIBLE
        if blocked
        else Outcome.PEOPLE
        if fails
        else Outcome.AUTOMATIC,
        rules=tuple(rules),
        route=route.steps if route is not None else (),
        usd=total.usd,
        usd_per_day=money.per_day(gpus=1, price=hourly),
        gpu_hours=total.gpu_hours,
        at_once=_by_person(policy.thresholds_for(*kind))
        if ask.by_person
        else _at_once(ask, standing),
        size=size,
    )


def _as_asked(ask: Ask, total: Amount, *, now: datetime) -> Amount:
    """What the whole of it would have cost, of which `total` is left."""
    began = ask.began_as_asked(now)
    if began == ask.begins(now):
        return total
    return money.part_of(
        gpus=ask.gpus,
        usd_per_hour=ask.usd_per_hour,
        start=began,
        first=began,
        last=ask.until,
    )


def _by_person(thresholds: Thresholds) -> str:
    return f"A platform lead makes it, usually within {thresholds.carried_out_hours} hours."


def _at_once(ask: Ask, standing: Standing) -> str:
    """What happens once it is granted, and that a pool has to grow before anything runs."""
    if ask.starts is not None and ask.starts > standing.now:
        return f"It begins by itself on {moment(ask.starts, standing.now)}."
    arrives = AT_ONCE[ask.arrival]
    if not standing.has_to_grow(ask.gpus):
        return arrives
    words = grows(standing.grows_to, standing.growing_minutes, standing.held_back_by)
    return f"{arrives} {standing.ready_gpus} ready now: the pool {words}."


def may_hold_by_itself(answer: Evaluation) -> bool:
    """Whether all that people decide it for may change while nobody does anything about it."""
    return answer.outcome is Outcome.PEOPLE and all(
        rule.holds or rule.code in CHANGES_BY_ITSELF for rule in answer.rules
    )


def nearest_automatic(ask: Ask, standing: Standing, policy: Policy) -> Ask | None:
    """The closest ask that the policy would approve at once, asked now: most units first, then the longest whole days.

    None when the ask is automatic already, or when not even the least number of units for the shortest time would be.
    """
    here = evaluate(ask, standing, policy)
    if here.outcome is Outcome.AUTOMATIC or any(
        rule.code == "gate" for rule in here.rules
    ):
        return None
    ask = replace(ask, asked_at=None)
    most, shortest = _fits(ask, standing, policy), shortest_days(ask, standing)
    # Fewer never breaks a rule: the largest number that holds for the shortest time is found by halving, and so is
    # the time.
    count = _largest(
        most,
        lambda n: is_automatic(
            resized(ask, standing, count=n, days=shortest), standing, policy
        ),
    )
    if count < max(ask.least, 1):
        return None
    whole = replace(ask, count=count)
    if is_automatic(whole, standing, policy):
        return whole
    days = _largest(
        (ask.until - ask.begins(standing.now)).days,
        lambda n: is_automatic(
            resized(ask, standing, count=count, days=n), standing, policy
        ),
    )
    return resized(ask, standing, count=count, days=max(days, shortest))


def shortest_days(ask: Ask, standing: Standing) -> int:
    """The least whole days an ask may last: one, or as many as outlast the GPUs that it goes on with."""
    return least_days(ask.begins(standing.now), standing.own_until)


def least_days(begins: datetime, own_until: datetime | None) -> int:
    """The same of what begins at a moment and goes on with GPUs until another one; None is none."""
    if own_until is None:
        return 1
    return max((own_until - begins) // DAY + 1, 1)


def later_automatic(ask: Ask, standing: Standing, policy: Policy) -> datetime | None:
    """The first moment from which the very same ask would be approved at once; None if unknown.

    What begins later stays as it is when it is asked before that, and what goes on with what is held until that ends;
    all else is asked for as long from then on. Only what is known to come is counted: allocations that end, asks that
    fall out of the windows, and the budgets of the months that follow.
    """
    failing = {
        rule.code for rule in evaluate(ask, standing, policy).rules if not rule.holds
    }
    if not failing or failing - MENDED_BY_TIME:
        return None
    begins = ask.begins(standing.now)
    length, then = ask.until - begins, standing
    for event in events_of(standing):
        then = after(then, event, length=length)
        if stays(ask, standing, asked_at=event.at):
            # What is free in its time is known already, whenever it is asked.
            known = replace(then, free_gpus=standing.free_gpus)
            is_mended = is_automatic(ask, known, policy)
        elif standing.own_until is not None:
            return None
        else:
            later = moved(ask, event.at, length)
            is_mended = event.at > begins and is_automatic(later, then, policy)
        if is_mended:
            return event.at
    return None


def stays(ask: Ask, standing: Standing, *, asked_at: datetime) -> bool:
    """Whether an ask is the same at a later moment: before it begins, or before what it goes on with ends."""
    begins = ask.begins(standing.now)
    last = begins if begins > standing.now else standing.own_until
    return last is not None and asked_at < last


def moved(ask: Ask, to: datetime, length: timedelta) -> Ask:
    """The same ask, made at a later moment, for as long from then on."""
    return replace(ask, starts=None, asked_at=None, until=to + length)


def events_of(standing: Standing) -> list[Coming]:
    """What is known to come, and the first moment of each month whose budget is known, in order."""
    starts = (
        datetime(month.year, month.month, 1, tzinfo=UTC) for month in standing.budget
    )
    months = [Coming(start) for start in starts if start > standing.now]
    return sorted([*standing.coming, *months], key=lambda event: event.at)


def after(standing: Standing, event: Coming, *, length: timedelta) -> Standing:
    """What the policy looks at once something that comes by itself has come, for an ask for so long from then on."""
    free = None if standing.free_gpus is None else standing.free_gpus + event.free
    if free is not None and standing.levels:
        free = lowest(standing.levels, start=event.at, end=event.at + length)
    return replace(
        standing,
        now=event.at,
        free_gpus=free,
        booked_gpus=0,
        held_gpus=standing.held_gpus,
        recent_team_gpus=standing.recent_team_gpus - event.team,
        recent_person_gpus=standing.recent_person_gpus - event.person,
        recent_team_usd=_less(standing.recent_team_usd, event.team_usd),
        recent_person_usd=_less(standing.recent_person_usd, event.person_usd),
    )


def _less(known: Decimal | None, usd: Decimal) -> Decimal | None:
    return None if known is None else known - usd


def _fits(ask: Ask, standing: Standing, policy: Policy) -> int:
    limits = policy.thresholds_for(ask.offering, ask.environment, ask.flavor, ask.tier)
    if not ask.gpus_each:
        return ask.count
    free = (
        ask.gpus
        if standing.free_gpus is None
        else max(standing.free_gpus, 0) + standing.own_gpus
    )
    return min(ask.count, limits.automatic_gpus // ask.gpus_each, free // ask.gpus_each)


def resized(ask: Ask, standing: Standing, *, count: int, days: int) -> Ask:
    """The same ask for another number of units, and for at most so many days."""
    return replace(
        ask, count=count, until=min(ask.until, ask.begins(standing.now) + days * DAY)
    )


def is_automatic(ask: Ask, standing: Standing, policy: Policy) -> bool:
    """Whether the policy approves an ask at once."""
    return evaluate(ask, standing, policy).outcome is Outcome.AUTOMATIC


def _largest(most: int, holds: Callable[[int], bool]) -> int:
    """The largest number from 1 to `most` that holds, when every smaller one does; 0 when not even 1 does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
