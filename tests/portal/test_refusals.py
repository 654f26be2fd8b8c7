"""What is left of a refused change: an event of whoever asked, and of strangers a line in the log alone."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from accounts.roles import Role
from audit.events import Kind
from audit.log import count_refusal
from audit.models import Event, RefusalCount
from tests import factories
from tests.calling import Caller
from tests.scene import NOW, scene
from web import refusal_events

pytestmark = pytest.mark.django_db
REFUSED_TO_STRANGERS = [
    ("POST", "/healthz", 403),
    ("GET", "/sign-in/callback?state=x", 400),
    ("POST", "/api/v1/nothing/", 404),
    ("POST", "/sign-in/start", 403),
    ("DELETE", "/events", 403),
    ("POST", "/nowhere/", 302),
]


@pytest.mark.parametrize(("method", "path", "status"), REFUSED_TO_STRANGERS)
def test_nobody_fills_the_audit_log_without_signing_in(
    caplog: pytest.LogCaptureFixture, method: str, path: str, status: int
) -> None:
    stranger = Client(enforce_csrf_checks=True)
    for _ in range(3):
        answer = stranger.generic(
            method, path, headers={"X-Request-ID": "a-strangers-call"}
        )
        assert answer.status_code == status
    assert not Event.objects.exists()
    if status != 302:
        told: list[Any] = [
            record.msg for record in caplog.records if "request_id" in str(record.msg)
        ]
        assert len(told) == 3
        assert {(line["request_id"], line["level"]) for line in told} == {
            ("a-strangers-call", "warning")
        }


def test_the_same_refusal_to_somebody_who_has_no_right_is_an_event_that_names_them(
    client: Client,
) -> None:
    ada = factories.person("Ada")
    client.force_login(ada)
    assert client.post("/audit/check").status_code == 403
    event = Event.objects.get(kind=Kind.REFUSED)
    assert (event.actor_id, event.subject_id, event.details["status"]) == (
        str(ada.oid),
        "audit/check",
        403,
    )


def test_what_touched_no_object_is_counted_and_leaves_no_event(client: Client) -> None:
    ada = factories.person("Ada")
    client.force_login(ada)
    caller = Caller(ada)
    before = Event.objects.count()
    for _ in range(3):
        assert client.post("/tokens/", {}).status_code == 422
        assert client.post("/nowhere").status_code == 404
        assert caller.post("requests/", {}).status_code == 422
        assert caller.post("requests/", "{").status_code == 400
        assert caller.post("me/").status_code == 405
    assert Event.objects.count() == before
    counted = dict(
        RefusalCount.objects.filter(actor_id=str(ada.oid)).values_list(
            "status", "count"
        )
    )
    assert counted == {422: 6, 404: 3, 400: 3, 405: 3}


def test_who_looks_for_what_is_not_theirs_is_counted(client: Client) -> None:
    scene()
    mallory = factories.person("Mallory")
    client.force_login(mallory)
    caller, before = Caller(mallory), Event.objects.count()
    assert client.get("/teams/vision/").status_code == 404
    assert caller.get("teams/vision/budgets/").status_code == 404
    assert caller.get("policy/drafts/").status_code == 403
    # An address that leads nowhere is nobody's, and a stranger has no name.
    assert client.get("/nowhere").status_code == 404
    assert Client().get("/teams/vision/").status_code == 302
    assert Event.objects.count() == before
    counted = RefusalCount.objects.values_list("actor_name", "status", "count")
    assert sorted(counted) == [("Mallory", 403, 1), ("Mallory", 404, 2)]


def test_refusals_beyond_those_of_a_minute_are_counted_and_leave_no_event(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusal_events, "EVENTS_PER_MINUTE", 4)
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    ada, ben = factories.person("Ada"), factories.person("Ben")
    for person in (ada, ben):
        client.force_login(person)
        for _ in range(7):
            assert client.post("/audit/check").status_code == 403
    assert Event.objects.filter(kind=Kind.REFUSED).count() == 8
    assert list(RefusalCount.objects.values_list("status", "count")) == [
        (403, 3),
        (403, 3),
    ]


def test_leads_and_auditors_read_the_counts_and_nobody_else() -> None:
    ada, sam = factories.person("Ada"), factories.person("Sam", Role.AUDITOR)
    Caller(ada).post("requests/", {})
    [row] = Caller(sam).get("events/refusals/").json()["results"]
    assert (row["actor_name"], row["status"], row["count"]) == ("Ada", 422, 1)
    assert Caller(ada).get("events/refusals/").json()["code"] == "not_an_auditor"


def test_old_days_of_a_person_are_forgotten_and_each_day_has_its_own_count() -> None:
    actor = factories.person("Ada").as_actor()
    for day in (NOW - timedelta(days=91), NOW - timedelta(days=89), NOW, NOW):
        count_refusal(actor=actor, status=422, now=day)
    assert [row.count for row in RefusalCount.objects.all()] == [2, 1]


def test_the_database_keeps_one_count_that_counts_something() -> None:
    actor = factories.person("Ada").as_actor()
    for status in (422, 400):
        count_refusal(actor=actor, status=status, now=NOW)
    for change in ({"count": 0}, {"status": 400}):
        with pytest.raises(IntegrityError), transaction.atomic():
            RefusalCount.objects.filter(status=422).update(**change)
