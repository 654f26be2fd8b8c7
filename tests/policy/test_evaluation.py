"""What the policy decides at once, what goes to people, and to whom."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.document import Policy
from policy.evaluation import (
    Ask,
    Evaluation,
    Outcome,
    Standing,
    evaluate,
    nearest_automatic,
)
from policy.rules import Arrival
from tests.approvals.asks import (
    ASKS,
    DAY,
    NOW,
    POLICIES,
    STANDINGS,
    ask,
    budget,
    standing,
)

DEFAULT = Policy()
LEADS, BOTH = ("platform_leads",), ("platform_leads", "engineering_leadership")
SECOND = timedelta(seconds=1)
PRICE = Decimal("3.125")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome, the route, and which rules stand in the way."""

    outcome: Outcome
    route: tuple[str, ...] = ()
    against: tuple[str, ...] = ()


def verdict(of: Evaluation) -> Verdict:
    against = tuple(rule.code for rule in of.rules if not rule.holds)
    return Verdict(
        outcome=of.outcome, route=tuple(step.by for step in of.route), against=against
    )


def people(*against: str, route: tuple[str, ...] = LEADS) -> Verdict:
    return Verdict(outcome=Outcome.PEOPLE, route=route, against=against)


def impossible(*against: str, route: tuple[str, ...] = LEADS) -> Verdict:
    return Verdict(outcome=Outcome.IMPOSSIBLE, route=route, against=against)


