"""An ask that people decide always says what would make it automatic, and what it says is so."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.ends.actions import give_back
from allocations.models import Allocation, Budget
from approvals.models import Request
from approvals.requests.actions import judge, submit
from approvals.requests.preview import preview_of
from notices.models import Notice
from policy.document import Policy, Thresholds
from policy.evaluation import Ask, Outcome, Standing, evaluate
from policy.remedies import remedies_of
from policy.rules import Coming
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
from tests.approvals.policies import in_force
from tests.scene import HOUR, Scene
from tests.scene import NOW as START

WEDNESDAY = NOW + 5 * DAY
IDLE = {"held_gpus": 4, "use_percent": Decimal(12)}
NOVEMBER, DECEMBER = (datetime(2026, month, 1, tzinfo=UTC).date() for month in (11, 12))
LAST_EVENING = datetime(2026, 11, 30, 20, tzinfo=UTC)
SPENT = {**budget(), NOVEMBER: budget(0, 4_000)[NOVEMBER]}
CLOSE = {**budget(), NOVEMBER: budget(100, 4_000)[NOVEMBER]}


class Case(NamedTuple):
    """An ask nothing of whose kind is automatic, and what is said of it."""

    ask: Ask
    known: Standing
    numbers: Mapping[str, object]
    code: str
    sentence: str
    at: datetime | None = None


CASES: Mapping[str, Case] = {
    "use": Case(
        ask(16),
        standing(**IDLE),
        {},
        "use",
        (
            "Nothing of any size is automatic while 12 % of the 4 GPUs held are in use (from 50 % on): give back "
            "all 4, "
            "or use them first."
        ),
    ),
    "half of it": Case(
        ask(16),
        standing(held_gpus=8, use_percent=Decimal(45)),
        {},
        "use",
        (
            "Nothing of any size is automatic while 45 % of the 8 GPUs held are in use (from 50 % on): give back 1, "
            "or use them first."
        ),
    ),
    "not measured": Case(
        ask(),
        standing(held_gpus=2, held_since=NOW - HOUR),
        {"automatic_when_unmeasured": False},
        "use",
        (
            "Nothing of any size is automatic while the use of what is held is not measured: it is, from "
            "Sat 21 Nov, 11:00 UTC on."
        ),
        NOW + 23 * HOUR,
    ),
    "a window": Case(
        ask(2),
        standing(recent_team_gpus=6, coming=(Coming(WEDNESDAY, team=4),)),
        {},
        "window",
        (
            "Nothing of any size is automatic before Wed 25 Nov, 12:00 UTC, when 4 GPUs granted to the team leave "
            "the window of "
            "7 days."
        ),
        WEDNESDAY,
    ),
    "money of a person": Case(
        ask(),
        standing(
            recent_person_usd=Decimal(4_500),
            coming=(Coming(WEDNESDAY, person_usd=Decimal(2_000)),),
        ),
        {},
        "window_usd_person",
        (
            "Nothing of any size is automatic before Wed 25 Nov, 12:00 UTC, when $2,000 granted to one person leave "
            "the window "
            "of 7 days."
        ),
        WEDNESDAY,
    ),
    "two windows that open together": Case(
        ask(2),
        standing(
            recent_team_gpus=6,
            recent_person_gpus=6,
            coming=(Coming(WEDNESDAY, team=4, person=3),),
        ),
        {"window_gpus_person": 4},
        "window",
        (
            "Nothing of any size is automatic before Wed 25 Nov, 12:00 UTC, when 4 GPUs granted to the team and "
            "3 GPUs granted to one person leave the window of 7 days."
        ),
        WEDNESDAY,
    ),
    "a budget that is spent": Case(
        ask(),
        standing(budget=SPENT),
        {},
        "budget",
        (
            "Nothing of any size is automatic while the budget of November has $0 left, until a platform lead "
            "raises it. "
            "It is from Tue 1 Dec, 00:00 UTC on, when the budget of December begins."
        ),
        datetime(2026, 12, 1, tzinfo=UTC),
    ),
    "a budget that has enough for the last hours of its month": Case(
        ask(),
        standing(
            budget={**budget(), NOVEMBER: budget(5, 4_000)[NOVEMBER]},
            coming=(Coming(LAST_EVENING, free=1),),
        ),
        {},
        "budget",
        "Nothing of any size is automatic while the budget of November has $5 left, until a platform lead raises it. "
        "It is from Mon 30 Nov, 20:00 UTC on: then it is paid from the budget of December, too.",
        LAST_EVENING,
    ),
    "a budget that is spent for what people always decide": Case(
        ask(decided_by_people=True),
        standing(budget=SPENT),
        {},
        "budget",
        "Nothing of any size is automatic while the budget of November has $0 left, until a platform lead raises it.",
        datetime(2026, 12, 1, tzinfo=UTC),
    ),
    "a budget past its soft stage": Case(
        ask(),
        standing(budget=CLOSE),
        {},
        "budget_soft",
        "Nothing of any size is automatic while more than 80 % of the budget of November is set aside, until a "
        "platform lead raises it. It is from Tue 1 Dec, 00:00 UTC on, when the budget of December begins.",
        datetime(2026, 12, 1, tzinfo=UTC),
    ),
    "none free": Case(
        ask(),
        standing(free_gpus=0, coming=(Coming(WEDNESDAY, free=8),)),
        {},
        "free",
        "Nothing of any size is automatic before Wed 25 Nov, 12:00 UTC, when GPUs come back: 0 are free.",
        WEDNESDAY,
    ),
    "none free for long": Case(
        ask(),
        standing(free_gpus=0),
        {},
        "free",
        "Nothing of any size is automatic while 0 are free: no end that is known frees enough.",
        None,
    ),
    "an environment": Case(
        ask(environment="production"),
        standing(),
        {},
        "environment",
        "Nothing of any size is automatic in production: people always decide there.",
        None,
    ),
    "what cannot be undone": Case(
        ask(reversible_minutes=None),
        standing(),
        {},
        "reversible",
        "What cannot be undone is never automatic: people always decide.",
        None,
    ),
    "the catalogue": Case(
        ask(decided_by_people=True),
        standing(),
        {},
        "gate",
        "GPUs: people always decide.",
    ),
    "at least eight": Case(
        ask(8, least=8),
        standing(),
        {},
        "gpus",
        "Nothing of any size is automatic: even 8 for 24 hours is over a limit (8 GPUs; people decide above 2).",
        None,
    ),
    "not read often enough": Case(
        ask(),
        standing(held_gpus=2, held_since=NOW - DAY, use_samples=3),
        {"automatic_when_unmeasured": False},
        "use",
        "Nothing of any size is automatic while the use of what is held is not measured: it is, once it was read "
        "often enough.",
    ),
    "money of a team": Case(
        ask(),
        standing(
            recent_team_usd=Decimal(4_500),
            coming=(Coming(WEDNESDAY, team_usd=Decimal(2_000)),),
        ),
        {},
        "window_usd",
        "Nothing of any size is automatic before Wed 25 Nov, 12:00 UTC, when $2,000 granted to the team leave the "
        "window of 7 days.",
        WEDNESDAY,
    ),
    "a window that opens nobody knows when": Case(
        ask(2),
        standing(recent_team_gpus=6),
        {},
        "window",
        "Nothing of any size is automatic to the team: the limit without people within 7 days is 6 GPUs.",
    ),
    "a window of money that opens nobody knows when": Case(
        ask(),
        standing(recent_person_usd=Decimal(4_500)),
        {},
        "window_usd_person",
        "Nothing of any size is automatic to one person: the limit without people within 7 days is $4,500.",
    ),
    "GPU-hours that are spent": Case(
        ask(),
        standing(budget=budget(hours=(23, 900))),
        {},
        "budget_hours",
        "Nothing of any size is automatic while the budget of November has 23 GPU-hours left, until a platform lead "
        "raises it.",
    ),
    "GPUs that must stay free": Case(
        ask(),
        standing(free_gpus=4),
        {"keep_free_gpus": 4},
        "after",
        "Nothing of any size is automatic while 4 are free and 4 must stay so: no end that is known frees enough.",
    ),
    "nodes that are cordoned": Case(
        ask(),
        standing(free_gpus=0, cordoned_gpus=8),
        {},
        "free",
        "Nothing of any size is automatic while 0 are free, 8 are cordoned or not ready: no end that is known frees "
        "enough.",
    ),
    "a pool that is held back": Case(
        ask(),
        standing(free_gpus=0, held_back_gpus=8, held_back_by="the quota of East US"),
        {},
        "free",
        "Nothing of any size is automatic while 0 are free, the quota of East US stops others: no end that is known "
        "frees enough.",
    ),
    "what takes an hour to undo": Case(
        ask(reversible_minutes=60),
        standing(),
        {},
        "reversible",
        "What takes 60 minutes to undo is never automatic: people always decide.",
    ),
    "a pool of nothing": Case(
        ask(),
        standing(total_gpus=0, free_gpus=0),
        {},
        "exists",
        "Nothing of any size is automatic: the cluster has none of this kind.",
    ),
    "a quota of Azure": Case(
        ask(),
        standing(quota_left=0, quota_name="the subscription quota of A"),
        {},
        "quota",
        "Nothing of any size is automatic while 0 more fit the subscription quota of A: platform leads ask Azure for "
        "more, which takes days.",
    ),
    "a cost centre nobody has confirmed": Case(
        ask(),
        standing(unconfirmed_cost_centre="CC-9"),
        {},
        "cost_centre",
        "Nothing that costs is automatic until cost centre CC-9 is confirmed by its owner or a platform lead.",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_says_what_stands_in_the_way_of_an_ask_of_any_size(name: str) -> None:
    asked, known, numbers, code, sentence, at = CASES[name]
    found = remedies_of(asked, known, Policy(thresholds=Thresholds(**numbers)))  # type: ignore[arg-type]
    assert (code, sentence, at) in [
        (remedy.code, remedy.sentence, remedy.at) for remedy in found
    ]


def codes(asked: Ask, known: Standing) -> list[str]:
    """What the usual policy's remedies are about."""
    return [remedy.code for remedy in remedies_of(asked, known, Policy())]


