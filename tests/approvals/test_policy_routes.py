"""Who decides: the first route that takes an ask, with seats as people hold them."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import User
from approvals.decisions.actions import approve
from approvals.decisions.routing import seat_of
from approvals.models import Request, Step
from approvals.requests.actions import submit
from policy.document import (
    LEADERSHIP,
    LEADS,
    Policy,
    Route,
    StepPlan,
    Thresholds,
    Where,
    policy_from,
)
from policy.evaluation import evaluate
from tests import factories
from tests.approvals.asks import DAY, GROUP, ask, standing
from tests.scene import NOW, Scene
from web.refusals import NoRight

MANAGER, SECOND_LEVEL = StepPlan(by="managers"), StepPlan(by="managers", level=2)
BOARD = StepPlan(by=GROUP, name="the security board", quorum=2)
LAST = Route(name="ordinary", steps=(LEADS,))


def taken(policy: Policy, **asked: Any) -> list[str]:
    """Who decides an ask that the policy does not approve."""
    answer = evaluate(ask(**({"decided_by_people": True} | asked)), standing(), policy)
    return [step.by for step in answer.route]


def routes(*first: Route) -> Policy:
    """A policy with these routes before the one that takes the rest."""
    return Policy(routes=(*first, LAST))


def test_the_first_route_that_takes_an_ask_is_its_route() -> None:
    production = Route(
        name="a", where=Where(environments=("production",)), steps=(BOARD,)
    )
    large = Route(name="b", gpus_from=8, steps=(LEADS, LEADERSHIP))
    policy = routes(production, large)
    assert taken(policy, count=16, environment="production") == [GROUP]
    assert taken(policy, count=16) == ["platform_leads", "engineering_leadership"]
    assert taken(policy, count=7) == ["platform_leads"]
    assert taken(routes(large, production), count=16, environment="production") == [
        "platform_leads",
        "engineering_leadership",
    ]


def test_everything_that_is_said_of_where_must_be_so() -> None:
    narrow = Where(
        offerings=("notebook", "gpus"),
        environments=("dev",),
        flavors=("a100",),
        tiers=("trusted",),
    )
    policy = routes(Route(name="a", where=narrow, steps=(BOARD,)))
    right = {
        "offering": "notebook",
        "environment": "dev",
        "flavor": "a100",
        "tier": "trusted",
    }
    assert taken(policy, **right) == [GROUP]
    for name, other in (
        ("offering", "volume"),
        ("environment", ""),
        ("flavor", "t4"),
        ("tier", "standard"),
    ):
        assert taken(policy, **(right | {name: other})) == ["platform_leads"], name


@pytest.mark.parametrize(
    ("gpus_from", "usd_from", "large"),
    [
        (8, None, True),
        (9, None, False),
        (None, Decimal("192.00"), True),
        (None, Decimal("192.01"), False),
        (9, Decimal(192), True),
        (8, Decimal(9_999), True),
        (9, Decimal(9_999), False),
        (None, None, True),
    ],
)
def test_one_of_its_sizes_is_enough_and_is_reached_exactly(
    gpus_from: int | None, usd_from: Decimal | None, large: bool
) -> None:
    policy = routes(
        Route(name="large", gpus_from=gpus_from, usd_from=usd_from, steps=(LEADERSHIP,))
    )
    assert taken(
        policy,
        count=4,
        gpus_each=2,
        length=timedelta(days=1),
        usd_per_hour_each=Decimal(2),
    ) == ["engineering_leadership" if large else "platform_leads"]


def test_what_is_automatic_has_no_route() -> None:
    assert (
        evaluate(
            ask(), standing(), routes(Route(name="x", gpus_from=0, steps=(LEADS,)))
        ).route
        == ()
    )


def test_an_override_is_for_its_asks_and_the_last_one_wins() -> None:
    said = [
        {
            "where": {"tiers": ["trusted"]},
            "set": {"automatic_gpus": 4, "automatic_days": 30},
        },
        {
            "where": {"tiers": ["trusted"], "flavors": ["a100"]},
            "set": {"automatic_gpus": 3},
        },
    ]
    policy = policy_from({"overrides": said})
    assert policy.thresholds_for("gpus", "dev", "a100", "standard") == Thresholds()
    assert policy.thresholds_for("gpus", "dev", "t4", "trusted").automatic_gpus == 4
    both = policy.thresholds_for("gpus", "dev", "a100", "trusted")
    assert (both.automatic_gpus, both.automatic_days) == (3, 30)


def asked(scene: Scene, *steps: StepPlan, gpus: int = 4) -> Request:
    """Ada asks while the policy sends everything to these steps."""
    factories.policy(Policy(routes=(Route(name="all", steps=steps),)), now=NOW - DAY)
    return submit(scene.wanted(gpus), by=scene.ada, now=NOW)


def with_managers(scene: Scene, *chain: User) -> None:
    """Whom Ada reports to, the nearest first."""
    User.objects.filter(pk=scene.ada.pk).update(
        managers=[str(each.oid) for each in chain]
    )
    scene.ada.refresh_from_db()


def test_a_manager_decides_and_nobody_else_of_that_level(scene: Scene) -> None:
    chloe, tomas = factories.person("Chloe Lindqvist"), factories.person("Tomas Reyes")
    with_managers(scene, chloe, tomas)
    request = asked(scene, MANAGER, SECOND_LEVEL)
    assert [(step.seat, step.label) for step in request.steps.all()] == [
        (f"person:{chloe.oid}", "Chloe Lindqvist, manager"),
        (f"person:{tomas.oid}", "Tomas Reyes, manager"),
    ]
    for other in (tomas, scene.priya, scene.mallory):
        with pytest.raises(NoRight):
            approve(request.pk, by=other, expected_version=1, now=NOW)
    assert list(Request.objects.awaiting(chloe, NOW)) == [request]
    approve(request.pk, by=chloe, expected_version=1, now=NOW)
    assert (
        approve(request.pk, by=tomas, expected_version=2, now=NOW).state == "approved"
    )


def test_platform_leads_decide_where_no_manager_is_known(scene: Scene) -> None:
    with_managers(scene, factories.person("Chloe Lindqvist"))
    assert seat_of(SECOND_LEVEL, scene.ada) == (
        "platform_leads",
        "platform leads (no manager is known)",
    )
    request = asked(scene, SECOND_LEVEL)
    assert (
        approve(request.pk, by=scene.priya, expected_version=1, now=NOW).state
        == "approved"
    )


def test_a_manager_who_never_signed_in_is_named_as_such(scene: Scene) -> None:
    User.objects.filter(pk=scene.ada.pk).update(managers=[str(factories.oid(4711))])
    scene.ada.refresh_from_db()
    assert seat_of(MANAGER, scene.ada) == (
        f"person:{factories.oid(4711)}",
        "the requester’s manager",
    )


def test_a_group_decides_with_as_many_as_its_quorum_says(scene: Scene) -> None:
    oid = GROUP.removeprefix("group:")
    first, second = (factories.person(groups=[oid]) for _ in range(2))
    request = asked(scene, BOARD)
    half = approve(request.pk, by=first, expected_version=1, now=NOW)
    assert (half.state, half.version) == ("waiting", 2)
    assert list(Request.objects.awaiting(first, NOW)) == []
    assert list(Request.objects.awaiting(second, NOW)) == [request]
    with pytest.raises(NoRight):
        approve(request.pk, by=scene.priya, expected_version=2, now=NOW)
    assert (
        approve(request.pk, by=second, expected_version=2, now=NOW).state == "approved"
    )


def test_who_left_the_group_decides_no_more(scene: Scene) -> None:
    member = factories.person(groups=[GROUP.removeprefix("group:")])
    request = asked(scene, BOARD)
    member.groups_held.all().delete()
    with pytest.raises(NoRight) as refused:
        approve(request.pk, by=member, expected_version=1, now=NOW)
    assert refused.value.message == "This step is for the security board."


MOMENTS: dict[str, Callable[[Step], Any]] = {
    "remind_at": lambda step: step.remind_at,
    "due_at": lambda step: step.due_at,
    "escalate_at": lambda step: step.escalate_at,
}


def test_a_step_that_opens_has_its_dates_and_the_next_one_has_none_yet(
    scene: Scene,
) -> None:
    first, second = asked(scene, LEADS, LEADERSHIP, gpus=9).steps.order_by("position")
    assert [read(first) for read in MOMENTS.values()] == [
        NOW + timedelta(hours=h) for h in (8, 24, 48)
    ]
    assert [read(second) for read in MOMENTS.values()] == [None] * 3
    assert (first.escalate_to, second.opened_at) == ("engineering_leadership", None)
