"""What the policy decides at once, what goes to people, and to whom."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.bookings.levels import Level
from policy.document import LEADS as LEADS_STEP
from policy.document import Policy, Route, StepPlan, Thresholds, Where
from policy.evaluation import (
    Ask,
    Coming,
    Evaluation,
    Outcome,
    Standing,
    evaluate,
    later_automatic,
    nearest_automatic,
    shortest_days,
    stays,
)
from policy.remedies import remedies_of
from policy.route_size import Earlier
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
    "what was asked for a second more than fourteen days, with less of it left": (
        ask(length=10 * DAY, asked_at=NOW - 4 * DAY - SECOND),
        standing(),
        people("days"),
    ),
    "what was asked for fourteen days": (
        ask(length=10 * DAY, asked_at=NOW - 4 * DAY),
        standing(),
        AUTOMATIC,
    ),
    "what cost a cent above the automatic money when it was asked": (
        ask(
            2,
            length=9 * DAY,
            usd_per_hour_each=PRICE,
            asked_at=NOW - DAY - 12 * SECOND,
        ),
        standing(),
        people("money"),
    ),
    "what was too long for anybody, with little enough of it left": (
        ask(length=90 * DAY, asked_at=NOW - DAY),
        standing(),
        people("days", "gpu_hours", "money"),
    ),
    "a booking lasts as long, whenever it is judged": (
        ask(length=16 * DAY + SECOND, starts=NOW + 2 * DAY, asked_at=NOW - 9 * DAY),
        standing(),
        people("days"),
    ),
    "a booking whose beginning has passed is as long as it was": (
        ask(length=10 * DAY, starts=NOW - 4 * DAY, asked_at=NOW - 9 * DAY),
        standing(),
        AUTOMATIC,
    ),
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
            "undoing it takes 1 minute at most",
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
        (
            ask(starts=NOW + DAY),
            "Automatic. It begins by itself on Sat 21 Nov, 12:00 UTC.",
        ),
        (ask(starts=NOW), "Automatic. Yours in about 5 seconds."),
        (ask(3), "Platform leads decide."),
        (ask(8), "Platform leads, then engineering leadership decide."),
        (ask(25), "Not possible as it stands: the cluster has 24; this asks for 25."),
        (ask(length=91 * DAY), "Not possible as it stands: 91 days."),
    ],
)
def test_an_answer_says_itself_in_one_sentence(asked: Ask, sentence: str) -> None:
    assert evaluate(asked, standing(), DEFAULT).sentence == sentence


def test_an_answer_says_that_the_pool_has_to_grow_before_anything_runs() -> None:
    known = standing(ready_gpus=1, growing_minutes=6)
    assert [evaluate(ask(gpus), known, DEFAULT).sentence for gpus in (1, 2)] == [
        "Automatic. Yours in about 5 seconds.",
        "Automatic. Yours in about 5 seconds. 1 ready now: the pool grows to 24, usually within 6 minutes.",
    ]


MANAGER = StepPlan(by="managers")


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ((MANAGER,), "Your manager decides."),
        ((LEADS_STEP,), "Platform leads decide."),
        ((MANAGER, LEADS_STEP), "Your manager, then platform leads decide."),
    ],
)
def test_one_manager_decides_and_several_people_decide(
    steps: tuple[StepPlan, ...], sentence: str
) -> None:
    policy = Policy(routes=(Route(name="all", steps=steps),))
    assert evaluate(ask(3), standing(), policy).sentence == sentence


MONDAY = NOW - 4 * DAY


def granted(gpus: int, *, at: datetime = MONDAY, **changes: Any) -> Earlier:
    """GPUs that platform leads approved for the team on Monday, at $72 each."""
    usual: dict[str, Any] = {
        "first": at,
        "last": at,
        "gpus": gpus,
        "usd": Decimal(72 * gpus),
        "granted": True,
        "of_team": True,
        "of_person": False,
        "seats": LEADS,
    }
    return Earlier(**(usual | changes))


class Sum(NamedTuple):
    """An ask that people decide, what came before it, who decides, and why they do."""

    ask: Ask
    earlier: tuple[Earlier, ...]
    route: tuple[str, ...]
    because: str = ""
    gpus: int = 3
    usd: int = 216


SUMS: Mapping[str, Sum] = {
    "what the team was granted counts": Sum(
        ask(3),
        (granted(7),),
        BOTH,
        ": 10 GPUs, $720 with the 7 granted on Mon 16 Nov",
        gpus=10,
        usd=720,
    ),
    "what the person was granted for another team counts": Sum(
        ask(3),
        (granted(7, of_team=False, of_person=True),),
        BOTH,
        ": 10 GPUs, $720 of one person over all their teams with the 7 granted on Mon 16 Nov",
        gpus=10,
        usd=720,
    ),
    "what others were granted for other teams does not": Sum(
        ask(3), (granted(7, of_team=False),), LEADS
    ),
    "what was granted on several days": Sum(
        ask(3),
        (granted(2), granted(3, at=MONDAY - 2 * DAY)),
        BOTH,
        ": 8 GPUs, $576 with the 5 granted since Sat 14 Nov",
        gpus=8,
        usd=576,
    ),
    "one GPU less than leadership sees": Sum(ask(3), (granted(4),), LEADS),
    "what still waits counts": Sum(
        ask(3),
        (granted(7, granted=False),),
        BOTH,
        ": 10 GPUs, $720 with the 7 that wait",
        gpus=10,
        usd=720,
    ),
    "what was granted and what waits": Sum(
        ask(3),
        (granted(3, granted=False), granted(2)),
        BOTH,
        ": 8 GPUs, $576 with the 2 granted on Mon 16 Nov and the 3 that wait",
        gpus=8,
        usd=576,
    ),
    "money of what takes no GPUs counts": Sum(
        ask(3),
        (granted(0, usd=Decimal(24_784)),),
        BOTH,
        ": 3 GPUs, $25,000 with the $24,784 granted on Mon 16 Nov for other things",
        usd=25_000,
    ),
    "a dollar less than leadership sees": Sum(
        ask(3), (granted(0, usd=Decimal(24_783)),), LEADS
    ),
    "one GPU is not several": Sum(
        ask(1, decided_by_people=True),
        (granted(0, usd=Decimal(24_928)),),
        BOTH,
        ": 1 GPU, $25,000 with the $24,928 granted on Mon 16 Nov for other things",
        gpus=1,
        usd=25_000,
    ),
    "what takes no GPUs is said by its money": Sum(
        ask(1, gpus_each=0, decided_by_people=True),
        (granted(0, usd=Decimal(24_928)),),
        BOTH,
        ": $25,000 with the $24,928 granted on Mon 16 Nov",
        gpus=0,
        usd=25_000,
    ),
    "what leadership approved does not count again": Sum(
        ask(3), (granted(7, seats=BOTH),), LEADS
    ),
    "nor what was granted before, which they saw in the sum": Sum(
        ask(3), (granted(1, seats=BOTH), granted(7, at=MONDAY - DAY)), LEADS
    ),
    "what was granted since they approved counts": Sum(
        ask(3),
        (granted(5), granted(7, at=MONDAY - DAY, seats=BOTH)),
        BOTH,
        ": 8 GPUs, $576 with the 5 granted on Mon 16 Nov",
        gpus=8,
        usd=576,
    ),
    "what they have yet to approve hides nothing from them": Sum(
        ask(3),
        (granted(7, at=MONDAY - DAY), granted(1, granted=False, seats=BOTH)),
        BOTH,
        ": 10 GPUs, $720 with the 7 granted on Sun 15 Nov",
        gpus=10,
        usd=720,
    ),
    "an ask that is large by itself has no other reason": Sum(
        ask(8), (granted(7),), BOTH, gpus=8, usd=576
    ),
}


@pytest.mark.parametrize("case", SUMS)
def test_many_small_asks_go_where_one_large_one_goes(case: str) -> None:
    asked, earlier, route, because, gpus, usd = SUMS[case]
    answer = evaluate(asked, standing(earlier=earlier), DEFAULT)
    assert answer.size is not None
    assert (verdict(answer).route, answer.because) == (route, because)
    assert (answer.size.gpus, answer.size.usd) == (gpus, Decimal(usd))
    assert answer.sentence.endswith(f" decide{because}.")


@pytest.mark.parametrize(("changed", "route"), [({}, BOTH), ({"flavor": "t4"}, LEADS)])
def test_a_route_for_some_asks_counts_those_alone(
    changed: Mapping[str, Any], route: tuple[str, ...]
) -> None:
    large, ordinary = DEFAULT.routes
    narrow = replace(large, where=Where(flavors=("a100",)))
    earlier = granted(7, **({"environment": "dev", "flavor": "a100"} | dict(changed)))
    policy = Policy(routes=(narrow, ordinary))
    answer = evaluate(ask(3), standing(earlier=(earlier,)), policy)
    assert verdict(answer).route == route


def test_an_ask_that_no_route_takes_is_no_larger_than_itself() -> None:
    large, _ = DEFAULT.routes
    answer = evaluate(ask(3), standing(earlier=(granted(1),)), Policy(routes=(large,)))
    assert answer.size is not None
    assert (answer.route, answer.size.gpus, answer.because) == ((), 3, "")


WEDNESDAY, DECEMBER = NOW + 5 * DAY, datetime(2026, 12, 1, tzinfo=UTC)


def only_in_november(
    left: int, limit: int = 4_000, hours: tuple[int, int] | None = None
) -> Mapping[date, Any]:
    """A budget that is smaller in November than in the months after it."""
    november = date(2026, 11, 1)
    return {**budget(), november: budget(left, limit, hours=hours)[november]}


MENDED: Mapping[str, tuple[Standing, datetime]] = {
    "GPUs that come back": (
        standing(
            free_gpus=0, coming=(Coming(NOW + DAY, free=1), Coming(WEDNESDAY, free=1))
        ),
        WEDNESDAY,
    ),
    "a budget that begins anew": (
        standing(budget=only_in_november(0)),
        DECEMBER,
    ),
    "a budget that leaves its soft stage": (
        standing(budget=only_in_november(200)),
        DECEMBER,
    ),
    "a budget of GPU-hours that begins anew": (
        standing(budget=only_in_november(4_000, hours=(0, 900))),
        DECEMBER,
    ),
    "what falls out of the team's window": (
        standing(
            recent_team_gpus=6,
            coming=(Coming(NOW + DAY, team=1), Coming(WEDNESDAY, team=1)),
        ),
        WEDNESDAY,
    ),
    "what falls out of the person's window": (
        standing(
            recent_person_gpus=6,
            coming=(Coming(NOW + DAY, person=1), Coming(WEDNESDAY, person=1)),
        ),
        WEDNESDAY,
    ),
    "money that falls out of the team's window": (
        standing(
            recent_team_usd=Decimal(4_500),
            coming=(
                Coming(NOW + DAY, team_usd=Decimal(143)),
                Coming(WEDNESDAY, team_usd=Decimal(1)),
            ),
        ),
        WEDNESDAY,
    ),
    "money that falls out of the person's window": (
        standing(
            recent_person_usd=Decimal(4_500),
            coming=(
                Coming(NOW + DAY, person_usd=Decimal(143)),
                Coming(WEDNESDAY, person_usd=Decimal(1)),
            ),
        ),
        WEDNESDAY,
    ),
    "what others have booked until then": (
        standing(
            free_gpus=0,
            levels=(
                Level(NOW, 0),
                Level(NOW + DAY, 4),
                Level(NOW + 3 * DAY, 0),
                Level(WEDNESDAY, 4),
            ),
            coming=(Coming(NOW + DAY, free=4), Coming(WEDNESDAY, free=4)),
        ),
        WEDNESDAY,
    ),
}


@pytest.mark.parametrize("case", MENDED)
def test_what_time_alone_mends_is_waited_for(case: str) -> None:
    known, at = MENDED[case]
    assert later_automatic(ask(2), known, DEFAULT) == at


def test_gpus_that_must_stay_free_are_waited_for() -> None:
    policy = Policy(thresholds=Thresholds(keep_free_gpus=4))
    known = standing(free_gpus=5, coming=(Coming(WEDNESDAY, free=1),))
    assert later_automatic(ask(2), known, policy) == WEDNESDAY


def test_what_takes_no_gpus_waits_for_money_alone() -> None:
    asked = ask(gpus_each=0)
    known = standing(
        free_gpus=None,
        total_gpus=None,
        recent_team_usd=Decimal(4_500),
        coming=(Coming(WEDNESDAY, team_usd=Decimal(72)),),
    )
    assert later_automatic(asked, known, DEFAULT) == WEDNESDAY


@pytest.mark.parametrize("back", [NOW + DAY, NOW + 2 * DAY])
def test_an_ask_that_begins_later_is_not_told_of_a_moment_up_to_its_beginning(
    back: datetime,
) -> None:
    asked = ask(2, starts=NOW + 2 * DAY, length=5 * DAY)
    coming = (Coming(back, free=2), Coming(WEDNESDAY, free=1))
    known = standing(free_gpus=0, coming=coming)
    assert later_automatic(asked, known, DEFAULT) == WEDNESDAY


def test_what_begins_later_can_be_asked_as_it_is_until_it_begins() -> None:
    asked = ask(2, starts=NOW + 4 * DAY, length=2 * DAY)
    coming = (Coming(NOW + 2 * DAY, team=8), Coming(NOW + 5 * DAY, team=1))
    known = standing(recent_team_gpus=8, coming=coming)
    assert later_automatic(asked, known, DEFAULT) == NOW + 2 * DAY
    assert stays(asked, known, asked_at=NOW + 2 * DAY)


def test_what_goes_on_can_be_asked_until_its_present_end() -> None:
    asked = ask(2, length=8 * DAY)
    coming = (Coming(NOW + 2 * DAY, team=8),)
    for end, at in ((NOW + 3 * DAY, NOW + 2 * DAY), (NOW + DAY, None)):
        held = standing(
            recent_team_gpus=8, coming=coming, own_gpus=2, held_gpus=2, own_until=end
        )
        assert later_automatic(asked, held, DEFAULT) == at


def test_what_goes_on_is_never_told_to_end_before_its_present_end() -> None:
    end = NOW + 4 * DAY + timedelta(hours=6)
    held = standing(own_gpus=2, held_gpus=2, own_until=end)
    asked = ask(2, length=20 * DAY)
    assert shortest_days(asked, held) == 5
    # The longest that the policy allows lies behind the present end.
    assert nearest_automatic(asked, held, DEFAULT) == ask(2, length=14 * DAY)
    # Money for a day and no more: nothing is proposed that ends before the present end.
    day = 48 * asked.usd_per_hour_each
    poor = replace(held, budget=budget(2 * day, int(2 * day)))
    assert nearest_automatic(asked, poor, DEFAULT) is None
    assert nearest_automatic(asked, replace(poor, own_until=None), DEFAULT) is not None
    assert "ask_less" not in {one.code for one in remedies_of(asked, poor, DEFAULT)}


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        (ask(), standing()),
        (ask(2), standing(free_gpus=0)),
        (ask(3), standing(free_gpus=0, coming=(Coming(WEDNESDAY, free=24),))),
        (ask(2), standing(free_gpus=0, coming=(Coming(WEDNESDAY, free=1),))),
    ],
)
def test_there_is_no_later_moment_where_time_alone_mends_nothing(
    asked: Ask, known: Standing
) -> None:
    assert later_automatic(asked, known, DEFAULT) is None


def test_the_nearest_automatic_ask_keeps_as_many_gpus_and_as_long_as_it_can() -> None:
    assert nearest_automatic(ask(), standing(), DEFAULT) is None
    assert nearest_automatic(ask(6), standing(), DEFAULT) == ask(2)
    assert nearest_automatic(ask(6), standing(free_gpus=1), DEFAULT) == ask(1)
    assert nearest_automatic(ask(6), standing(recent_team_gpus=5), DEFAULT) == ask(1)
    assert nearest_automatic(OVER_14_DAYS, standing(), DEFAULT) == AT_14_DAYS
    # What is held already goes on, though nothing else is free.
    held = standing(free_gpus=0, own_gpus=2)
    longer, shorter = ask(2, length=15 * DAY), ask(2, length=14 * DAY)
    assert nearest_automatic(longer, held, DEFAULT) == shorter
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


@pytest.mark.slow
@given(ASKS, STANDINGS, POLICIES)
def test_the_same_arguments_give_the_same_answer(
    asked: Ask, known: Standing, policy: Policy
) -> None:
    again = evaluate(
        replace(asked), replace(known, budget=dict(known.budget)), replace(policy)
    )
    assert evaluate(asked, known, policy) == again


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
