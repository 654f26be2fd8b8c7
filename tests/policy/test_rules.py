"""Each rule holds exactly at its limit and not one above it, and says both in words."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given

from approvals.judging.inputs import answer_of
from approvals.requests.presenting import verdict
from policy.document import Policy, Thresholds
from policy.evaluation import evaluate
from policy.rules import WORDS, Ask, Rule, Standing, count_of
from tests.approvals.asks import (
    ASKS,
    DAY,
    MILD,
    NOW,
    POLICIES,
    STANDINGS,
    ask,
    budget,
    standing,
)
from ui.amounts import duration

SECOND = timedelta(seconds=1)
CENT = Decimal("0.01")


class Edge(NamedTuple):
    """What holds just so, what does not by the least there is, and the words of the latter."""

    at: tuple[Ask, Standing]
    above: tuple[Ask, Standing]
    text: str
    limit: str
    limits: Mapping[str, Any] = {}
    blocks: bool = False


def of(
    count: int = 1,
    *,
    length: timedelta = 3 * DAY,
    known: Standing | None = None,
    **asked: Any,
) -> tuple[Ask, Standing]:
    """An ask and what is known when it is judged."""
    return ask(count, length=length, **asked), known or standing()


EDGES: Mapping[str, Edge] = {
    "exists": Edge(
        of(24),
        of(25),
        "the cluster has 24; this asks for 25",
        "no more than the cluster has",
        blocks=True,
    ),
    "free": Edge(
        of(2, known=standing(free_gpus=2)),
        of(3, known=standing(free_gpus=2)),
        "2 free now",
        "3 needed",
    ),
    "after": Edge(
        of(1, known=standing(free_gpus=5)),
        of(2, known=standing(free_gpus=5)),
        "3 stay free",
        "people decide where fewer than 4 stay free",
        {"keep_free_gpus": 4},
    ),
    "budget": Edge(
        of(known=standing(budget=budget(72, 500))),
        of(known=standing(budget=budget(72 - CENT, 500))),
        "$72 of the $72 left in November",
        "budget $500",
    ),
    "budget_hours": Edge(
        of(known=standing(budget=budget(hours=(72, 900)))),
        of(known=standing(budget=budget(hours=(71, 900)))),
        "72 of the 71 GPU-hours left in November",
        "budget 900 GPU-hours",
    ),
    "budget_soft": Edge(
        of(known=standing(budget=budget(92, 100))),
        of(known=standing(budget=budget(91, 100))),
        "81 % of the budget of November set aside with this",
        "people decide beyond 80 %",
    ),
    "days": Edge(
        of(length=14 * DAY),
        of(length=14 * DAY + SECOND),
        "14 days 1 min",
        "people decide beyond 14 days",
    ),
    "gpus": Edge(of(2), of(3), "3 GPUs", "people decide above 2"),
    "gpu_hours": Edge(
        of(length=10 * DAY),
        of(length=10 * DAY + 36 * SECOND),
        "240.01 GPU-hours",
        "people decide above 240",
        {"automatic_gpu_hours": 240},
    ),
    "money": Edge(
        of(length=10 * DAY, usd_per_hour_each=Decimal("6.25")),
        of(length=10 * DAY, usd_per_hour_each=Decimal("6.2501")),
        "$1,500 in all",
        "people decide above $1,500",
    ),
    "window": Edge(
        of(2, known=standing(recent_team_gpus=4)),
        of(2, known=standing(recent_team_gpus=5)),
        "7 GPUs within 7 days",
        "the team’s limit without people is 6",
    ),
    "booked": Edge(
        of(2, starts=NOW + DAY, known=standing(team_booked_gpus=4)),
        of(2, starts=NOW + DAY, known=standing(team_booked_gpus=5)),
        "7 GPUs booked for the same time",
        "the team’s limit without people is 6",
    ),
    "window_person": Edge(
        of(2, known=standing(recent_person_gpus=4)),
        of(2, known=standing(recent_person_gpus=5)),
        "7 GPUs of one person within 7 days",
        "a person’s limit without people is 6",
    ),
    "window_usd": Edge(
        of(known=standing(recent_team_usd=Decimal(4428))),
        of(known=standing(recent_team_usd=Decimal("4428.01"))),
        "$4,500 within 7 days",
        "the team’s limit without people is $4,500",
    ),
    "window_usd_person": Edge(
        of(known=standing(recent_person_usd=Decimal(428))),
        of(known=standing(recent_person_usd=Decimal(429))),
        "$501 of one person within 7 days",
        "a person’s limit without people is $500",
        {"window_usd_person": Decimal(500)},
    ),
    "use": Edge(
        of(known=standing(held_gpus=4, use_percent=Decimal(50))),
        of(known=standing(held_gpus=4, use_percent=Decimal(49))),
        "49 % of the 4 GPUs held in use",
        "people decide below 50 %",
    ),
    "environment": Edge(
        of(environment="test"),
        of(environment="production"),
        "production environment",
        "people decide outside dev and test",
    ),
    "reversible": Edge(
        of(reversible_minutes=10),
        of(reversible_minutes=11),
        "undoing it takes 11 minutes at most",
        "people decide beyond 10 minutes",
    ),
    "cost_centre": Edge(
        of(known=standing(unconfirmed_cost_centre="CC-9", recent_team_usd=Decimal(28))),
        of(known=standing(unconfirmed_cost_centre="CC-9", recent_team_usd=Decimal(29))),
        "$101 on cost centre CC-9, which is not confirmed",
        "people decide above $100 until its owner or a platform lead confirms it",
        {"unconfirmed_usd": Decimal(100)},
    ),
    "quota": Edge(
        of(2, known=standing(quota_left=2, quota_name="the subscription quota of A")),
        of(3, known=standing(quota_left=2, quota_name="the subscription quota of A")),
        "2 more fit the subscription quota of A",
        "people decide beyond; an increase takes days",
    ),
    "gate": Edge(
        of(),
        of(decided_by_people=True, name="GPUs"),
        "GPUs",
        "people always decide this",
    ),
}


def judged(
    known: tuple[Ask, Standing], limits: Mapping[str, Any], code: str
) -> Rule | None:
    """What one rule says."""
    rules = evaluate(*known, Policy(thresholds=Thresholds(**limits))).rules
    return next((rule for rule in rules if rule.code == code), None)


def test_every_rule_has_its_edge_here() -> None:
    assert set(EDGES) == set(WORDS)


@pytest.mark.parametrize("code", EDGES)
def test_a_rule_holds_at_its_limit_and_not_one_above_it(code: str) -> None:
    edge = EDGES[code]
    at, above = (judged(known, edge.limits, code) for known in (edge.at, edge.above))
    assert at is None if code == "gate" else at is not None and at.holds
    assert above is not None
    assert (above.holds, above.blocks) == (False, edge.blocks)
    assert (above.text, above.limit) == (edge.text, edge.limit)


def test_over_the_longest_time_nobody_can_approve() -> None:
    rule = judged(of(length=90 * DAY + SECOND), {}, "days")
    assert rule is not None
    assert (rule.blocks, rule.text, rule.limit) == (
        True,
        "90 days 1 min",
        "at most 90 days, whoever approves",
    )


@pytest.mark.parametrize(
    ("counts", "then"),
    [(True, "counts as used until then"), (False, "people decide until then")],
)
@pytest.mark.parametrize(
    "measured",
    [
        {},
        {
            "use_percent": Decimal(0),
            "held_since": NOW - DAY + SECOND,
            "use_samples": 1_439,
        },
        {"use_percent": Decimal(0), "held_since": NOW - DAY, "use_samples": 59},
    ],
)
def test_use_that_is_not_measured_yet_counts_as_the_policy_says(
    measured: Mapping[str, Any], counts: bool, then: str
) -> None:
    known = standing(held_gpus=1, **measured)
    rule = judged(of(known=known), {"automatic_when_unmeasured": counts}, "use")
    assert rule is not None
    assert (rule.holds, rule.text) == (
        counts,
        "use of the 1 GPU held does not count yet",
    )
    assert rule.limit == f"it counts once held for 24 hours; {then}"


def test_use_counts_from_the_hour_and_the_sample_that_the_policy_names() -> None:
    known = standing(
        held_gpus=1,
        use_percent=Decimal(0),
        held_since=NOW - timedelta(hours=2),
        use_samples=5,
    )
    rule = judged(
        of(known=known), {"use_after_hours": 2, "use_after_samples": 5}, "use"
    )
    assert rule is not None
    assert (rule.holds, rule.text) == (False, "0 % of the 1 GPU held in use")


SILENT: Mapping[str, tuple[tuple[Ask, Standing], Mapping[str, Any]]] = {
    "use": (of(known=standing(held_gpus=0, use_percent=Decimal(0))), {}),
    "after": (of(known=standing(free_gpus=1)), {"keep_free_gpus": 0}),
    "gpu_hours": (of(), {"automatic_gpu_hours": None}),
    "window_person": (of(), {"window_gpus_person": None}),
    "booked": (of(known=standing(team_booked_gpus=9)), {}),
    "window_usd": (
        of(known=standing(recent_team_usd=Decimal(9_999))),
        {"window_usd_team": None},
    ),
    "window_usd_person": (
        of(
            usd_per_hour_each=Decimal(0),
            known=standing(recent_person_usd=Decimal(9_999)),
        ),
        {},
    ),
    "environment": (of(environment=""), {}),
    "exists": (of(known=standing(free_gpus=None, total_gpus=None)), {}),
    "free": (of(known=standing(free_gpus=None, total_gpus=None)), {}),
    "gpus": (of(gpus_each=0), {}),
    "window": (of(gpus_each=0), {}),
    "budget_hours": (of(gpus_each=0, known=standing(budget=budget(hours=(0, 0)))), {}),
    "budget_soft": (of(usd_per_hour_each=Decimal(0)), {}),
}


@pytest.mark.parametrize("code", SILENT)
def test_a_rule_that_has_nothing_to_say_is_silent(code: str) -> None:
    known, limits = SILENT[code]
    assert judged(known, limits, code) is None


def test_what_was_gathered_before_money_was_counted_is_judged_without_it() -> None:
    assert {
        judged(of(known=standing()), {}, code)
        for code in ("window_usd", "window_usd_person")
    } == {None}


def test_money_that_a_renewal_has_set_aside_is_said_to_count_as_left() -> None:
    rule = judged(of(known=standing(own_gpus=1)), {}, "budget")
    assert rule is not None
    assert rule.text.endswith(
        " left in November, with what is set aside for the GPUs that it keeps"
    )


def test_what_is_not_known_is_no_budget() -> None:
    rule = judged(of(known=standing(budget={})), {}, "budget")
    assert rule is not None
    assert (rule.holds, rule.text, rule.limit) == (
        False,
        "$72 of the $0 left in November",
        "budget $0",
    )


def test_a_team_whose_grants_were_not_counted_has_granted_nothing_yet() -> None:
    known = of(known=standing(unconfirmed_cost_centre="CC-9", recent_team_usd=None))
    rule = judged(known, {"unconfirmed_usd": Decimal(72)}, "cost_centre")
    assert rule is not None
    assert (rule.holds, rule.text) == (
        True,
        "$72 on cost centre CC-9, which is not confirmed",
    )


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(minutes=5), "5 minutes"),
        (timedelta(seconds=5), "1 minute"),
        (timedelta(minutes=59, seconds=1), "1 hour"),
        (timedelta(hours=1), "1 hour"),
        (timedelta(hours=47), "47 hours"),
        (timedelta(hours=5, minutes=30, seconds=1), "5 h 31 min"),
        (timedelta(hours=47, seconds=1), "47 h 1 min"),
        (2 * DAY - timedelta(seconds=1), "2 days"),
        (2 * DAY, "2 days"),
        (2 * DAY + timedelta(hours=5), "2 days 5 h"),
        (3 * DAY - timedelta(minutes=31), "2 days 23 h 29 min"),
        (3 * DAY + timedelta(minutes=1), "3 days 1 min"),
    ],
)
def test_a_length_is_said_as_people_say_it(length: timedelta, words: str) -> None:
    assert duration(length) == words


def test_one_gpu_is_not_several() -> None:
    assert [count_of(number) for number in (0, 1, 2, 1_000)] == [
        "0 GPUs",
        "1 GPU",
        "2 GPUs",
        "1,000 GPUs",
    ]


def test_a_budget_beyond_its_soft_stage_goes_to_people_unless_the_policy_allows_it_and_is_never_ticked() -> (
    None
):
    beyond = of(known=standing(budget=budget(91, 100)))
    rule = judged(beyond, {"automatic_beyond_soft_budget": True}, "budget_soft")
    assert rule is not None
    assert (rule.holds, rule.within, rule.limit) == (
        True,
        False,
        "over 80 %, allowed by the policy",
    )
    rule = judged(beyond, {}, "budget_soft")
    assert rule is not None
    assert (rule.holds, rule.within, rule.limit) == (
        False,
        False,
        "people decide beyond 80 %",
    )


@pytest.mark.parametrize("allowed", [True, False])
def test_a_budget_at_its_soft_stage_is_within_it(allowed: bool) -> None:
    at = of(known=standing(budget=budget(92, 100)))
    rule = judged(at, {"automatic_beyond_soft_budget": allowed}, "budget_soft")
    assert rule is not None
    assert (rule.within, rule.limit) == (True, "people decide beyond 80 %")


LATER = NOW + 2 * DAY
FREE: Mapping[str, tuple[tuple[Ask, Standing], str, str]] = {
    "all stand ready": (of(3), "24 free now", "3 needed"),
    "fewer than none": (of(3, known=standing(free_gpus=-2)), "0 free now", "3 needed"),
    "what is held already needs no more": (
        of(2, known=standing(own_gpus=2, free_gpus=0)),
        "0 free now",
        "0 needed",
    ),
    "what is held already and more": (
        of(5, known=standing(own_gpus=2, free_gpus=3)),
        "3 free now",
        "3 needed",
    ),
    "the pool grows": (
        of(
            3,
            known=standing(free_gpus=8, total_gpus=8, ready_gpus=2, growing_minutes=6),
        ),
        "8 can be had, 2 ready now: the pool grows to 8, usually within 6 minutes",
        "3 needed",
    ),
    "the pool grows from nothing": (
        of(3, known=standing(free_gpus=8, total_gpus=8, ready_gpus=0)),
        "8 can be had, 0 ready now: the pool grows to 8",
        "3 needed",
    ),
    "the pool has grown": (
        of(3, known=standing(free_gpus=8, total_gpus=8, ready_gpus=12)),
        "8 free now",
        "3 needed",
    ),
    "the pool is held back while it grows": (
        of(
            3,
            known=standing(
                free_gpus=4,
                total_gpus=8,
                ready_gpus=0,
                held_back_gpus=4,
                held_back_by="the quota",
            ),
        ),
        "4 can be had, 0 ready now: the pool grows to 4, where the quota stops it",
        "3 needed",
    ),
    "the pool is held back from what is needed": (
        of(
            3,
            known=standing(free_gpus=2, held_back_gpus=2, held_back_by="the quota"),
        ),
        "2 free now: the quota stops it there",
        "3 needed",
    ),
    "the pool is held back beyond what is needed": (
        of(
            3,
            known=standing(free_gpus=3, held_back_gpus=2, held_back_by="the quota"),
        ),
        "3 free now",
        "3 needed",
    ),
    "cordoned": (
        of(3, known=standing(free_gpus=0, cordoned_gpus=4)),
        "0 free now, 4 cordoned or not ready",
        "3 needed",
    ),
    "others have booked": (
        of(3, known=standing(free_gpus=2, booked_gpus=6, booked_from=LATER)),
        "2 free for this time; 6 more are booked from Sun 22 Nov, 12:00 UTC",
        "3 needed",
    ),
    "it begins later": (
        of(3, length=5 * DAY, starts=LATER, known=standing(free_gpus=4)),
        "4 free from Sun 22 Nov, 12:00 UTC until its end",
        "3 needed",
    ),
    "it was to begin before it is judged": (
        of(3, starts=NOW - DAY, known=standing(free_gpus=4)),
        "4 free now",
        "3 needed",
    ),
}


@pytest.mark.parametrize("case", FREE)
def test_what_is_free_is_said_with_what_keeps_the_rest(case: str) -> None:
    known, text, limit = FREE[case]
    rule = judged(known, {}, "free")
    assert rule is not None
    assert (rule.text, rule.limit) == (text, limit)


def test_what_is_not_measured_holds_without_being_within() -> None:
    rule = judged(of(known=standing(held_gpus=1)), {}, "use")
    assert rule is not None
    assert (rule.holds, rule.within) == (True, False)


@pytest.mark.slow
@given(ASKS, STANDINGS, POLICIES | MILD)
def test_what_is_within_its_number_holds(
    asked: Ask, known: Standing, policy: Policy
) -> None:
    assert all(
        rule.holds or not rule.within for rule in evaluate(asked, known, policy).rules
    )


def test_only_what_is_within_its_number_has_a_tick() -> None:
    known = of(known=standing(budget=budget(91, 100), held_gpus=1))
    policy = Policy(thresholds=Thresholds(automatic_beyond_soft_budget=True))
    answer = answer_of(evaluate(*known, policy))
    marks = {
        rule["code"]: shown["mark"]
        for rule, shown in zip(answer["rules"], verdict(answer)["rules"], strict=True)
    }
    assert answer["outcome"] == "automatic"
    assert (marks["budget_soft"], marks["use"], marks["budget"]) == (
        "allowed",
        "allowed",
        "ok",
    )


def test_an_ask_begins_when_it_says_and_no_sooner_than_it_is_judged() -> None:
    assert ask(1).begins(NOW) == NOW
    assert ask(1, starts=NOW + DAY).begins(NOW) == NOW + DAY
    assert ask(1, starts=NOW - DAY).begins(NOW) == NOW


def test_a_pool_grows_to_what_is_neither_cordoned_nor_held_back() -> None:
    known = standing(total_gpus=24, cordoned_gpus=8, held_back_gpus=4)
    assert known.grows_to == 12


def test_a_pool_has_to_grow_for_more_than_stands_ready_and_is_renewed() -> None:
    known = standing(ready_gpus=4, own_gpus=2)
    assert [known.has_to_grow(gpus) for gpus in (6, 7)] == [False, True]
    assert not standing(ready_gpus=None).has_to_grow(99)
