"""Asks that no policy should let through unseen: which of them this one would. Pure."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product

from allocations.budgets import money
from allocations.budgets.money import Left
from policy.document import Policy, Where
from policy.evaluation import Ask, Outcome, Standing, evaluate
from policy.words import where as where_words
from ui.amounts import usd

MANY = 64
A_MONTH, LONGEST = 30, 365
PRICE = Decimal("3.67")
START = datetime(2026, 1, 1, tzinfo=UTC)
ENVIRONMENTS = ("dev", "test", "production")
MOST_KINDS = 500


def boundless(policy: Policy) -> tuple[str, ...]:
    """Sentences about huge asks that would be automatic while a budget lasts; none where a number holds them."""
    seen: dict[str, list[str]] = {}
    for where in (Where(), *(override.where for override in policy.overrides)):
        for ask in _asks(where, policy):
            standing = Standing(
                now=START,
                free_gpus=10**6,
                total_gpus=10**6,
                budget=_plenty(ask.until),
                recent_team_usd=Decimal(0),
                recent_person_usd=Decimal(0),
            )
            answer = evaluate(ask, standing, policy)
            if answer.outcome is Outcome.AUTOMATIC:
                said = f"{MANY} GPUs for {(ask.until - START).days} days ({usd(answer.usd)}) would be automatic in {{}}"
                if _is_as_everywhere(ask, policy) and ask.environment in seen.get(
                    f"{said}.", ()
                ):
                    continue
                kind = "" if where == Where() else f" ({where_words(where)})"
                found = seen.setdefault(f"{said}{kind}.", [])
                found += [ask.environment] if ask.environment not in found else []
    return tuple(
        said.format(" and ".join(environments)) for said, environments in seen.items()
    )


def _is_as_everywhere(ask: Ask, policy: Policy) -> bool:
    """Whether an exception leaves what is automatic as it is: then what is said of everything says it already."""
    limits = policy.thresholds_for(ask.offering, ask.environment, ask.flavor, ask.tier)
    return (
        replace(limits, longest_days=policy.thresholds.longest_days)
        == policy.thresholds
    )


def _asks(where: Where, policy: Policy) -> Iterator[Ask]:
    """A huge ask of every kind that is meant, for as long as is automatic, if that is a month."""
    kinds = product(
        where.offerings or ("gpus",),
        where.environments or ENVIRONMENTS,
        where.flavors or ("",),
        where.tiers or ("standard",),
    )
    for _, (offering, environment, flavor, tier) in zip(
        range(MOST_KINDS), kinds, strict=False
    ):
        limits = policy.thresholds_for(offering, environment, flavor, tier)
        days = min(limits.automatic_days, LONGEST)
        if days >= A_MONTH:
            yield Ask(
                count=MANY,
                until=START + timedelta(days=days),
                usd_per_hour_each=PRICE,
                offering=offering,
                environment=environment,
                flavor=flavor,
                tier=tier,
            )


def _plenty(until: datetime) -> dict[date, Left]:
    much = Decimal(10**9)
    months = money.by_month(gpus=1, usd_per_hour=PRICE, start=START, end=until)
    return {month: Left(much, much) for month in months}
