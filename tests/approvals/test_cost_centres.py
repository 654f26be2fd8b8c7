"""A cost centre that nobody answers for pays for nothing by itself."""

from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from accounts.cost_centres import actions
from accounts.cost_centres.models import CostCentre
from approvals.requests.actions import judge
from audit.models import Event
from policy.document import Thresholds
from policy.evaluation import Outcome
from tests import factories
from tests.calling import Caller
from tests.scene import NOW, Scene
from web.refusals import Conflict, NoRight

pytestmark = pytest.mark.django_db


@pytest.fixture
def code(scene: Scene) -> str:
    """The team's cost centre, which nobody has confirmed."""
    CostCentre.objects.filter(code=scene.team.cost_centre).update(confirmed_at=None)
    return scene.team.cost_centre


def test_until_it_is_confirmed_people_decide_and_are_told_why(
    scene: Scene, code: str
) -> None:
    judged = judge(scene.wanted(1), person=scene.ada, now=NOW)
    assert judged.answer.outcome is Outcome.PEOPLE
    (rule,) = [rule for rule in judged.answer.rules if not rule.holds]
    assert rule.text == f"$72 on cost centre {code}, which is not confirmed"
    assert (
        rule.limit
        == "people decide above $0 until its owner or a platform lead confirms it"
    )
    actions.confirm(code, by=scene.priya, now=NOW)
    assert (
        judge(scene.wanted(1), person=scene.ada, now=NOW).answer.outcome
        is Outcome.AUTOMATIC
    )


def test_one_that_stands_on_no_list_is_not_confirmed(scene: Scene) -> None:
    CostCentre.objects.all().delete()
    assert (
        judge(scene.wanted(1), person=scene.ada, now=NOW).answer.outcome
        is Outcome.PEOPLE
    )


def test_the_small_amount_that_the_policy_leaves_counts_what_was_granted(
    scene: Scene, code: str
) -> None:
    factories.policy(Thresholds(unconfirmed_usd=Decimal(100)), now=NOW)
    assert scene.ask(1).state == "approved"
    assert scene.ask(1).state == "waiting"


def test_its_owner_and_platform_leads_confirm_it_and_nobody_else(
    scene: Scene, code: str
) -> None:
    with pytest.raises(NoRight):
        actions.confirm(code, by=scene.ada, now=NOW)
    CostCentre.objects.filter(code=code).update(owner=scene.elena)
    actions.confirm(code, by=scene.elena, now=NOW)
    with pytest.raises(Conflict):
        actions.confirm(code, by=scene.priya, now=NOW)
    actions.withdraw(code, by=scene.priya, now=NOW)
    kinds = [
        event.kind
        for event in Event.objects.filter(subject_type="cost_centre").order_by("seq")
    ]
    assert kinds == ["cost_centre.confirmed", "cost_centre.withdrawn"]


def test_platform_leads_give_one_that_is_confirmed_to_somebody_else(
    scene: Scene, code: str
) -> None:
    actions.confirm(code, by=scene.priya, now=NOW, owner=scene.ada)
    actions.confirm(code, by=scene.priya, now=NOW, owner=scene.elena)
    found = CostCentre.objects.get(code=code)
    assert (found.owner, found.confirmed_by) == (scene.elena, scene.priya)
    event = Event.objects.latest("seq")
    assert (event.kind, event.details["owner"], event.details["owner_before"]) == (
        "cost_centre.owned",
        "Elena Petrova",
        "Ada Okafor",
    )
    with pytest.raises(Conflict):
        actions.confirm(code, by=scene.priya, now=NOW, owner=scene.elena)
    # An owner confirms their own, and gives it to nobody.
    with pytest.raises(Conflict):
        actions.confirm(code, by=scene.elena, now=NOW, owner=scene.mallory)
    assert CostCentre.objects.get(code=code).owner == scene.elena


def test_one_code_stands_on_the_list_once_whatever_its_letters(
    scene: Scene, code: str
) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        CostCentre.objects.create(code=code.lower(), created_at=NOW)
    with pytest.raises(IntegrityError), transaction.atomic():
        CostCentre.objects.filter(code=code).update(
            confirmed_at=None, confirmed_by=scene.priya
        )


def test_the_api_lists_confirms_and_takes_back(scene: Scene, code: str) -> None:
    priya, ada, mallory = Caller(scene.priya), Caller(scene.ada), Caller(scene.mallory)
    assert ada.get("cost-centres/").json()["results"][0]["confirmed_at"] is None
    assert mallory.get("cost-centres/").json()["results"] == []
    assert mallory.post(f"cost-centres/{code}/confirm/", {}).status_code == 404
    assert ada.post(f"cost-centres/{code}/confirm/", {}).status_code == 403
    assert priya.post(f"cost-centres/{code}/confirm/", {}).status_code == 200
    assert priya.post(f"cost-centres/{code}/withdraw/", {}).status_code == 200
    made = priya.post(
        "cost-centres/", {"code": "CC-777", "owner": str(scene.elena.oid)}
    )
    assert (made.status_code, made.json()["owner"]["name"]) == (201, "Elena Petrova")
    assert priya.post("cost-centres/", {"code": "CC 8"}).status_code == 422
    assert priya.post("cost-centres/", {"code": "CC-9", "more": 1}).status_code == 422
    assert ada.post("cost-centres/", {"code": "CC-778"}).status_code == 403


def test_the_api_answers_a_call_that_is_repeated_with_its_key_as_it_did_first(
    scene: Scene, code: str
) -> None:
    priya = Caller(scene.priya)
    calls: tuple[tuple[str, dict[str, str], int], ...] = (
        ("cost-centres/", {"code": "CC-9"}, 201),
        (f"cost-centres/{code}/confirm/", {}, 200),
        (f"cost-centres/{code}/withdraw/", {}, 200),
    )
    for path, body, status in calls:
        refused = priya.post(path, body, key=None)
        assert refused.json()["code"] == "idempotency_key_missing", path
        first, again = (priya.post(path, body, key="one") for _ in range(2))
        assert (first.status_code, again.status_code) == (status, status), path
        assert again.json() == first.json()
        assert again["Idempotency-Replayed"] == "true"


def test_the_page_shows_them_and_a_platform_lead_confirms(
    scene: Scene, code: str
) -> None:
    page = Client()
    page.force_login(scene.priya)
    assert "Not confirmed" in page.get("/cost-centres/").content.decode()
    assert page.post(f"/cost-centres/{code}/confirm").status_code == 302
    assert CostCentre.objects.get(code=code).confirmed_by == scene.priya
    assert page.post("/cost-centres/", {"code": "CC-5", "owner": ""}).status_code == 302
    assert page.post("/cost-centres/", {"code": "CC 5", "owner": ""}).status_code == 422
    assert page.post(f"/cost-centres/{code}/withdraw").status_code == 302
    stranger = Client()
    stranger.force_login(scene.mallory)
    assert code not in stranger.get("/cost-centres/").content.decode()
    assert stranger.post(f"/cost-centres/{code}/confirm").status_code == 404
