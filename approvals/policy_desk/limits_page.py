"""The policy in force as a page says it, with example asks judged by the same function as real ones."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypedDict

from allocations.budgets import money
from allocations.models import Budget
from approvals.decisions.route_words import upper
from approvals.judging.inputs import policy_in_force
from policy import words
from policy.differences import Difference, differences
from policy.document import Policy, Route, Thresholds
from policy.evaluation import Ask, Outcome, Standing, evaluate
from policy.models import PolicyVersion
from ui.amounts import capitalized, duration, gpus, usd
from ui.parts import BeforeAfter, Columns, Fact, Row

EXAMPLES = [
    (1, 1, "dev"),
    (2, 7, "dev"),
    (2, 21, "dev"),
    (1, 3, "production"),
    (4, 3, "test"),
    (8, 1, "dev"),
    (4, 120, "dev"),
]
PRICE = Decimal("3.67")


class Coming(TypedDict):
    """A policy that is to come into force, with what it changes of the one before it."""

    version: PolicyVersion
    changes: Sequence[BeforeAfter]


class LimitsPage(TypedDict):
    """The policy in force with examples, and those that come."""

    version: PolicyVersion
    coming: Sequence[Coming]
    rules: Sequence[Fact]
    exceptions: Sequence[Fact]
    deciders: Sequence[Fact]
    columns: Columns
    rows: Sequence[Row]
    price: str


def context(now: datetime) -> LimitsPage:
    """Version, rules, who decides what, and examples."""
    version, policy = policy_in_force(now)
    return {
        "version": version,
        "coming": coming(now),
        "rules": rules(policy.thresholds),
        "exceptions": exceptions(policy),
        "deciders": deciders(policy),
        "columns": [
            "Ask",
            "Environment",
            "Answer",
            {"label": "In all", "kind": "number"},
            "Because",
        ],
        "rows": [example(*each, policy=policy, now=now) for each in EXAMPLES],
        "price": usd(PRICE),
    }


def rules(numbers: Thresholds) -> list[Fact]:
    """What must hold for an ask to be automatic, each with its number."""
    most_hours, most_person = numbers.automatic_gpu_hours, numbers.window_gpus_person
    person = f", {gpus(most_person)} of a person" if most_person is not None else ""
    unmeasured = (
        "counts as used" if numbers.automatic_when_unmeasured else "goes to people"
    )
    lines = [
        ("Offering", "self-service in the catalogue"),
        ("GPUs in one request", f"up to {numbers.automatic_gpus}"),
        (
            "GPU-hours in one request",
            f"up to {most_hours:,}" if most_hours is not None else "any number",
        ),
        ("Time", f"up to {numbers.automatic_days} days"),
        ("Money", f"up to {usd(numbers.automatic_usd)} in all"),
        (
            f"Within {numbers.window_days} days",
            f"up to {gpus(numbers.window_gpus_team)} of a team{person} were automatic",
        ),
        (
            "Booked for the same time",
            f"up to {gpus(numbers.window_gpus_team)} of a team were automatic",
        ),
        (f"Money within {numbers.window_days} days", _window_usd(numbers)),
        ("Cost centre", _unconfirmed(numbers)),
        ("Environment", " or ".join(numbers.automatic_environments) or "none"),
        ("Undoing it", f"takes up to {numbers.reversible_minutes} minutes"),
        (
            "Use of what is held",
            (
                f"at least {numbers.least_use_percent} %; measured after {numbers.use_after_hours} hours of holding, "
                f"before that it {unmeasured}"
            ),
        ),
        ("Budget", "enough is left in every month it touches" + _soft(numbers)),
        ("Free", "enough of that kind are free now" + _kept(numbers)),
    ]
    return [{"label": label, "text": text} for label, text in lines]


def exceptions(policy: Policy) -> list[Fact]:
    """For which asks other numbers hold, in the order in which they count: the last one wins."""
    return [
        {
            "label": capitalized(words.where(each.where)),
            "text": " · ".join(
                f"{words.THRESHOLDS[name].words}: {words.threshold(name, value)}"
                for name, value in each.set.items()
            )
            or "nothing else",
        }
        for each in policy.overrides
    ]


def coming(now: datetime) -> list[Coming]:
    """The policies that are to come into force after now, the first of them first."""
    return [
        {"version": each, "changes": changes(each.before, each)}
        for each in PolicyVersion.objects.standing().to_come(now)
    ]


def changes(before: PolicyVersion | None, after: PolicyVersion) -> list[BeforeAfter]:
    """What a version changes of the one before it."""
    found = differences(before.policy, after.policy) if before is not None else ()
    return diff_rows(found)


def diff_rows(found: Sequence[Difference]) -> list[BeforeAfter]:
    """Differences as rows of before and after."""
    return [
        {"label": each.place, "before": each.before, "after": each.after}
        for each in found
    ]


def _window_usd(numbers: Thresholds) -> str:
    team, person = numbers.window_usd_team, numbers.window_usd_person
    parts = [
        f"{usd(most)} of a {whose}"
        for most, whose in ((team, "team"), (person, "person"))
        if most is not None
    ]
    return f"up to {', '.join(parts)} were automatic" if parts else "any amount"


def _unconfirmed(numbers: Thresholds) -> str:
    most = numbers.unconfirmed_usd
    if not most:
        return "confirmed, where it costs anything"
    return f"confirmed, or up to {usd(most)} within {numbers.window_days} days"


def _soft(numbers: Thresholds) -> str:
    if numbers.automatic_beyond_soft_budget:
        return ""
    usual = Budget._meta.get_field("soft_percent").default
    return (
        f", and no more than {usual} % of a month is set aside with it, unless its "
        "budget says another percentage"
    )


def _kept(numbers: Thresholds) -> str:
    return f", and {numbers.keep_free_gpus} stay free" if numbers.keep_free_gpus else ""


def deciders(policy: Policy) -> list[Fact]:
    """Who decides what, from the policy alone up to nobody."""
    lines = [("Every rule holds", "the policy, at once")]
    lines += [
        (_reached(route), ", then ".join(step.words for step in route.steps))
        for route in reversed(policy.routes)
    ]
    lines += [
        (f"Over {policy.thresholds.longest_days} days", "nobody"),
        ("More than there are", "nobody"),
        (
            "A person carries it out",
            f"within {policy.thresholds.carried_out_hours} hours",
        ),
        ("Nobody decides", f"it lapses after {policy.lapse_days} days"),
    ]
    return [{"label": label, "text": text} for label, text in lines]


def _reached(route: Route) -> str:
    sizes = [f"{gpus(route.gpus_from)} and more"] if route.gpus_from is not None else []
    sizes += [f"{usd(route.usd_from)} and more"] if route.usd_from is not None else []
    where = route.where
    kinds = [*where.offerings, *where.environments, *where.flavors, *where.tiers]
    said = " or ".join(sizes) or "One rule does not hold"
    return f"{said} ({', '.join(kinds)})" if kinds else said


def example(
    count: int, days: int, environment: str, *, policy: Policy, now: datetime
) -> Row:
    """One ask for A100 by a team with an untouched budget, judged."""
    until = now + timedelta(days=days)
    months = money.by_month(gpus=1, usd_per_hour=PRICE, start=now, end=until)
    whole = Decimal(12_000)
    standing = Standing(
        now=now,
        free_gpus=24,
        total_gpus=24,
        recent_team_usd=Decimal(0),
        recent_person_usd=Decimal(0),
        budget={month: money.Left(whole, whole) for month in months},
    )
    ask = Ask(
        count=count,
        until=until,
        environment=environment,
        flavor="a100",
        usd_per_hour_each=PRICE,
    )
    answer = evaluate(ask, standing, policy)
    tone = {
        Outcome.AUTOMATIC: "good",
        Outcome.PEOPLE: "waiting",
        Outcome.IMPOSSIBLE: "bad",
    }[answer.outcome]
    told = {
        Outcome.AUTOMATIC: "Automatic",
        Outcome.IMPOSSIBLE: "Not possible",
        Outcome.PEOPLE: upper(", then ".join(step.words for step in answer.route)),
    }
    failed = [f"{rule.text}, {rule.limit}" for rule in answer.rules if not rule.holds]
    name = f"{gpus(count, 'A100')}, {duration(until - now)}"
    return {
        "cells": [
            name,
            environment,
            {"tone": tone, "word": told[answer.outcome]},
            {"text": usd(answer.usd)},
            failed[0] if failed else "every rule holds",
        ]
    }
