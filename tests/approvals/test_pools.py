"""A pool without a node is asked for like any other, and whoever asks is told how long growing takes."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from allocations.models import Allocation
from approvals.judging.reevaluation import sweep
from approvals.models import Request
from approvals.states import State
from fleet.models import Flavor
from policy.document import Policy
from policy.evaluation import evaluate
from policy.remedies import remedies_of
from policy.rules import Ask, Standing
from tests import factories
from tests.approvals.asks import ASKS, POLICIES, STANDINGS, ask, standing
from tests.calling import Caller
from tests.scene import NOW, Scene, scene
from web.refusals import BadInput

OF_NONE = re.compile(r"\b[0-9]+ of (the )?0\b(?! left)|-[0-9]+ (free|can)")
POLICY = Policy()


def words(known: Standing, count: int = 1) -> tuple[str, str]:
    """The sentence, and what the rule about free GPUs says."""
    answer = evaluate(ask(count), known, POLICY)
    return answer.sentence, next(
        rule.text for rule in answer.rules if rule.code == "free"
    )


def test_a_pool_at_zero_is_automatic_and_says_that_it_grows_and_how_long() -> None:
    known = standing(free_gpus=8, total_gpus=8, ready_gpus=0, growing_minutes=6)
    sentence, text = words(known)
    grows = "the pool grows to 8, usually within 6 minutes"
    assert sentence == f"Automatic. Yours in about 5 seconds. 0 ready now: {grows}."
    assert text == f"8 can be had, 0 ready now: {grows}"


def test_what_stands_ready_is_said_as_anywhere() -> None:
    known = standing(free_gpus=8, total_gpus=8, ready_gpus=2, growing_minutes=6)
    assert words(known)[0] == "Automatic. Yours in about 5 seconds."
    assert words(standing(free_gpus=2, total_gpus=8, ready_gpus=2))[1] == "2 free now"


def test_where_nobody_said_how_long_nothing_is_made_up() -> None:
    sentence, _ = words(standing(free_gpus=8, total_gpus=8, ready_gpus=0))
    assert sentence.endswith("0 ready now: the pool grows to 8.")


def test_a_cordoned_pool_is_not_free_and_people_decide_instead_of_nobody() -> None:
    known = standing(free_gpus=0, total_gpus=4, cordoned_gpus=4)
    sentence, text = words(known)
    assert text == "0 free now, 4 cordoned or not ready"
    assert "decide" in sentence
    assert (
        "4 are cordoned or not ready" in remedies_of(ask(1), known, POLICY)[0].sentence
    )


FAMILY = "the subscription quota of standardNCADSA100v4Family"


def test_what_azure_holds_back_waits_for_people_and_names_the_link() -> None:
    known = standing(
        free_gpus=8,
        total_gpus=40,
        ready_gpus=8,
        growing_minutes=6,
        held_back_gpus=24,
        held_back_by=FAMILY,
    )
    assert words(known, 1)[0] == "Automatic. Yours in about 5 seconds."
    sentence, text = words(known, 12)
    assert "decide" in sentence
    assert text == f"8 free now: {FAMILY} stops it there"
    assert "not possible" not in sentence


def test_a_pool_that_grows_as_far_as_azure_lets_it_says_what_stops_it() -> None:
    known = standing(
        free_gpus=16,
        total_gpus=40,
        ready_gpus=0,
        growing_minutes=6,
        held_back_gpus=24,
        held_back_by=FAMILY,
    )
    grows = f"the pool grows to 16, where {FAMILY} stops it, usually within 6 minutes"
    assert words(known, 2)[1] == f"16 can be had, 0 ready now: {grows}"


def test_where_there_is_none_at_all_the_words_say_so() -> None:
    sentence, _ = words(standing(free_gpus=0, total_gpus=0))
    assert (
        sentence
        == "Not possible as it stands: the cluster has none of this kind now; this asks for 1."
    )


@pytest.mark.slow
@given(asked=ASKS, known=STANDINGS, total=st.integers(0, 8), policy=POLICIES)
def test_no_words_ever_count_something_of_nothing(
    asked: Ask, known: Standing, total: int, policy: Policy
) -> None:
    known = replace(known, free_gpus=min(known.free_gpus or 0, total), total_gpus=total)
    answer = evaluate(asked, known, policy)
    pool = [rule for rule in answer.rules if rule.code in ("exists", "free", "after")]
    said = [
        answer.sentence,
        *(rule.text for rule in pool),
        *(rule.limit for rule in pool),
    ]
    said += [
        remedy.sentence
        for remedy in remedies_of(asked, known, policy)
        if remedy.code in ("exists", "free")
    ]
    assert not [one for one in said if OF_NONE.search(one)]


@pytest.fixture
def at_zero(db: None) -> Scene:
    """The scene's A100s have no node now, and grow to three nodes of eight."""
    found = scene()
    Flavor.objects.update(gpus_ready=0, gpus_total=24, max_nodes=3, growing_minutes=6)
    return found


