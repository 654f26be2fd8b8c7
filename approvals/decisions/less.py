"""Approving less: what its form begins with, and what fewer units or an earlier end would change; writes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypedDict

from allocations.bookings.levels import lowest
from approvals.decisions.actions import still_needed, stops
from approvals.decisions.route_words import upper
from approvals.decisions.routing import keys_of, open_step
from approvals.decisions.shortening import earliest_end, out_of_range, whole_time
from approvals.models import Request
from approvals.requests import prices
from approvals.requests.actions import Judged
from policy.evaluation import Ask, Evaluation, Rule, Standing, evaluate
from policy.remedies import nearest_words
from ui.amounts import moment, usd
from ui.parts import BeforeAfter
from web.fields import INPUT

# The earliest end moves on with the clock: for so long one that the page offers stays possible.
STAYS_POSSIBLE = timedelta(minutes=15)
MINUTE = timedelta(minutes=1)
MAX_RULES = 2


@dataclass(frozen=True)
class Typed:
    """What somebody has typed so far; None is what is asked for."""

    count: int | None
    until: datetime | None


class Effect(TypedDict):
    """What approving so much instead would change; with a `problem`, why nobody can, and nothing else."""

    problem: str
    rows: Sequence[BeforeAfter]
    words: Sequence[str]


class Less(TypedDict):
    """What "approve less" starts with, and why; `fewer` and `shorter` say which of the two is possible at all."""

    possible: bool
    fewer: bool
    shorter: bool
    words: str
    count: int
    most: int
    unit: str
    until: str
    earliest: str
    latest: str
    effect: Effect | None


NOT_POSSIBLE = Less(
    possible=False,
    fewer=False,
    shorter=False,
    words="",
    count=1,
    most=1,
    unit="",
    until="",
    earliest="",
    latest="",
    effect=None,
)


def less(
    request: Request, judged: Judged | None, *, typed: Typed | None, now: datetime
) -> Less:
    """The form with the nearest automatic ask, else with what is free; and what that, or what is `typed`, changes."""
    if judged is None:
        return NOT_POSSIBLE
    count, latest = judged.ask.count, judged.ask.until
    earliest = _earliest(judged, now=now)
    fewer = count > 1 and bool(judged.wanted.spec.counted)
    shorter = earliest < latest
    if not fewer and not shorter:
        return NOT_POSSIBLE
    start, words = _start(judged, fewer=fewer, earliest=earliest, now=now)
    said = _said(request, judged, typed) if typed else start
    return {
        "possible": True,
        "fewer": fewer,
        "shorter": shorter,
        "words": words,
        "count": start.count,
        # With an earlier end all of them are less, too.
        "most": count if shorter else count - 1,
        "unit": judged.wanted.offering.units(2),
        "until": start.until.strftime(INPUT),
        "earliest": earliest.strftime(INPUT),
        "latest": latest.strftime(INPUT),
        "effect": effect(request, judged, said, now=now)
        if typed or said != judged.ask
        else None,
    }


def _earliest(judged: Judged, *, now: datetime) -> datetime:
    """The earliest end that the form offers, on a whole minute and possible for some minutes more."""
    earliest = earliest_end(judged.ask.begins(now), judged.standing.own_until)
    return (earliest + STAYS_POSSIBLE + MINUTE).replace(second=0, microsecond=0)


def _start(
    judged: Judged, *, fewer: bool, earliest: datetime, now: datetime
) -> tuple[Ask, str]:
    """What the form begins with, and why, in words."""
    ask, nearest = judged.ask, judged.nearest
    if nearest is not None:
        words = nearest_words(ask, nearest, now=now)
        # Whoever types another number means all of its time: it begins shorter only where that alone is enough.
        if nearest.count < ask.count and fewer:
            return replace(ask, count=nearest.count), words
        if nearest.until < ask.until and earliest < ask.until:
            # As a form writes it: without seconds.
            until = max(nearest.until.replace(second=0, microsecond=0), earliest)
            return replace(ask, until=min(until, ask.until)), words
    if not fewer:
        return ask, ""
    free = judged.standing.free_gpus
    if free is None:
        return replace(ask, count=ask.count - 1), ""
    fits = min(free // max(ask.gpus_each, 1), ask.count - 1)
    return replace(ask, count=max(fits, 1)), f"{free} are free now."


def _said(request: Request, judged: Judged, typed: Typed) -> Ask:
    return replace(
        judged.ask,
        count=judged.ask.count if typed.count is None else typed.count,
        until=whole_time(request, typed.until) or judged.ask.until,
    )


def effect(request: Request, judged: Judged, asked: Ask, *, now: datetime) -> Effect:
    """What approving `asked` instead of all that was judged would change."""
    problem = _out_of_range(judged, asked, now=now)
    if problem:
        return {"problem": problem, "rows": [], "words": []}
    answer = evaluate(asked, _in_its_time(judged, asked), judged.policy)
    stopped = next((rule for rule in answer.rules if stops(rule)), None)
    return {
        "problem": f"Not possible now: {_rule(stopped)}." if stopped else "",
        "rows": list(_rows(request, judged, asked, answer, now=now)),
        "words": [*_rules(judged, answer), *_spared(request, judged, asked)],
    }


def _out_of_range(judged: Judged, asked: Ask, *, now: datetime) -> str:
    whole = judged.ask
    earliest = earliest_end(whole.begins(now), judged.standing.own_until)
    if not 1 <= asked.count <= whole.count:
        return f"Approve between 1 and {whole.count:,}."
    if asked.until != whole.until and not earliest <= asked.until <= whole.until:
        return out_of_range(earliest, whole.until, now=now)
    if (asked.count, asked.until) == (whole.count, whole.until):
        return "This is all that is asked for."
    return ""


def _in_its_time(judged: Judged, asked: Ask) -> Standing:
    """What is free as long as an earlier end lets it last: what is booked after that is no matter."""
    standing = judged.standing
    if standing.free_gpus is None or not standing.levels:
        return standing
    free = lowest(
        standing.levels,
        start=asked.begins(standing.now),
        end=judged.wanted.setting.terms.kept_until(asked.until),
    )
    return replace(standing, free_gpus=max(standing.free_gpus, free))


def _rows(
    request: Request, judged: Judged, asked: Ask, answer: Evaluation, *, now: datetime
) -> Iterator[BeforeAfter]:
    whole, cost = judged.ask, judged.answer.usd
    if not request.is_less:
        cost = prices.told(cost, asked=request.usd)
    if asked.count != whole.count:
        yield {
            "label": judged.wanted.offering.units(2),
            "before": f"{whole.count:,}",
            "after": f"{asked.count:,}",
        }
    if asked.until != whole.until:
        yield {
            "label": "Ends",
            "before": moment(whole.until, now),
            "after": moment(asked.until, now),
        }
    yield {"label": "Cost", "before": usd(cost), "after": usd(answer.usd)}


def _rules(judged: Judged, answer: Evaluation) -> Iterator[str]:
    """Which of the rules for which people decide would hold then, and which would still ask for them."""
    broken = [rule for rule in answer.rules if not rule.holds]
    codes = {rule.code for rule in broken}
    gone = [
        rule
        for rule in judged.answer.rules
        if not rule.holds and rule.code not in codes
    ]
    if not broken:
        yield "Every rule would hold."
        return
    if gone:
        yield f"No longer asks for people: {_listed(gone)}."
    yield f"Still asks for people: {_listed(broken)}."


def _listed(rules: Sequence[Rule]) -> str:
    """The first of them with their numbers; how many more there are, of more than can be read beside a form."""
    more = len(rules) - MAX_RULES
    said = "; ".join(map(_rule, rules[:MAX_RULES]))
    return f"{said}; and {more} more" if more > 0 else said


def _rule(rule: Rule) -> str:
    return f"{rule.text} ({rule.limit})" if rule.limit else rule.text


def _spared(request: Request, judged: Judged, asked: Ask) -> Iterator[str]:
    """Who would not have to decide any more, of the steps after the open one."""
    needed, now_open = still_needed(request, asked, judged), open_step(request)
    if needed is None or now_open is None:
        return
    later = [
        step
        for step in request.current_steps
        if step.done_at is None and step.position > now_open.position
    ]
    keys = keys_of(request, later)
    spared = [step.words for step in later if keys[step.pk] not in needed]
    if spared:
        yield f"{upper(' and '.join(spared))} would not have to decide any more."
