"""What the policy decides at once, what goes to people, and to whom."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.policy import (
    Ask,
    Evaluation,
    Outcome,
    Rule,
    Seat,
    Standing,
    Thresholds,
    evaluate,
    nearest_automatic,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DEFAULT = Thresholds()
LEADS, BOTH = (Seat.PLATFORM_LEADS,), (Seat.PLATFORM_LEADS, Seat.ENGINEERING_LEADERSHIP)
MONTHS = [date(2026 + month // 12, month % 12 + 1, 1) for month in range(10, 23)]


def money_left(
    left: str | int = 100_000, limit: str | int = 100_000
) -> Mapping[date, tuple[Decimal, Decimal]]:
    return dict.fromkeys(MONTHS, (Decimal(left), Decimal(limit)))


def standing(**changes: Any) -> Standing:
    usual: dict[str, Any] = {
        "now": NOW, "held_gpus": 0, "recent_automatic_gpus": 0, "free_gpus": 24, "total_gpus": 24,
        "price_per_gpu_hour": Decimal("1.00"), "budget_left": money_left(),
    }  # fmt: skip
    return Standing(**(usual | changes))


def ask(gpus: int = 1, *, length: timedelta = timedelta(days=3), environment: str = "dev") -> Ask:
    return Ask(gpus=gpus, until=NOW + length, environment=environment, flavor="a100")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome, the route, and which rules stand in the way."""

    outcome: Outcome
    route: tuple[Seat, ...] = ()
    against: tuple[str, ...] = ()


def verdict(of: Evaluation) -> Verdict:
    against = tuple(rule.code for rule in of.rules if not rule.holds)
    return Verdict(outcome=of.outcome, route=of.route, against=against)


def people(*against: str, route: tuple[Seat, ...] = LEADS) -> Verdict:
    return Verdict(outcome=Outcome.PEOPLE, route=route, against=against)


def impossible(*against: str, route: tuple[Seat, ...] = LEADS) -> Verdict:
    return Verdict(outcome=Outcome.IMPOSSIBLE, route=route, against=against)