def test_what_is_automatic_needs_no_remedy() -> None:
    assert remedies_of(ask(), standing(), Policy()) == ()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (ask(3), "Automatic for 2."),
        (ask(length=20 * DAY), "Automatic if it ends Fri 4 Dec, 12:00 UTC."),
        (
            ask(3, length=20 * DAY),
            "Automatic for 2 until Fri 4 Dec, 12:00 UTC.",
        ),
    ],
)
def test_the_nearest_ask_is_said_by_what_differs(asked: Ask, sentence: str) -> None:
    assert [each.sentence for each in remedies_of(asked, standing(), Policy())] == [
        sentence
    ]


def test_what_was_too_long_when_it_was_asked_is_automatic_asked_anew() -> None:
    asked = ask(length=10 * DAY, asked_at=NOW - 5 * DAY)
    found = remedies_of(asked, standing(), Policy())
    assert [(one.code, one.sentence) for one in found] == [
        ("ask_less", "Automatic if it is asked for anew.")
    ]


def test_what_waits_until_a_window_opens_is_asked_for_then() -> None:
    asked = ask(2, length=10 * DAY, asked_at=NOW - 5 * DAY)
    coming = (Coming(WEDNESDAY, team=6, person=0),)
    found = remedies_of(asked, standing(recent_team_gpus=6, coming=coming), Policy())
    assert ("wait", WEDNESDAY) in [(one.code, one.at) for one in found]


