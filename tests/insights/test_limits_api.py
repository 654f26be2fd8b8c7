"""Limits, requests for more of them and subscriptions over the API."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import ApiToken
from accounts.roles import Role
from capacity.increases import actions
from capacity.increases.actions import Ask
from capacity.models import Meter, QuotaIncrease, Subscription
from connectors.azure.rights import NEEDED
from tests import factories
from tests.calling import Caller
from tests.insights.fleet import (
    FAMILY,
    SUBSCRIPTION,
    VCPUS,
    Site,
    connect,
    meter,
    read_for_weeks,
    site,
)
from tests.scene import scene

pytestmark = pytest.mark.django_db
MAX_QUERIES = 6
BODY = {"limit": 24 * VCPUS, "reason": "Vision trains from January on."}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Site:
    connect(monkeypatch)
    return site(scene())


@pytest.fixture
def lead(here: Site) -> Caller:
    return Caller(here.scene.priya)


def increases(here: Site) -> str:
    return f"limits/{here.meter().pk}/increases/"


def test_limits_are_listed_with_how_near_they_are(here: Site) -> None:
    Meter.objects.filter(pk=here.meter().pk).update(used=10 * VCPUS)
    told = Caller(here.scene.ada).get("limits/").json()["results"]
    assert [(one["title"], one["percent"], one["stage"]) for one in told] == [
        ("Standard NCADSA100v4 Family vCPUs in eastus", 83, 80),
        ("Total Regional vCPUs in eastus", 10, 0),
    ]


def test_a_limit_has_its_readings_its_forecast_and_what_was_asked(
    here: Site, lead: Caller
) -> None:
    caller, one = Caller(here.scene.ada), here.meter()
    told = caller.get(f"limits/{one.pk}/").json()
    assert (told["readings"], told["forecast"], told["increases"]) == ([], None, [])
    Meter.objects.filter(pk=one.pk).update(used=10 * VCPUS)
    read_for_weeks(here.meter(), weeks=10, per_week=VCPUS, now=timezone.now())
    lead.post(increases(here), BODY)
    told = caller.get(f"limits/{one.pk}/").json()
    assert len(told["readings"]) == 10
    assert round(told["forecast"]["per_week"]) == VCPUS
    assert told["forecast"]["crosses_at"] is not None
    assert [row["limit"] for row in told["increases"]] == [24 * VCPUS]
    assert caller.get("limits/999999/").status_code == 404


def test_a_lead_asks_once_however_often_the_call_arrives(
    here: Site, lead: Caller
) -> None:
    made = lead.post(increases(here), BODY, key="once")
    assert made.status_code == 201, made.content
    told = made.json()
    assert (told["family"], told["limit_before"], told["limit"], told["state"]) == (
        FAMILY,
        12 * VCPUS,
        24 * VCPUS,
        "new",
    )
    assert (told["asked_by"], told["sentence"]) == (
        "Priya Raman",
        "The portal sends it now.",
    )
    assert made.headers["Location"] == f"/api/v1/quota-increases/{told['id']}/"
    again = lead.post(increases(here), BODY, key="once")
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (told, "true")
    assert lead.post(increases(here), BODY).json()["id"] == told["id"]
    assert QuotaIncrease.objects.count() == 1
    assert lead.get(made.headers["Location"]).json() == told


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({**BODY, "limit": 12 * VCPUS}, "/limit"),
        ({**BODY, "limit": 0}, "/limit"),
        ({**BODY, "limit": -1}, "/limit"),
        ({**BODY, "limit": "2304"}, "/limit"),
        ({**BODY, "limit": 2304.5}, "/limit"),
        ({**BODY, "limit": 10**12}, "/limit"),
        ({**BODY, "reason": "   "}, "/reason"),
        ({**BODY, "reason": "x" * 1001}, "/reason"),
        ({"limit": 2304}, "/reason"),
        ({**BODY, "gpus": 8}, "/gpus"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_its_field(
    here: Site, lead: Caller, body: dict[str, object], pointer: str
) -> None:
    answer = lead.post(increases(here), body)
    assert answer.status_code == 422, answer.content
    assert [one["pointer"] for one in answer.json()["errors"]] == [pointer]
    assert not QuotaIncrease.objects.exists()


def test_conflicts_say_what_is_in_the_way(
    here: Site, lead: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Meter.objects.create(
        key="pool:x/y",
        title="Pool",
        unit="nodes",
        limit=12,
        used=2,
        seen_at=timezone.now(),
    )
    assert (
        lead.post(f"limits/{pool.pk}/increases/", BODY).json()["code"] == "not_a_quota"
    )
    lead.post(increases(here), BODY)
    other = lead.post(increases(here), {**BODY, "limit": 4800})
    assert (other.status_code, other.json()["code"]) == (409, "increase_open")
    monkeypatch.setattr("capacity.connection.settings.ENV.azure_subscription_id", "")
    assert lead.post(increases(here), BODY).json()["code"] == "not_connected"


def test_others_ask_nothing(here: Site) -> None:
    assert Caller().post(increases(here), BODY).status_code == 401
    for person in (here.scene.ada, here.scene.elena):
        assert Caller(person).post(increases(here), BODY).status_code == 403
    reading = Caller(here.scene.priya, ApiToken.Scope.READ)
    assert reading.post(increases(here), BODY).status_code == 403
    assert (
        Caller(here.scene.priya).post("limits/999999/increases/", BODY).status_code
        == 404
    )
    assert (
        Caller(here.scene.priya).post(increases(here), BODY, key=None).status_code
        == 400
    )
    assert not QuotaIncrease.objects.exists()


def test_requests_are_listed_the_newest_first_and_by_state(
    here: Site, lead: Caller
) -> None:
    first = lead.post(increases(here), BODY).json()["id"]
    withdrawn = lead.post(f"quota-increases/{first}/withdraw/").json()
    assert (
        withdrawn["state"],
        withdrawn["sentence"].startswith("It was withdrawn on"),
    ) == (
        "withdrawn",
        True,
    )
    second = lead.post(increases(here), BODY).json()["id"]
    listed = Caller(here.scene.ada).get("quota-increases/").json()["results"]
    assert [one["id"] for one in listed] == [second, first]
    open_ones = lead.get("quota-increases/?state=new").json()["results"]
    assert [one["id"] for one in open_ones] == [second]
    assert lead.get("quota-increases/?state=lost").status_code == 400
    assert (
        Caller(here.scene.ada).post(f"quota-increases/{second}/withdraw/").status_code
        == 403
    )
    assert lead.post("quota-increases/999999/withdraw/").status_code == 404


def test_one_that_azure_has_is_not_withdrawn(here: Site, lead: Caller) -> None:
    made = lead.post(increases(here), BODY).json()["id"]
    QuotaIncrease.objects.update(state="sent", azure_id="a", sent_at=timezone.now())
    answer = lead.post(f"quota-increases/{made}/withdraw/")
    assert (answer.status_code, answer.json()["code"]) == (409, "increase_sent")


def test_subscriptions_tell_leads_and_auditors_what_the_portal_may_do(
    here: Site, lead: Caller
) -> None:
    now = timezone.now()
    [told] = lead.get("subscriptions/").json()["results"]
    assert (told["id"], told["reachable"], told["rights"]) == (SUBSCRIPTION, True, None)
    lacking = {"ask for more quota": ["Microsoft.Quota/quotas/write"]}
    Subscription.objects.update(missing_rights=lacking, rights_checked_at=now)
    auditor = Caller(factories.person("Olga", Role.AUDITOR))
    [told] = auditor.get("subscriptions/").json()["results"]
    rights = {one["purpose"]: one for one in told["rights"]}
    assert [*rights] == [*NEEDED]
    assert rights["ask for more quota"] == {
        "purpose": "ask for more quota",
        "may": False,
        "missing": ["Microsoft.Quota/quotas/write"],
    }
    assert rights["reserve capacity"]["may"]
    assert Caller(here.scene.ada).get("subscriptions/").status_code == 403


def test_leads_have_a_subscription_read_again(here: Site, lead: Caller) -> None:
    address = f"subscriptions/{SUBSCRIPTION}/check/"
    assert Caller(here.scene.ada).post(address).status_code == 403
    assert (
        Caller(factories.person("Olga", Role.AUDITOR)).post(address).status_code == 403
    )
    assert lead.post("subscriptions/none/check/").status_code == 404
    answer = lead.post(address)
    assert (answer.status_code, answer.json()["id"]) == (202, SUBSCRIPTION)
    assert Subscription.objects.get().next_look_at <= timezone.now()


@pytest.mark.slow
def test_lists_take_as_many_queries_however_long_they_are(
    here: Site, lead: Caller
) -> None:
    addresses = (
        "limits/",
        f"limits/{here.meter().pk}/",
        "quota-increases/",
        "subscriptions/",
    )
    for address in addresses:
        lead.get(address)
    taken = []
    for more in (5, 45):
        for _ in range(more):
            number = Meter.objects.count()
            made = meter(
                title=f"Family {number}",
                name=f"f{number}",
                limit=VCPUS,
                at=timezone.now(),
            )
            read_for_weeks(made, weeks=3, per_week=1, now=timezone.now())
            row = actions.ask(
                here.meter().pk,
                Ask(limit=24 * VCPUS, reason="x"),
                by=factories.person("Lead", Role.PLATFORM_LEAD),
                now=timezone.now() - timedelta(days=1),
            )
            actions.withdraw(row.pk, by=here.scene.priya, now=timezone.now())
        for address in addresses:
            with CaptureQueriesContext(connection) as captured:
                assert lead.get(address).status_code == 200
            taken.append(len(captured))
    assert taken[:4] == taken[4:]
    assert max(taken) <= MAX_QUERIES