AUTOMATIC = Verdict(outcome=Outcome.AUTOMATIC)
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
AT_14_DAYS, OVER_14_DAYS = ask(length=14 * DAY), ask(length=14 * DAY + SECOND)
CASES: Mapping[str, tuple[Ask, Standing, Verdict]] = {
    "one GPU for three days": (ask(), standing(), AUTOMATIC),
    "exactly the automatic GPUs": (ask(2), standing(), AUTOMATIC),
    "one GPU above": (ask(3), standing(), people("gpus")),
    "seven GPUs are the platform leads'": (ask(7), standing(), people("gpus", "window")),
    "eight GPUs go on to leadership": (ask(8), standing(), people("gpus", "window", route=BOTH)),
    "all there are": (ask(24), standing(), people("gpus", "money", "window", route=BOTH)),
    "more than there are": (
        ask(25), standing(), impossible("exists", "free", "gpus", "money", "window", route=BOTH)
    ),
    "exactly fourteen days": (AT_14_DAYS, standing(), AUTOMATIC),
    "a second above fourteen days": (OVER_14_DAYS, standing(), people("days")),
    "exactly ninety days": (ask(length=90 * DAY), standing(), people("days", "money")),
    "a second above ninety days": (ask(length=90 * DAY + SECOND), standing(), impossible("days", "money")),
    "exactly the automatic money": (
        ask(2, length=10 * DAY), standing(price_per_gpu_hour=Decimal("3.125")), AUTOMATIC
    ),
    "a cent above the automatic money": (
        ask(2, length=10 * DAY + 12 * SECOND), standing(price_per_gpu_hour=Decimal("3.125")), people("money")
    ),
    "exactly what is free": (ask(2), standing(free_gpus=2), AUTOMATIC),
    "one more than is free": (ask(2), standing(free_gpus=1), people("free")),
    "none free": (ask(1), standing(free_gpus=0), people("free")),
    "exactly the window": (ask(2), standing(recent_automatic_gpus=4), AUTOMATIC),
    "ten small asks are one large one": (ask(1), standing(recent_automatic_gpus=6), people("window")),
    "a test environment": (ask(environment="test"), standing(), AUTOMATIC),
    "production": (ask(environment="production"), standing(), people("environment")),
    "an environment nobody knows": (ask(environment="Dev"), standing(), people("environment")),
    "exactly the budget": (ask(), standing(budget_left=money_left(72)), AUTOMATIC),
    "a cent above the budget": (ask(), standing(budget_left=money_left("71.99")), people("budget")),
    "no budget known": (ask(), standing(budget_left={}), people("budget")),
    "a budget too small in both months": (
        ask(length=14 * DAY), standing(budget_left=money_left(1)), people("budget", "budget")
    ),
    "what is held does not count by itself": (ask(), standing(held_gpus=20), AUTOMATIC),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_it_decides(name: str) -> None:
    asked, known, wanted = CASES[name]
    assert verdict(evaluate(asked, known, DEFAULT)) == wanted


def test_an_answer_holds_every_rule_with_its_number_and_its_limit() -> None:
    answer = evaluate(ask(3, length=15 * DAY), standing(budget_left=money_left(50_000, 60_000)), DEFAULT)
    assert answer == Evaluation(
        outcome=Outcome.PEOPLE,
        route=LEADS,
        usd=Decimal("1080.00"),
        usd_per_day=Decimal("72.00"),
        gpu_hours=Decimal("1080.00"),
        rules=(
            Rule(code="days", holds=False, text="15 days", limit="automatic up to 14 days"),
            Rule(code="gpus", holds=False, text="3 GPUs", limit="automatic up to 2"),
            Rule(code="exists", holds=True, text="3 of 24 there are", limit="the cluster has 24"),
            Rule(code="free", holds=True, text="24 free now", limit="3 needed of 24"),
            Rule(
                code="budget", holds=True, text="$756 of $50,000 left in Nov",
                limit="budget $60,000",
            ),
            Rule(
                code="budget", holds=True, text="$324 of $50,000 left in Dec",
                limit="budget $60,000",
            ),
            Rule(code="money", holds=True, text="$1,080 in all", limit="automatic up to $1,500"),
            Rule(
                code="window", holds=True, text="3 GPUs within 7 days",
                limit="automatic up to 6",
            ),
            Rule(code="environment", holds=True, text="dev environment", limit="automatic in dev, test"),
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (ask(), "Automatic. Yours in about 5 seconds."),
        (ask(3), "Platform leads decide."),
        (ask(8), "Platform leads, then engineering leadership decide."),
        (ask(25), "Not possible as it stands: 25 of 24 there are."),
        (ask(length=91 * DAY), "Not possible as it stands: 91 days."),
    ],
)
def test_an_answer_says_itself_in_one_sentence(asked: Ask, sentence: str) -> None:
    assert evaluate(asked, standing(), DEFAULT).sentence == sentence


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(minutes=5), "1 hour"),
        (timedelta(hours=1), "1 hour"),
        (timedelta(hours=47), "47 hours"),
        (2 * DAY, "2 days"),
        (2 * DAY + timedelta(hours=5), "2 days 5 h"),
    ],
)
def test_a_length_is_said_as_people_say_it(length: timedelta, words: str) -> None:
    rules = evaluate(ask(length=length), standing(), DEFAULT).rules
    assert [rule.text for rule in rules if rule.code == "days"] == [words]