def test_waiting_for_all_of_it_is_said_beside_asking_for_less() -> None:
    known = standing(free_gpus=1, coming=(Coming(WEDNESDAY, free=1),))
    less, wait = remedies_of(ask(2), known, Policy())
    assert (less.code, less.count, less.at) == ("ask_less", 1, None)
    assert (wait.code, wait.count, wait.at) == ("wait", None, WEDNESDAY)
    assert (
        wait.sentence
        == "The same for as long is automatic from Wed 25 Nov, 12:00 UTC on."
    )


@pytest.mark.parametrize(("percent", "back"), [(12, 7), (45, 1)])
def test_idle_gpus_are_given_back_until_the_rest_is_used_enough(
    percent: int, back: int
) -> None:
    known = standing(held_gpus=8, use_percent=Decimal(percent))
    [remedy] = remedies_of(ask(), known, Policy())
    assert (remedy.code, remedy.count) == ("use", back)


def test_who_has_no_money_left_is_not_told_of_the_soft_stage_too() -> None:
    asked = ask(environment="production")
    assert codes(asked, standing(budget=SPENT)) == ["budget", "environment"]


def test_a_budget_that_two_months_lack_is_told_once() -> None:
    asked = ask(starts=datetime(2026, 11, 30, 12, tzinfo=UTC), length=12 * DAY)
    assert codes(asked, standing(budget={})) == ["budget"]


