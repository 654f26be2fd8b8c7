"""One function judges: what is previewed is what is stored, can be derived again, and the nearest ask is automatic."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from allocations.models import Budget
from approvals.judging.inputs import answer_of, derive, hash_of, inputs_of, policy_of
from approvals.models import Evaluation
from approvals.requests.actions import submit
from approvals.requests.preview import preview_of
from approvals.requests.wanted import Wanted, resolve
from catalogue.models import OfferingSetting
from catalogue.offering import Gate
from catalogue.offerings import OFFERINGS
from fleet.models import Flavor
from policy.document import Policy
from policy.evaluation import Outcome, evaluate, nearest_automatic
from policy.models import PolicyVersion
from policy.rules import Ask, Standing
from tests import factories
from tests.approvals.asks import ASKS, MILD, POLICIES, STANDINGS
from tests.approvals.offerings import SPECS, another_cluster
from tests.scene import NOW, Scene
from web.refusals import BadInput

pytestmark = pytest.mark.slow

EXAMPLES, EACH = 500, 20
VERSION = PolicyVersion(number=1)


# 500 policies and standings with twenty asks each are 10,000 asks; drawing 10,000 policies would take minutes.
@settings(max_examples=EXAMPLES)
@given(st.lists(ASKS, min_size=EACH, max_size=EACH), STANDINGS, POLICIES | MILD)
def test_the_stored_answer_of_ten_thousand_asks_is_the_one_that_was_shown(
    asks: list[Ask], known: Standing, policy: Policy
) -> None:
    for asked in asks:
        shown = evaluate(asked, known, policy)
        inputs, digest = inputs_of(asked, known, VERSION)
        stored = json.loads(json.dumps(inputs))
        assert hash_of(stored) == digest
        assert answer_of(derive(stored, policy)) == answer_of(shown)
        nearest = nearest_automatic(asked, known, policy)
        if nearest is not None:
            assert shown.outcome is not Outcome.AUTOMATIC
            assert evaluate(nearest, known, policy).outcome is Outcome.AUTOMATIC
            assert nearest.count <= asked.count
            assert known.now < nearest.until <= asked.until


def wanted(scene: Scene, key: str, count: int, until: datetime) -> Wanted:
    """An offering in a number that its spec takes."""
    spec, counted = dict(SPECS[key]), OFFERINGS[key].spec.counted
    if counted:
        spec[counted] = max(count, OFFERINGS[key].spec.least())
    return resolve(
        key,
        spec,
        team=scene.team,
        until=until,
        reason="As large as the dice say that it is.",
    )


@contextmanager
def undone() -> Iterator[None]:
    """A transaction of which nothing stays."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def stored(asked: Wanted, by: User) -> Evaluation | None:
    """What is kept of the answer when it is sent; None when it is refused as impossible."""
    try:
        request = submit(asked, by=by, now=NOW)
    except BadInput as refused:
        if refused.code.startswith("impossible_"):
            return None
        raise
    return Evaluation.objects.select_related("policy", "request").get(request=request)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    key=st.sampled_from(list(SPECS)),
    count=st.integers(1, 8),
    hours=st.integers(1, 100 * 24) | st.integers(1, 14 * 24),
    taken=st.integers(0, 22),
    money=st.integers(0, 6_000),
    before=st.integers(0, 2),
    gate=st.sampled_from([Gate.SELF_SERVICE] * 3 + [Gate.APPROVAL]),
    policy=MILD,
)
def test_what_is_sent_is_stored_as_it_was_shown_and_the_nearest_is_automatic(
    scene: Scene,
    key: str,
    count: int,
    hours: int,
    taken: int,
    money: int,
    before: int,
    gate: Gate,
    policy: Policy,
) -> None:
    with undone():
        another_cluster()
        if before:
            scene.ask(before, days=1)
        factories.policy(policy, now=NOW)
        OfferingSetting.objects.create(key=key, gate=gate, position=0)
        Flavor.objects.update(allocated=taken)
        Budget.objects.update_or_create(
            team=scene.team,
            month=NOW.date().replace(day=1),
            defaults={"limit_usd": money + 48},
        )
        asked = wanted(scene, key, count, NOW + timedelta(hours=hours))
        shown = preview_of(asked, by=scene.ada, now=NOW)
        with undone():
            kept = stored(asked, scene.ada)
            assert (kept is None) == (shown["answer"]["outcome"] == "impossible")
            if kept is not None:
                assert kept.answer == shown["answer"]
                assert hash_of(kept.inputs) == kept.input_hash
                assert (
                    answer_of(derive(kept.inputs, policy_of(kept.policy)))
                    == kept.answer
                )
                assert (kept.request.state == "approved") == (
                    kept.outcome == Outcome.AUTOMATIC
                )
        nearest = shown["nearest_automatic"]
        if nearest is not None:
            again = wanted(scene, key, nearest["count"], nearest["until"])
            assert again.count == nearest["count"]
            assert submit(again, by=scene.ada, now=NOW).state == "approved"
