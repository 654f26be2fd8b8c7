"""What people cannot grant either, or only later, is said to who asks and to who decides."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from allocations.models import Budget
from approvals.decisions import rerouting
from approvals.models import Request
from approvals.renewals import renewing
from approvals.requests.actions import submit
from fleet.models import Cluster, Flavor
from policy.document import LEADERSHIP, Policy, Route, StepPlan, Thresholds
from tests import factories
from tests.calling import Caller
from tests.scene import Scene

pytestmark = pytest.mark.django_db
RAISED = "Nobody can approve all of it before the budget is raised"
FOR_WHO_ASKS = "ask for less, or ask platform leads for more."


@pytest.fixture
def poor(scene: Scene) -> Scene:
    """A team with $100 for this month and the next."""
    first = timezone.now().date().replace(day=1)
    for month in (first, (first + timedelta(days=32)).replace(day=1)):
        Budget.objects.create(team=scene.team, month=month, limit_usd=Decimal(100))
    return scene


def page(person: Any, path: str, **form: str) -> str:
    client = Client()
    client.force_login(person)
    response = client.post(path, form) if form else client.get(path)
    assert response.status_code == 200
    return str(response.content.decode())


def test_who_asks_for_more_than_the_budget_has_is_told_what_to_do(poor: Scene) -> None:
    until = timezone.now() + timedelta(days=3)
    form = {
        "team": "vision",
        "flavor": "training/a100",
        "gpus": "5",
        "until": until.strftime("%Y-%m-%dT%H:%M"),
        "purpose": "training",
        "token": "one",
    }
    assert RAISED in page(poor.ada, "/requests/preview/gpus", **form)
    assert RAISED not in page(
        poor.ada, "/requests/preview/gpus", **form | {"gpus": "1"}
    )
    asked = factories.request(
        poor.ada, poor.tenancy, poor.flavor, gpus=5, days=3, now=timezone.now()
    )
    assert RAISED in page(poor.ada, f"/requests/{asked.pk}/")


def test_the_api_tells_whoever_asks_by_script_that_nobody_can_approve_it(
    poor: Scene,
) -> None:
    ada, until = Caller(poor.ada), timezone.now() + timedelta(days=3)
    ask = {
        "team": "vision",
        "flavor": "training/a100",
        "gpus": 5,
        "until": until.isoformat(),
        "purpose": "training",
        "reason": "Retrain the detector before the review.",
    }
    for gpus, words in ((5, f"{RAISED}: {FOR_WHO_ASKS}"), (1, "")):
        seen = ada.post("requests/preview/", ask | {"gpus": gpus}, key=None).json()
        assert seen["over_budget"] == words
    sent = ada.post("requests/", ask).json()
    assert sent["over_budget"] == f"{RAISED}: {FOR_WHO_ASKS}"


@pytest.mark.parametrize("what", ["kind", "cluster"])
def test_the_api_tells_that_what_is_asked_for_is_not_offered_any_more(
    scene: Scene, what: str
) -> None:
    asked = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=5, days=3, now=timezone.now()
    )
    ada = Caller(scene.ada)
    assert ada.get(f"requests/{asked.pk}/").json()["why_closed"] == ""
    if what == "kind":
        Flavor.objects.update(is_offered=False)
    else:
        Cluster.objects.update(enabled=False)
    said = ada.get(f"requests/{asked.pk}/").json()["why_closed"]
    assert (
        said
        == {
            "kind": "A100 on Training is not offered now.",
            "cluster": "Training takes no new requests now.",
        }[what]
    )
    assert said in page(scene.ada, f"/requests/{asked.pk}/")


def test_page_and_api_go_by_the_answer_of_the_policy_that_routed_it_anew(
    scene: Scene,
) -> None:
    now = timezone.now()
    asked = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=5, days=3, now=now
    )
    Budget.objects.update(limit_usd=Decimal(400))
    Flavor.objects.update(price_per_gpu_hour=10 * scene.flavor.price_per_gpu_hour)
    route = Route(name="all", steps=(StepPlan(by=LEADERSHIP.by, target_hours=5),))
    factories.policy(Policy(thresholds=Thresholds(), routes=(route,)), now=now)
    assert rerouting.sweep(now + timedelta(minutes=1)) == [asked.pk]
    assert RAISED in page(scene.ada, f"/requests/{asked.pk}/")
    seen = Caller(scene.ada).get(f"requests/{asked.pk}/").json()
    assert seen["over_budget"] == f"{RAISED}: {FOR_WHO_ASKS}"


def test_who_sets_budgets_is_told_to_approve_less_or_to_raise_it(poor: Scene) -> None:
    asked = factories.request(
        poor.ada, poor.tenancy, poor.flavor, gpus=5, days=3, now=timezone.now()
    )
    shown = page(poor.priya, f"/requests/{asked.pk}/")
    assert f"{RAISED}: approve less, or raise the team’s budget." in shown
    assert FOR_WHO_ASKS not in shown


def test_once_so_much_time_went_by_that_the_budget_has_the_money_a_vote_can_grant_it(
    poor: Scene,
) -> None:
    now = timezone.now()
    asked = factories.request(
        poor.ada, poor.tenancy, poor.flavor, gpus=5, days=3, now=now
    )
    assert RAISED in page(poor.ada, f"/requests/{asked.pk}/")
    Request.objects.filter(pk=asked.pk).update(until=now + timedelta(hours=10))
    assert RAISED not in page(poor.ada, f"/requests/{asked.pk}/")


def test_within_the_budget_there_is_nothing_to_do(scene: Scene) -> None:
    asked = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=5, days=3, now=timezone.now()
    )
    shown = page(scene.ada, f"/requests/{asked.pk}/")
    assert RAISED not in shown
    assert "Nothing to do; the answer appears here by itself." in shown


def test_who_decides_is_told_that_the_cluster_does_not_answer(scene: Scene) -> None:
    asked = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=5, days=3, now=timezone.now()
    )
    said = "does not answer. What is approved is made once it does"
    assert said not in page(scene.priya, f"/approvals/{asked.pk}/")
    cluster = scene.flavor.cluster
    type(cluster).objects.filter(pk=cluster.pk).update(reachable=False)
    assert said in page(scene.priya, f"/approvals/{asked.pk}/")


@pytest.mark.slow
def test_what_a_renewal_lets_go_of_counts_as_left(scene: Scene) -> None:
    now = timezone.now()
    first = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=2, days=3, now=now
    )
    months = [now.date().replace(day=1)]
    months.append((months[0] + timedelta(days=32)).replace(day=1))

    def limit(usd: int) -> None:
        for month in months:
            held = Budget.objects.get_or_create(
                team=scene.team, month=month, defaults={"limit_usd": Decimal(usd)}
            )[0]
            Budget.objects.filter(pk=held.pk).update(
                limit_usd=max(Decimal(usd), held.held_usd), is_set=True
            )

    limit(160)
    wanted = renewing.wanted(
        first, until=now + timedelta(days=9), reason="Go on a while, please.", now=now
    )
    renewal = submit(wanted, by=scene.ada, now=now)
    assert RAISED in page(scene.ada, f"/requests/{renewal.pk}/")
    limit(450)
    assert RAISED not in page(scene.ada, f"/requests/{renewal.pk}/")