AUTOMATIC = Verdict(outcome=Outcome.AUTOMATIC)
AT_14_DAYS, OVER_14_DAYS = ask(length=14 * DAY), ask(length=14 * DAY + SECOND)
MANY = ("gpus", "gpu_hours", "window", "window_person", "money")
CASES: Mapping[str, tuple[Ask, Standing, Verdict]] = {
    "one GPU for three days": (ask(), standing(), AUTOMATIC),
    "exactly the automatic GPUs": (ask(2), standing(), AUTOMATIC),
    "one GPU above": (ask(3), standing(), people("gpus")),
    "seven GPUs are the platform leads'": (
        ask(7),
        standing(),
        people("gpus", "window", "window_person"),
    ),
    "eight GPUs go on to leadership": (
        ask(8),
        standing(),
        people("gpus", "window", "window_person", route=BOTH),
    ),
    "all there are": (ask(24), standing(), people(*MANY, route=BOTH)),
    "more than there are": (
        ask(25),
        standing(),
        impossible("exists", "free", *MANY, route=BOTH),
    ),
    "few that cost much go on to leadership": (
        ask(1, length=10 * DAY, usd_per_hour_each=Decimal("104.17")),
        standing(),
        people("money", route=BOTH),
    ),
    "exactly fourteen days": (AT_14_DAYS, standing(), AUTOMATIC),
    "a second above fourteen days": (OVER_14_DAYS, standing(), people("days")),
    "exactly ninety days": (
        ask(length=90 * DAY),
        standing(),
        people("days", "gpu_hours", "money"),
    ),
    "a second above ninety days": (
        ask(length=90 * DAY + SECOND),
        standing(),
        impossible("days", "gpu_hours", "money"),
    ),
    "exactly the automatic money": (
        ask(2, length=10 * DAY, usd_per_hour_each=PRICE),
        standing(),
        AUTOMATIC,
    ),
    "a cent above the automatic money": (
        ask(2, length=10 * DAY + 12 * SECOND, usd_per_hour_each=PRICE),
        standing(),
        people("money"),
    ),
    "exactly what is free": (ask(2), standing(free_gpus=2), AUTOMATIC),
    "one more than is free": (ask(2), standing(free_gpus=1), people("free")),
    "none free": (ask(1), standing(free_gpus=0), people("free")),
    "exactly the team's window": (ask(2), standing(recent_team_gpus=4), AUTOMATIC),
    "ten small asks of a team are one large one": (
        ask(1),
        standing(recent_team_gpus=6),
        people("window"),
    ),
    "ten small asks of a person are one large one": (
        ask(1),
        standing(recent_person_gpus=6),
        people("window_person"),
    ),
    "volumes that cost much together are one large one": (
        ask(gpus_each=0),
        standing(recent_team_usd=Decimal(4429)),
        people("window_usd"),
    ),
    "exactly the money of the windows": (
        ask(),
        standing(recent_team_usd=Decimal(4428), recent_person_usd=Decimal(4428)),
        AUTOMATIC,
    ),
    "what a person got for two teams": (
        ask(),
        standing(recent_person_usd=Decimal(4429)),
        people("window_usd_person"),
    ),
    "a test environment": (ask(environment="test"), standing(), AUTOMATIC),
    "production": (ask(environment="production"), standing(), people("environment")),
    "an environment nobody knows": (
        ask(environment="Dev"),
        standing(),
        people("environment"),
    ),
    "what has no environment": (ask(environment=""), standing(), AUTOMATIC),
    "exactly the budget": (ask(), standing(budget=budget(72, soft=100)), AUTOMATIC),
    "a cent above the budget": (
        ask(),
        standing(budget=budget("71.99", soft=100)),
        people("budget", "budget_soft"),
    ),
    "no budget known": (ask(), standing(budget={}), people("budget")),
    "a budget too small in both months": (
        ask(length=14 * DAY),
        standing(budget=budget(1, 1, soft=100)),
        people("budget", "budget_soft", "budget", "budget_soft"),
    ),
    "what is held and not measured": (ask(), standing(held_gpus=20), AUTOMATIC),
    "what is held and stands idle": (
        ask(),
        standing(held_gpus=20, use_percent=Decimal(49)),
        people("use"),
    ),
    "what cannot be undone": (
        ask(reversible_minutes=None),
        standing(),
        people("reversible"),
    ),
    "what the catalogue leaves to people": (
        ask(decided_by_people=True),
        standing(),
        people("gate"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_decides(name: str) -> None:
    asked, known, wanted = CASES[name]
    assert verdict(evaluate(asked, known, DEFAULT)) == wanted


def test_an_answer_holds_every_rule_with_its_number_and_its_limit() -> None:
    answer = evaluate(
        ask(3, length=15 * DAY), standing(budget=budget(50_000, 60_000)), DEFAULT
    )
    assert (answer.outcome, answer.usd, answer.usd_per_day, answer.gpu_hours) == (
        Outcome.PEOPLE,
        Decimal("1080.00"),
        Decimal("72.00"),
        Decimal("1080.00"),
    )
    assert [
        (rule.code, rule.holds, rule.text, rule.limit) for rule in answer.rules
    ] == [
        ("days", False, "15 days", "people decide beyond 14 days"),
        ("gpus", False, "3 GPUs", "people decide above 2"),
        ("gpu_hours", False, "1,080 GPU-hours", "people decide above 700"),
        (
            "exists",
            True,
            "the cluster has 24; this asks for 3",
            "no more than the cluster has",
        ),
        ("free", True, "24 free now", "3 needed"),
        ("budget", True, "$756 of the $50,000 left in November", "budget $60,000"),
        (
            "budget_soft",
            True,
            "18 % of the budget of November set aside with this",
            "people decide beyond 80 %",
        ),
        ("budget", True, "$324 of the $50,000 left in December", "budget $60,000"),
        (
            "budget_soft",
            True,
            "17 % of the budget of December set aside with this",
            "people decide beyond 80 %",
        ),
        (
            "window",
            True,
            "3 GPUs within 7 days",
            "the team’s limit without people is 6",
        ),
        (
            "window_person",
            True,
            "3 GPUs of one person within 7 days",
            "a person’s limit without people is 6",
        ),
        ("money", True, "$1,080 in all", "people decide above $1,500"),
        ("environment", True, "dev environment", "people decide outside dev and test"),
        (
            "reversible",
            True,
            "can be undone within 1 minute",
            "people decide beyond 10 minutes",
        ),
    ]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (ask(), "Automatic. Yours in about 5 seconds."),
        (
            ask(by_person=True),
            "Automatic. A platform lead makes it, usually within 24 hours.",
        ),
        (
            ask(arrival=Arrival.COMMITTED),
            "Automatic. Committed to Git in about 5 seconds, yours once the cluster follows.",
        ),
        (
            ask(arrival=Arrival.PROPOSED),
            "Automatic. A pull request opens in about 5 seconds, yours once it is merged.",
        ),
        (ask(3), "Platform leads decide."),
        (ask(8), "Platform leads, then engineering leadership decide."),
        (ask(25), "Not possible as it stands: the cluster has 24; this asks for 25."),
        (ask(length=91 * DAY), "Not possible as it stands: 91 days."),
    ],
)
def test_an_answer_says_itself_in_one_sentence(asked: Ask, sentence: str) -> None:
    assert evaluate(asked, standing(), DEFAULT).sentence == sentence


def test_the_nearest_automatic_ask_keeps_as_many_gpus_and_as_long_as_it_can() -> None:
    assert nearest_automatic(ask(), standing(), DEFAULT) is None
    assert nearest_automatic(ask(6), standing(), DEFAULT) == ask(2)
    assert nearest_automatic(ask(6), standing(free_gpus=1), DEFAULT) == ask(1)
    assert nearest_automatic(ask(6), standing(recent_team_gpus=5), DEFAULT) == ask(1)
    assert nearest_automatic(OVER_14_DAYS, standing(), DEFAULT) == AT_14_DAYS
    # What takes no GPUs is counted in money: three dollars a day each, and 72 are left in the window.
    many = ask(1000, gpus_each=0, usd_per_hour_each=Decimal("0.125"))
    fits = nearest_automatic(many, standing(recent_team_usd=Decimal(4428)), DEFAULT)
    assert fits == replace(many, count=24, until=NOW + DAY)
    assert nearest_automatic(
        ask(length=14 * DAY), standing(budget=budget(100, soft=100)), DEFAULT
    ) == ask(length=4 * DAY)


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        (ask(environment="production"), standing()),
        (ask(8, least=8), standing()),
        (ask(), standing(free_gpus=0)),
        (ask(), standing(free_gpus=-3)),
        (ask(), standing(recent_team_gpus=6)),
        (ask(), standing(budget=budget(0))),
    ],
)
def test_there_is_no_nearest_automatic_ask_where_nothing_would_be(
    asked: Ask, known: Standing
) -> None:
    assert nearest_automatic(asked, known, DEFAULT) is None