def test_the_nearest_automatic_ask_keeps_as_many_gpus_and_as_long_as_it_can() -> None:
    assert nearest_automatic(ask(), standing(), DEFAULT) is None
    assert nearest_automatic(ask(6), standing(), DEFAULT) == ask(2)
    assert nearest_automatic(ask(6), standing(free_gpus=1), DEFAULT) == ask(1)
    assert nearest_automatic(ask(6), standing(recent_automatic_gpus=5), DEFAULT) == ask(1)
    assert nearest_automatic(OVER_14_DAYS, standing(), DEFAULT) == AT_14_DAYS
    assert nearest_automatic(ask(length=14 * DAY), standing(budget_left=money_left(100)), DEFAULT) == ask(
        length=4 * DAY
    )


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        (ask(environment="production"), standing()),
        (ask(), standing(free_gpus=0)),
        (ask(), standing(free_gpus=-3)),
        (ask(), standing(recent_automatic_gpus=6)),
        (ask(), standing(budget_left=money_left(0))),
    ],
)
def test_there_is_no_nearest_automatic_ask_where_nothing_would_be(asked: Ask, known: Standing) -> None:
    assert nearest_automatic(asked, known, DEFAULT) is None


ASKS = st.builds(
    Ask,
    gpus=st.integers(1, 60),
    until=st.integers(60, 120 * 86_400).map(lambda seconds: NOW + timedelta(seconds=seconds)),
    environment=st.sampled_from(["dev", "test", "production"]),
    flavor=st.just("a100"),
)
USD = st.decimals(0, 20_000, places=2)
STANDINGS = st.builds(
    Standing,
    now=st.just(NOW),
    held_gpus=st.integers(0, 20),
    recent_automatic_gpus=st.integers(0, 8),
    free_gpus=st.integers(-2, 40),
    total_gpus=st.integers(0, 40),
    price_per_gpu_hour=st.decimals("0.0001", 40, places=4),
    budget_left=st.fixed_dictionaries({month: st.tuples(USD, USD) for month in MONTHS[:6]}),
)
POLICIES = st.builds(
    Thresholds,
    automatic_gpus=st.integers(0, 10),
    automatic_days=st.integers(0, 60),
    automatic_usd=USD,
    automatic_gpus_in_window=st.integers(0, 12),
    leadership_gpus=st.integers(1, 20),
)


@given(ASKS, STANDINGS, POLICIES)
def test_the_same_arguments_give_the_same_answer(asked: Ask, known: Standing, policy: Thresholds) -> None:
    again = evaluate(replace(asked), replace(known, budget_left=dict(known.budget_left)), replace(policy))
    assert evaluate(asked, known, policy) == again


@given(ASKS, STANDINGS, POLICIES)
def test_the_outcome_follows_from_rules_and_route(asked: Ask, known: Standing, policy: Thresholds) -> None:
    answer = evaluate(asked, known, policy)
    blocked = any(rule.blocks for rule in answer.rules)
    all_hold = all(rule.holds for rule in answer.rules)
    assert (answer.outcome is Outcome.IMPOSSIBLE) == blocked
    assert (answer.outcome is Outcome.AUTOMATIC) == (all_hold and asked.gpus < policy.leadership_gpus)
    assert (Seat.ENGINEERING_LEADERSHIP in answer.route) == (asked.gpus >= policy.leadership_gpus)
    assert not any(rule.blocks and rule.holds for rule in answer.rules)


@given(ASKS, STANDINGS, POLICIES)
def test_the_nearest_automatic_ask_is_automatic_and_asks_for_no_more(
    asked: Ask, known: Standing, policy: Thresholds
) -> None:
    nearest = nearest_automatic(asked, known, policy)
    if nearest is None:
        return
    assert evaluate(asked, known, policy).outcome is not Outcome.AUTOMATIC
    assert evaluate(nearest, known, policy).outcome is Outcome.AUTOMATIC
    assert nearest.gpus <= asked.gpus
    assert known.now < nearest.until <= asked.until
    assert replace(nearest, gpus=asked.gpus, until=asked.until) == asked


@given(ASKS, STANDINGS, POLICIES, st.integers(1, 60))
def test_asking_for_fewer_never_makes_an_automatic_ask_a_matter_for_people(
    asked: Ask, known: Standing, policy: Thresholds, gpus: int
) -> None:
    fewer = replace(asked, gpus=min(gpus, asked.gpus))
    if evaluate(asked, known, policy).outcome is Outcome.AUTOMATIC:
        assert evaluate(fewer, known, policy).outcome is Outcome.AUTOMATIC
