"""What is decided at once, and by whom the rest: pure. Preview, verdict and what-if are this one function.

A rule compares one number with one limit. All hold: the policy approves. One does not: people decide.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from allocations import money


class Outcome(StrEnum):
    """The policy's answer; IMPOSSIBLE can be approved by nobody as it stands."""

    AUTOMATIC = "automatic"
    PEOPLE = "people"
    IMPOSSIBLE = "impossible"


class Seat(StrEnum):
    """Who decides a step; the value is stored in the route."""

    PLATFORM_LEADS = "platform_leads"
    ENGINEERING_LEADERSHIP = "engineering_leadership"

    @property
    def words(self) -> str:
        """As pages say it: 'platform leads'."""
        return self.value.replace("_", " ")


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The numbers of a policy version; every limit is inclusive."""

    automatic_gpus: int = 2
    automatic_days: int = 14
    automatic_usd: Decimal = Decimal(1500)
    automatic_gpus_in_window: int = 6
    window_days: int = 7
    leadership_gpus: int = 8
    automatic_environments: tuple[str, ...] = ("dev", "test")
    longest_days: int = 90


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What is asked for: GPUs of a flavor from `now` until a moment, in an environment."""

    gpus: int
    until: datetime
    environment: str
    flavor: str


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Everything the policy may look at, gathered beforehand."""

    now: datetime
    held_gpus: int
    recent_automatic_gpus: int
    free_gpus: int
    total_gpus: int
    price_per_gpu_hour: Decimal
    budget_left: Mapping[date, tuple[Decimal, Decimal]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule's result; `text` has the number and `limit` what it was held against."""

    code: str
    holds: bool
    text: str
    limit: str
    blocks: bool = False


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The answer with every rule, the deciding ones first, and who decides in which order."""

    outcome: Outcome
    rules: tuple[Rule, ...]
    route: tuple[Seat, ...]
    usd: Decimal
    usd_per_day: Decimal
    gpu_hours: Decimal

    @property
    def sentence(self) -> str:
        """The answer in one sentence, the same on page, API and mail."""
        if self.outcome is Outcome.AUTOMATIC:
            return "Automatic. Yours in about 5 seconds."
        if self.outcome is Outcome.IMPOSSIBLE:
            return "Not possible as it stands: " + next(rule.text for rule in self.rules if rule.blocks) + "."
        who = ", then ".join(seat.words for seat in self.route)
        return f"{who[0].upper()}{who[1:]} decide."


def evaluate(ask: Ask, standing: Standing, thresholds: Thresholds) -> Evaluation:
    """Judge an ask; the same arguments always give the same answer."""
    span = {"gpus": ask.gpus, "price": standing.price_per_gpu_hour, "start": standing.now, "end": ask.until}
    usd = money.cost(**span)  # type: ignore[arg-type]
    rules = (
        _exists(ask, standing),
        _free(ask, standing),
        *_budget(ask, standing),
        _days(ask, standing, thresholds),
        _gpus(ask, thresholds),
        _money(usd, thresholds),
        _window(ask, standing, thresholds),
        _environment(ask, thresholds),
    )
    route = _route(ask, rules, thresholds)
    if any(rule.blocks for rule in rules):
        outcome = Outcome.IMPOSSIBLE
    else:
        outcome = Outcome.PEOPLE if route else Outcome.AUTOMATIC
    return Evaluation(
        outcome=outcome,
        rules=tuple(sorted(rules, key=lambda rule: (not rule.blocks, rule.holds))),
        route=route,
        usd=usd,
        usd_per_day=money.per_day(gpus=ask.gpus, price=standing.price_per_gpu_hour),
        gpu_hours=money.gpu_hours(gpus=ask.gpus, start=standing.now, end=ask.until),
    )


def nearest_automatic(ask: Ask, standing: Standing, thresholds: Thresholds) -> Ask | None:
    """The closest ask that the policy would approve at once: most GPUs first, then the longest whole days.

    None when the ask is automatic already, or when not even one GPU for one day would be.
    """
    if evaluate(ask, standing, thresholds).outcome is Outcome.AUTOMATIC:
        return None
    most = min(ask.gpus, thresholds.automatic_gpus, max(standing.free_gpus, 0))
    for gpus in range(most, 0, -1):
        for until in _shorter(ask.until, standing.now):
            nearer = replace(ask, gpus=gpus, until=until)
            if evaluate(nearer, standing, thresholds).outcome is Outcome.AUTOMATIC:
                return nearer
    return None


def _shorter(until: datetime, now: datetime) -> list[datetime]:
    """`until`, then whole days before it down to one day from now; at most 400 steps."""
    days = min((until - now).days, 400)
    return [until, *(now + timedelta(days=n) for n in range(days, 0, -1) if now + timedelta(days=n) < until)]


def _exists(ask: Ask, standing: Standing) -> Rule:
    fits = ask.gpus <= standing.total_gpus
    return Rule(
        code="exists",
        holds=fits,
        blocks=not fits,
        text=f"{ask.gpus} of {standing.total_gpus} there are",
        limit=f"the cluster has {standing.total_gpus}",
    )


def _free(ask: Ask, standing: Standing) -> Rule:
    return Rule(
        code="free",
        holds=ask.gpus <= standing.free_gpus,
        text=f"{standing.free_gpus} free now",
        limit=f"{ask.gpus} needed of {standing.total_gpus}",
    )


def _budget(ask: Ask, standing: Standing) -> list[Rule]:
    parts = money.by_month(
        gpus=ask.gpus, price=standing.price_per_gpu_hour, start=standing.now, end=ask.until
    )
    rules = []
    for month, usd in parts.items():
        left, limit = standing.budget_left.get(month, (Decimal(0), Decimal(0)))
        rules.append(
            Rule(
                code="budget",
                holds=usd <= left,
                text=f"${usd:,.0f} of ${left:,.0f} left in {month:%b}",
                limit=f"budget ${limit:,.0f}",
            )
        )
    return rules


def _days(ask: Ask, standing: Standing, thresholds: Thresholds) -> Rule:
    length = ask.until - standing.now
    too_long = length > timedelta(days=thresholds.longest_days)
    return Rule(
        code="days",
        holds=length <= timedelta(days=thresholds.automatic_days),
        blocks=too_long,
        text=duration(length),
        limit=f"never over {thresholds.longest_days} days"
        if too_long
        else f"automatic up to {thresholds.automatic_days} days",
    )


def _gpus(ask: Ask, thresholds: Thresholds) -> Rule:
    return Rule(
        code="gpus",
        holds=ask.gpus <= thresholds.automatic_gpus,
        text=f"{ask.gpus} GPU{'s' if ask.gpus != 1 else ''}",
        limit=f"automatic up to {thresholds.automatic_gpus}",
    )


def _money(usd: Decimal, thresholds: Thresholds) -> Rule:
    return Rule(
        code="money",
        holds=usd <= thresholds.automatic_usd,
        text=f"${usd:,.0f} in all",
        limit=f"automatic up to ${thresholds.automatic_usd:,.0f}",
    )


def _window(ask: Ask, standing: Standing, thresholds: Thresholds) -> Rule:
    total = standing.recent_automatic_gpus + ask.gpus
    return Rule(
        code="window",
        holds=total <= thresholds.automatic_gpus_in_window,
        text=f"{total} GPU{'s' if total != 1 else ''} within {thresholds.window_days} days",
        limit=f"automatic up to {thresholds.automatic_gpus_in_window}",
    )


def _environment(ask: Ask, thresholds: Thresholds) -> Rule:
    return Rule(
        code="environment",
        holds=ask.environment in thresholds.automatic_environments,
        text=f"{ask.environment} environment",
        limit="automatic in " + ", ".join(thresholds.automatic_environments),
    )


def _route(ask: Ask, rules: tuple[Rule, ...], thresholds: Thresholds) -> tuple[Seat, ...]:
    if ask.gpus >= thresholds.leadership_gpus:
        return (Seat.PLATFORM_LEADS, Seat.ENGINEERING_LEADERSHIP)
    return () if all(rule.holds for rule in rules) else (Seat.PLATFORM_LEADS,)


def duration(length: timedelta) -> str:
    """ "3 hours", "14 days", "14 days 1 h": hours begun count, so that nothing over a limit reads like the limit."""
    hours = max(-(-int(length.total_seconds()) // 3600), 1)
    if hours < 48:
        return f"{hours} hour{'s' if hours > 1 else ''}"
    days, rest = divmod(hours, 24)
    return f"{days} days {rest} h" if rest else f"{days} days"