@given(ASKS, STANDINGS, POLICIES)
def test_the_same_arguments_give_the_same_answer(
    asked: Ask, known: Standing, policy: Policy
) -> None:
    again = evaluate(
        replace(asked), replace(known, budget=dict(known.budget)), replace(policy)
    )
    assert evaluate(asked, known, policy) == again


@given(ASKS, STANDINGS, POLICIES)
def test_the_outcome_follows_from_rules_and_route(
    asked: Ask, known: Standing, policy: Policy
) -> None:
    answer = evaluate(asked, known, policy)
    blocked = any(rule.blocks for rule in answer.rules)
    all_hold = all(rule.holds for rule in answer.rules)
    assert (answer.outcome is Outcome.IMPOSSIBLE) == blocked
    assert (answer.outcome is Outcome.AUTOMATIC) == all_hold == (answer.route == ())
    assert not any(rule.blocks and rule.holds for rule in answer.rules)


@given(ASKS, STANDINGS, POLICIES)
def test_the_nearest_automatic_ask_is_automatic_and_asks_for_no_more(
    asked: Ask, known: Standing, policy: Policy
) -> None:
    nearest = nearest_automatic(asked, known, policy)
    if nearest is None:
        return
    assert evaluate(asked, known, policy).outcome is not Outcome.AUTOMATIC
    assert evaluate(nearest, known, policy).outcome is Outcome.AUTOMATIC
    assert nearest.count <= asked.count
    assert known.now < nearest.until <= asked.until
    assert replace(nearest, count=asked.count, until=asked.until) == asked


@given(ASKS, STANDINGS, POLICIES, st.integers(1, 60))
def test_asking_for_fewer_never_makes_an_automatic_ask_a_matter_for_people(
    asked: Ask, known: Standing, policy: Policy, count: int
) -> None:
    fewer = replace(asked, count=min(count, asked.count))
    if evaluate(asked, known, policy).outcome is Outcome.AUTOMATIC:
        assert evaluate(fewer, known, policy).outcome is Outcome.AUTOMATIC


@pytest.mark.parametrize(
    ("offering", "possible"),
    [("endpoint", True), ("reservation", True), ("gpus", False)],
)
def test_what_runs_for_a_year_can_be_asked_for_a_year(
    offering: str, possible: bool
) -> None:
    answer = evaluate(
        ask(offering=offering, length=360 * DAY), standing(budget={}), Policy()
    )
    assert (
        "days" not in [rule.code for rule in answer.rules if rule.blocks]
    ) is possible
