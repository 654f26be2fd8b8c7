"""What would make an ask automatic that is not: asking for less, waiting until a date, or mending what is wrong. Pure.

An ask that people decide always has at least one remedy, so that nobody is left to guess why.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_FLOOR

from policy.document import Policy, Thresholds
from policy.evaluation import (
    Ask,
    Outcome,
    Rule,
    Standing,
    after,
    evaluate,
    events_of,
    later_automatic,
    moved,
    nearest_automatic,
    resized,
    shortest_days,
    stays,
)
from policy.rules import measured_from
from ui.amounts import duration, gpus, moment, usd

WINDOWS = frozenset({"window", "window_person", "window_usd", "window_usd_person"})
# What people decide at whatever time it is asked for.
ALWAYS = frozenset({"gate", "reversible", "environment"})
NOTHING_IS = "Nothing of any size is automatic"


@dataclass(frozen=True, kw_only=True, slots=True)
class Remedy:
    """One way to an automatic answer, in a sentence.

    `code` is ask_less, wait, or the rule that stands in the way of an ask of any size. `at` is from when on it no
    longer does, where that is known; `count` is how many units to ask for, or how many GPUs to give back.
    """

    code: str
    sentence: str
    at: datetime | None = None
    count: int | None = None


def remedies_of(ask: Ask, standing: Standing, policy: Policy) -> tuple[Remedy, ...]:
    """What would make this ask automatic; empty only when it is."""
    if evaluate(ask, standing, policy).outcome is Outcome.AUTOMATIC:
        return ()
    found = []
    nearest = nearest_automatic(ask, standing, policy)
    # Whoever changes what waits asks for it now.
    ask = replace(ask, asked_at=None)
    if nearest is not None:
        words = nearest_words(ask, nearest, now=standing.now)
        found.append(Remedy(code="ask_less", sentence=words, count=nearest.count))
    later = later_automatic(ask, standing, policy)
    if later is not None:
        at = moment(later, standing.now)
        words = (
            f"As it is, automatic from {at}."
            if stays(ask, standing, asked_at=later)
            else f"The same for as long is automatic from {at} on."
        )
        found.append(Remedy(code="wait", sentence=words, at=later))
    if nearest is None:
        found += _of_any_size(ask, standing, policy)
    return tuple(found)


def nearest_words(ask: Ask, nearest: Ask, *, now: datetime) -> str:
    """ "Automatic for 2 until Fri 28 Nov, 18:00 UTC": only what differs from the ask, to who asks and who decides."""
    ends = moment(nearest.until, now)
    if (nearest.count, nearest.until) == (ask.count, ask.until):
        return "Automatic if it is asked for anew."
    if nearest.count == ask.count:
        return f"Automatic if it ends {ends}."
    until = f" until {ends}" if nearest.until != ask.until else ""
    return f"Automatic for {nearest.count:,}{until}."


@dataclass(frozen=True)
class _Case:
    """The smallest ask there is, what one rule says to it, and from when on that rule no longer stands in its way."""

    ask: Ask
    standing: Standing
    limits: Thresholds
    rule: Rule
    at: datetime | None
    then: Standing | None
    is_never_automatic: bool = False

    @property
    def is_window(self) -> bool:
        """Whether it is about what was granted on the last days."""
        return self.rule.code in WINDOWS


def _of_any_size(ask: Ask, standing: Standing, policy: Policy) -> Iterator[Remedy]:
    """Why not even the smallest ask would be automatic, each rule once; windows that open together in one sentence."""
    shortest = shortest_days(ask, standing)
    least = resized(ask, standing, count=max(ask.least, 1), days=shortest)
    limits = policy.thresholds_for(ask.offering, ask.environment, ask.flavor, ask.tier)
    seen, cases = set(), list[_Case]()
    for rule in evaluate(least, standing, policy).rules:
        # Who has no money left is beyond the soft stage, too: the first of both says it.
        if (
            rule.holds
            or rule.code in seen
            or (rule.code == "budget_soft" and "budget" in seen)
        ):
            continue
        seen.add(rule.code)
        at, then = _holds_from(rule.code, least, standing, policy)
        cases.append(_Case(least, standing, limits, rule, at, then))
    if seen & ALWAYS:
        cases = [replace(case, is_never_automatic=True) for case in cases]
    told = set()
    for case in cases:
        if not case.is_window:
            yield REMEDIES.get(case.rule.code, _too_large)(case)
        elif case.at not in told:
            told.add(case.at)
            yield from _of_windows(
                [one for one in cases if one.is_window and one.at == case.at]
            )
    if not seen:
        words = nearest_words(ask, least, now=standing.now)
        yield Remedy(code="ask_less", sentence=words, count=least.count)


def _holds_from(
    code: str, least: Ask, standing: Standing, policy: Policy
) -> tuple[datetime | None, Standing | None]:
    """The first known moment at which a rule holds for the smallest ask, and what is known of that moment."""
    length, then = least.until - least.begins(standing.now), standing
    for event in events_of(standing):
        then = after(then, event, length=length)
        rules = evaluate(moved(least, event.at, length), then, policy).rules
        if all(rule.holds for rule in rules if rule.code == code):
            return event.at, then
    return None, None


def _of_use(case: _Case) -> Remedy:
    percent, held = case.rule.value
    if percent is None:
        return _not_measured(case)
    least = case.limits.least_use_percent
    kept = int((percent * held / least).to_integral_value(ROUND_FLOOR))
    back = f"give back {held - kept}" if kept else f"give back all {held}"
    words = (
        f"{NOTHING_IS} while {percent:.0f} % of the {gpus(held)} held are in use (from {least} % on): {back}, "
        "or use them first."
    )
    return Remedy(code="use", sentence=words, count=held - kept)


def _not_measured(case: _Case) -> Remedy:
    since = case.standing.held_since
    at = measured_from(since, case.limits) if since is not None else None
    known = at is not None and at > case.standing.now
    when = (
        f"from {moment(at, case.standing.now)} on"
        if at is not None and known
        else "once it was read often enough"
    )
    words = (
        f"{NOTHING_IS} while the use of what is held is not measured: it is, {when}."
    )
    return Remedy(code="use", sentence=words, at=at if known else None)


def _of_budget(case: _Case) -> Remedy:
    month = case.rule.value[-1]
    if case.rule.code == "budget_soft":
        state = (
            f"more than {case.rule.bound[0]} % of the budget of {month:%B} is set aside"
        )
    elif case.rule.code == "budget_hours":
        state = f"the budget of {month:%B} has {case.rule.value[1]:,.0f} GPU-hours left"
    else:
        state = f"the budget of {month:%B} has {usd(case.rule.value[1])} left"
    begins = ""
    # Where people decide at any time no moment makes it automatic, though there is money then.
    if case.at is not None and not case.is_never_automatic:
        begins = f" It is from {moment(case.at, case.standing.now)} on{_paid_from(case, case.at)}."
    words = f"{NOTHING_IS} while {state}, until a platform lead raises it.{begins}"
    return Remedy(code=case.rule.code, sentence=words, at=case.at)


def _paid_from(case: _Case, at: datetime) -> str:
    """Whose budget makes it so: that of a month which begins then, or into which the smallest ask reaches."""
    begins, ask = at.astimezone(UTC), case.ask
    ends = begins + (ask.until - ask.begins(case.standing.now))
    if begins == datetime(begins.year, begins.month, 1, tzinfo=UTC):
        return f", when the budget of {begins:%B} begins"
    return (
        f": then it is paid from the budget of {ends:%B}, too"
        if ends.month != begins.month
        else ""
    )


def _of_windows(cases: Sequence[_Case]) -> Iterator[Remedy]:
    """Of windows that open at the same moment, or of which nobody knows when."""
    first = cases[0]
    days, now = first.limits.window_days, first.standing.now
    gone = [
        f"{_left(case, case.then)} granted to {_whose(case)}"
        for case in cases
        if case.then is not None
    ]
    if first.at is not None and gone:
        words = (
            f"{NOTHING_IS} before {moment(first.at, now)}, when {' and '.join(gone)} "
            f"leave the window of {days} days."
        )
        yield Remedy(code=first.rule.code, sentence=words, at=first.at)
        return
    for case in cases:
        words = f"{NOTHING_IS} to {_whose(case)}: the limit without people within {days} days is {_limit(case)}."
        yield Remedy(code=case.rule.code, sentence=words)


def _whose(case: _Case) -> str:
    return "one person" if case.rule.code.endswith("person") else "the team"


def _limit(case: _Case) -> str:
    return usd(case.rule.bound) if "usd" in case.rule.code else gpus(case.rule.bound)


def _left(case: _Case, then: Standing) -> str:
    """What has left the window by then."""
    now, of = case.standing, "person" if case.rule.code.endswith("person") else "team"
    name = f"recent_{of}_{'usd' if 'usd' in case.rule.code else 'gpus'}"
    gone = getattr(now, name) - getattr(then, name)
    return usd(gone) if "usd" in name else gpus(gone)


def _of_free(case: _Case) -> Remedy:
    kept = case.limits.keep_free_gpus
    few = f"{max(case.standing.free_gpus or 0, 0)} are free"
    few += (
        f", {case.standing.cordoned_gpus} are cordoned or not ready"
        if case.standing.cordoned_gpus
        else ""
    )
    few += (
        f", {case.standing.held_back_by} stops others"
        if case.standing.held_back_by
        else ""
    )
    few += f" and {kept} must stay so" if kept else ""
    if case.at is None:
        words = f"{NOTHING_IS} while {few}: no end that is known frees enough."
        return Remedy(code=case.rule.code, sentence=words)
    words = f"{NOTHING_IS} before {moment(case.at, case.standing.now)}, when GPUs come back: {few}."
    return Remedy(code=case.rule.code, sentence=words, at=case.at)


def _of_environment(case: _Case) -> Remedy:
    words = f"{NOTHING_IS} in {case.ask.environment}: people always decide there."
    return Remedy(code="environment", sentence=words)


def _irreversible(case: _Case) -> Remedy:
    undone = case.ask.reversible_minutes
    what = (
        "What cannot be undone"
        if undone is None
        else f"What takes {undone} minutes to undo"
    )
    return Remedy(
        code="reversible", sentence=f"{what} is never automatic: people always decide."
    )


def _gated(case: _Case) -> Remedy:
    return Remedy(code="gate", sentence=f"{case.ask.name}: people always decide.")


def _of_pool(case: _Case) -> Remedy:
    return Remedy(
        code="exists",
        sentence=f"{NOTHING_IS}: the cluster has {case.rule.bound or 'none'} of this kind.",
    )


def _of_quota(case: _Case) -> Remedy:
    words = f"{NOTHING_IS} while {case.rule.text}: platform leads ask Azure for more, which takes days."
    return Remedy(code="quota", sentence=words)


def _of_cost_centre(case: _Case) -> Remedy:
    code = case.standing.unconfirmed_cost_centre
    words = f"Nothing that costs is automatic until cost centre {code} is confirmed by its owner or a platform lead."
    return Remedy(code="cost_centre", sentence=words)


def _too_large(case: _Case) -> Remedy:
    """The least that can be asked for is over a limit of the policy."""
    size = f"{case.ask.count:,} for {duration(case.ask.until - case.ask.begins(case.standing.now))}"
    words = f"{NOTHING_IS}: even {size} is over a limit ({case.rule.text}; {case.rule.limit})."
    return Remedy(code=case.rule.code, sentence=words)


REMEDIES: Mapping[str, Callable[[_Case], Remedy]] = {
    "use": _of_use,
    "budget": _of_budget,
    "budget_hours": _of_budget,
    "budget_soft": _of_budget,
    "free": _of_free,
    "after": _of_free,
    "environment": _of_environment,
    "reversible": _irreversible,
    "gate": _gated,
    "exists": _of_pool,
    "quota": _of_quota,
    "cost_centre": _of_cost_centre,
}
