"""B9: the policy's answer under a document with 50 rules, beside a bare loop over the same comparisons."""

import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from allocations.budgets.money import Left
from bench import rig
from bench.results import Better, Goal, Measured
from policy.document import Policy, policy_from
from policy.evaluation import Ask, Evaluation, Standing, evaluate

ASKS, OVERRIDES, ROUTES = 10_000, 40, 10
PAIRS = 7
MOST_MICROSECONDS, MOST_SECONDS = 50, 1
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
OFFERINGS = (
    "gpus",
    "namespace",
    "notebook",
    "dataset",
    "inference",
    "training",
    "cluster",
    "reservation",
)
ENVIRONMENTS, FLAVORS, TIERS = (
    ("dev", "test", "production"),
    ("a100", "h100", "t4"),
    ("standard", "gold"),
)
KINDS = tuple(product(OFFERINGS, ENVIRONMENTS, FLAVORS, TIERS))
SEEN = ("offerings", "environments", "flavors", "tiers")


class Plain(NamedTuple):
    """What the bare loop sees of an ask: its kind, and every number beside the limit it was held against."""

    kind: tuple[str, ...]
    compared: list[tuple[Any, Any]]


def measure(on: rig.Rig) -> Measured:
    """Both over the same 10,000 asks, in turns; the policy is new each time, so what it remembers is counted too."""
    dice = random.Random(1)
    asks = [(ask_of(dice), standing_of(dice)) for _ in range(ASKS)]
    document = document_of(dice)
    policy = policy_from(document)
    plain = [plain_of(ask, evaluate(ask, standing, policy)) for ask, standing in asks]
    rules = [
        tuple(frozenset(each["where"].get(name, ())) for name in SEEN)
        for each in _entries(document)
    ]
    portal, peer, wholes = [], [], []
    for _ in range(PAIRS):
        wholes.append(_timed(partial(judge_all, policy_from(document), asks)))
        portal.append(_each(partial(judge, policy_from(document)), asks))
        peer.append(_each(partial(bare, rules), plain))
    return Measured(
        what=f"policy with {OVERRIDES + ROUTES} rules, one ask; peer: a bare loop of the same comparisons",
        portal=portal,
        peer=peer,
        unit="µs",
        better=Better.PEER_OVER_PORTAL,
        others=[
            Goal("µs an ask", statistics.median(portal), most=MOST_MICROSECONDS),
            Goal(f"s for {ASKS:,}", statistics.median(wholes), most=MOST_SECONDS),
        ],
    )


def judge(policy: Policy, asked: tuple[Ask, Standing]) -> Evaluation:
    """The portal's answer to one ask."""
    return evaluate(asked[0], asked[1], policy)


def judge_all(policy: Policy, asks: Iterable[tuple[Ask, Standing]]) -> int:
    """Judge all of them: how many are automatic."""
    return sum(
        evaluate(ask, standing, policy).outcome == "automatic" for ask, standing in asks
    )


def bare(rules: Sequence[tuple[frozenset[str], ...]], ask: Plain) -> bool:
    """The comparisons alone: which rules are meant, and each number against its limit. Nothing is kept."""
    for rule in rules:
        for seen, said in zip(rule, ask.kind, strict=True):
            if seen and said not in seen:
                break
    holds = True
    for value, limit in ask.compared:
        if not value <= limit:
            holds = False
    return holds


def plain_of(ask: Ask, judged: Evaluation) -> Plain:
    """An ask for the bare loop, its numbers and limits taken from the rules that judged it."""
    kind = (ask.offering, ask.environment, ask.flavor, ask.tier)
    return Plain(kind, [_comparable(rule.value, rule.bound) for rule in judged.rules])


def document_of(dice: random.Random) -> dict[str, Any]:
    """A policy with 40 places where thresholds differ, and ten routes."""
    overrides = [
        {
            "where": _where(dice),
            "set": {
                "automatic_gpus": dice.randint(1, 4),
                "automatic_days": dice.randint(1, 30),
            },
        }
        for _ in range(OVERRIDES)
    ]
    routes = [
        {
            "name": f"route {number}",
            "where": _where(dice),
            "gpus_from": dice.randint(8, 64),
            "steps": [_step()],
        }
        for number in range(ROUTES - 1)
    ]
    return {
        "overrides": overrides,
        "routes": [*routes, {"name": "ordinary", "steps": [_step()]}],
    }


def ask_of(dice: random.Random) -> Ask:
    """Any ask: small and large, short and long, of any kind."""
    offering, environment, flavor, tier = dice.choice(KINDS)
    return Ask(
        count=dice.choice((1, 1, 2, 2, 3, 4, 8, 16)),
        until=NOW + timedelta(hours=dice.randint(1, 60 * 24)),
        usd_per_hour_each=Decimal("3.67"),
        offering=offering,
        environment=environment,
        flavor=flavor,
        tier=tier,
    )


def standing_of(dice: random.Random) -> Standing:
    """Any state of a team that has budgets in USD and GPU-hours."""
    limit = Decimal(12_000)
    budget = {
        month: Left(
            limit * dice.randint(0, 100) / 100,
            limit,
            Decimal(dice.randint(0, 4_000)),
            Decimal(4_000),
        )
        for month in (date(2026, 11, 1), date(2026, 12, 1), date(2027, 1, 1))
    }
    return Standing(
        now=NOW,
        held_gpus=dice.randint(0, 8),
        recent_team_gpus=dice.randint(0, 6),
        recent_person_gpus=dice.randint(0, 3),
        free_gpus=dice.randint(0, 24),
        total_gpus=24,
        use_percent=dice.choice((None, Decimal(dice.randint(0, 100)))),
        budget=budget,
    )


def _where(dice: random.Random) -> dict[str, list[str]]:
    known = zip(SEEN, (OFFERINGS, ENVIRONMENTS, FLAVORS, TIERS), strict=True)
    return {
        name: dice.sample(values, 1) for name, values in known if dice.random() < 0.5
    }


def _step() -> dict[str, str]:
    return {"by": "platform_leads"}


def _entries(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"where": {}} | each for each in (*document["overrides"], *document["routes"])
    ]


def _comparable(value: Any, limit: Any) -> tuple[Any, Any]:
    pair = tuple(
        each[0] if isinstance(each, tuple) and each else each for each in (value, limit)
    )
    try:
        _ = pair[0] <= pair[1]
    except TypeError:
        return (
            0,
            0,
        )  # a number and a limit of two kinds, such as a time and days: any comparison stands for it
    return pair


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _each(work: Callable[[Any], object], over: Iterable[Any]) -> float:
    """The median of single calls, in microseconds."""
    took = []
    for one in over:
        began = time.perf_counter_ns()
        work(one)
        took.append(time.perf_counter_ns() - began)
    return statistics.median(took) / 1000
