"""An ask that people decide always says what would make it automatic, and what it says is so."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import pytest
from hypothesis import given

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
SPENT = {**budget(), NOVEMBER: budget(0, 4_000)[NOVEMBER]}
CLOSE = {**budget(), NOVEMBER: budget(100, 4_000)[NOVEMBER]}


class Case(NamedTuple):
    """An ask nothing of whose kind is automatic, and what is said of it."""

    ask: Ask
    known: Standing
    numbers: Mapping[str, object]
    sentence: str
    at: datetime | None = None


CASES: Mapping[str, Case] = {
    "use": Case(
        ask(16),
        standing(**IDLE),
        {},
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
        (
            "Nothing of any size is automatic while 45 % of the 8 GPUs held are in use (from 50 % on): give back 1, "
            "or use them first."
        ),
    ),
    "not measured": Case(
        ask(),
        standing(held_gpus=2, held_since=NOW - HOUR),
        {"automatic_when_unmeasured": False},
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
        (
            "Nothing of any size is automatic while the budget of November has $0 left, until a platform lead "
            "raises it. "
            "It is from Tue 1 Dec, 00:00 UTC on, when the budget of December begins."
        ),
        datetime(2026, 12, 1, tzinfo=UTC),
    ),
    "a budget past its soft stage": Case(
        ask(),
        standing(budget=CLOSE),
        {},
        "Nothing of any size is automatic while more than 80 % of the budget of November is set aside, until a "
        "platform lead raises it. It is from Tue 1 Dec, 00:00 UTC on, when the budget of December begins.",
        datetime(2026, 12, 1, tzinfo=UTC),
    ),
    "none free": Case(
        ask(),
        standing(free_gpus=0, coming=(Coming(WEDNESDAY, free=8),)),
        {},
        "Nothing of any size is automatic before Wed 25 Nov, 12:00 UTC, when GPUs come back: 0 are free.",
        WEDNESDAY,
    ),
    "none free for long": Case(
        ask(),
        standing(free_gpus=0),
        {},
        "Nothing of any size is automatic while 0 are free: no end that is known frees enough.",
        None,
    ),
    "an environment": Case(
        ask(environment="production"),
        standing(),
        {},
        "Nothing of any size is automatic in production: people always decide there.",
        None,
    ),
    "what cannot be undone": Case(
        ask(reversible_minutes=None),
        standing(),
        {},
        "Nothing of any size is automatic that cannot be undone: people always decide it.",
        None,
    ),
    "the catalogue": Case(
        ask(decided_by_people=True), standing(), {}, "People always decide GPUs."
    ),
    "at least eight": Case(
        ask(8, least=8),
        standing(),
        {},
        "Nothing of any size is automatic: even 8 for 24 hours is over a limit (8 GPUs; people decide above 2).",
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_says_what_stands_in_the_way_of_an_ask_of_any_size(name: str) -> None:
    asked, known, numbers, sentence, at = CASES[name]
    found = remedies_of(asked, known, Policy(thresholds=Thresholds(**numbers)))  # type: ignore[arg-type]
    assert (sentence, at) in [(remedy.sentence, remedy.at) for remedy in found]


def test_a_smaller_ask_that_is_automatic_comes_first() -> None:
    [remedy] = remedies_of(ask(6), standing(), Policy())
    assert (remedy.code, remedy.count, remedy.sentence) == (
        "ask_less",
        2,
        "Automatic if you ask for 2.",
    )


@given(ASKS, STANDINGS, POLICIES | MILD)
def test_there_is_always_a_remedy_unless_it_is_automatic(
    asked: Ask, known: Standing, policy: Policy
) -> None:
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