def test_it_is_granted_by_the_policy_as_far_as_the_pool_grows(at_zero: Scene) -> None:
    granted = at_zero.ask(2)
    assert (granted.state, Allocation.objects.get().gpus) == (State.APPROVED, 2)
    assert "24 can be had, 0 ready now" in str(granted.evaluations.get().answer)
    with pytest.raises(BadInput, match="the cluster has 24; this asks for 25"):
        at_zero.ask(25)


def test_two_asks_never_take_more_than_the_pool_can_grow_to(at_zero: Scene) -> None:
    Flavor.objects.update(max_nodes=1, gpus_total=8, allocated=7)
    assert at_zero.ask(2).state == State.WAITING
    assert Flavor.objects.get().free == 1


def test_what_waits_is_granted_when_a_lead_says_that_the_pool_grows(
    at_zero: Scene,
) -> None:
    Flavor.objects.update(max_nodes=0, gpus_total=8, gpus_ready=8, allocated=8)
    waits = at_zero.ask(1)
    assert waits.state == State.WAITING
    Flavor.objects.update(max_nodes=3, gpus_total=24)
    sweep(NOW + timedelta(minutes=1))
    assert Request.objects.get(pk=waits.pk).state == State.APPROVED


@pytest.mark.slow
def test_who_decides_reads_that_the_pool_has_to_grow(
    at_zero: Scene, client: Client
) -> None:
    waits = factories.request(at_zero.ada, at_zero.tenancy, at_zero.flavor, gpus=4)
    client.force_login(at_zero.priya)
    page = client.get(f"/approvals/{waits.pk}/").content.decode()
    assert "20 of 24 stay free once the pool has grown</strong>." in page
    assert "24 can be had" in page
    assert "It fits once the pool has grown." in page
    Flavor.objects.update(gpus_ready=24)
    page = client.get(f"/approvals/{waits.pk}/").content.decode()
    assert "20 of 24 stay free" in page
    assert "once the pool has grown" not in page
    assert "24 free" in page
    assert "It fits now." in page


def test_form_options_and_preview_say_it(at_zero: Scene, client: Client) -> None:
    client.force_login(at_zero.ada)
    assert "24 can be had, 0 ready now" in client.get("/requests/new").content.decode()
    caller, key = (
        Caller(at_zero.ada),
        f"{at_zero.flavor.cluster.name}/{at_zero.flavor.name}",
    )
    options = caller.get(f"offerings/gpus/options/?team={at_zero.team.slug}").json()
    assert "24 can be had, 0 ready now" in options["choices"]["flavor"][0]["label"]
    body = {"team": at_zero.team.slug, "flavor": key, "gpus": 1, "purpose": "training"}
    until = {"until": (timezone.now() + timedelta(days=3)).isoformat()}
    said = caller.post("requests/preview/", body | until).json()["answer"]
    assert (
        "24 can be had, 0 ready now: the pool grows to 24, usually within 6 minutes"
        in str(said["rules"])
    )