def test_a_budget_is_not_there_again_before_a_whole_day_lies_in_its_month() -> None:
    coming = (Coming(datetime(2026, 11, 30, 12, tzinfo=UTC), free=1),)
    asked = ask(environment="production")
    first, _ = remedies_of(asked, standing(budget=SPENT, coming=coming), Policy())
    assert first.at == datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("coming", "told"),
    [
        ((Coming(WEDNESDAY, team=4, person=4),), [("window", WEDNESDAY)]),
        (
            (Coming(WEDNESDAY, team=4), Coming(WEDNESDAY + DAY, person=4)),
            [("window", WEDNESDAY), ("window_person", WEDNESDAY + DAY)],
        ),
    ],
)
def test_windows_share_a_sentence_only_where_they_open_together(
    coming: tuple[Coming, ...], told: list[tuple[str, datetime]]
) -> None:
    known = standing(recent_team_gpus=6, recent_person_gpus=6, coming=coming)
    *windows, _ = remedies_of(ask(environment="production"), known, Policy())
    assert [(each.code, each.at) for each in windows] == told
    assert [each.sentence.count(" granted to ") for each in windows] == [
        2 // len(told)
    ] * len(told)


@pytest.mark.slow
@given(ASKS, STANDINGS, POLICIES | MILD, st.sampled_from((None, NOW - 9 * DAY)))
def test_there_is_always_a_remedy_unless_it_is_automatic(
    asked: Ask, known: Standing, policy: Policy, asked_at: datetime | None
) -> None:
    asked = replace(asked, asked_at=asked_at)
    automatic = evaluate(asked, known, policy).outcome is Outcome.AUTOMATIC
    assert bool(remedies_of(asked, known, policy)) != automatic


def sampled(scene: Scene, *, used: int, held: int, samples: int = 100) -> None:
    """What was read of the cluster up to now."""
    scene.tenancy.use_days.create(
        flavor=scene.flavor,
        day=START.date(),
        samples=samples,
        held_sum=samples * held,
        used_sum=samples * used,
        last_at=START,
    )


def test_the_second_ask_of_a_newcomer_is_automatic_though_nothing_runs_yet(
    scene: Scene,
) -> None:
    scene.ask(2)
    sampled(scene, used=0, held=2, samples=2)
    later = START + timedelta(minutes=2)
    assert submit(scene.wanted(1), by=scene.ada, now=later).state == "approved"


def test_giving_back_what_is_said_makes_the_next_ask_automatic(scene: Scene) -> None:
    in_force(scene, automatic_gpus=4, window_gpus_team=20, window_gpus_person=20)
    held = Allocation.objects.get(hold=scene.ask(4, days=5).hold_id)
    later = START + DAY
    sampled(scene, used=1, held=4)
    wanted = replace(scene.wanted(1, days=4))
    [remedy] = judge(wanted, person=scene.ada, now=later).remedies
    assert (remedy.code, remedy.count) == ("use", 2)
    give_back(held.pk, gpus=2, by=scene.ada, now=later)
    assert submit(wanted, by=scene.ada, now=later).state == "approved"


def test_a_renewal_goes_on_with_what_was_measured(scene: Scene) -> None:
    first = Allocation.objects.get(hold=scene.ask(2, days=3).hold_id)
    give_back(first.pk, gpus=1, by=scene.ada, now=START + HOUR)
    sampled(scene, used=0, held=1)
    judged = judge(scene.wanted(1, days=4), person=scene.ada, now=START + DAY)
    assert (judged.standing.held_since, judged.use_percent) == (START, Decimal(0))


def test_preview_store_and_mail_say_it_and_never_nothing(scene: Scene) -> None:
    Budget.objects.create(team=scene.team, month=NOVEMBER, limit_usd=10)
    Budget.objects.create(team=scene.team, month=DECEMBER, limit_usd=1_000)
    shown = preview_of(scene.wanted(1), by=scene.ada, now=START)
    assert shown["nearest_automatic"] is None
    remedy = shown["remedies"][-1]
    assert (remedy["code"], remedy["at"]) == ("budget", "2026-12-01T00:00:00+00:00")
    asked = scene.ask(1)
    [evaluation] = Request.objects.get(pk=asked.pk).evaluations.all()
    assert evaluation.remedies == shown["remedies"]
    notice = Notice.objects.filter(person=scene.priya).latest("id")
    assert dict(notice.said.facts)["Without people"] == shown["remedies"][0]["sentence"]
