"""What is left of a refused change: an event of whoever asked, and of strangers a line in the log alone."""

from typing import Any

import pytest
from django.test import Client

from audit.events import Kind
from audit.models import Event
from tests import factories

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
        answer = stranger.generic(method, path, headers={"X-Request-ID": "a-strangers-call"})
        assert answer.status_code == status
    assert not Event.objects.exists()
    if status != 302:
        told: list[Any] = [record.msg for record in caplog.records if "request_id" in str(record.msg)]
        assert len(told) == 3
        assert {(line["request_id"], line["level"]) for line in told} == {("a-strangers-call", "warning")}


def test_the_same_refusal_to_somebody_is_an_event_that_names_them(client: Client) -> None:
    ada = factories.person("Ada")
    client.force_login(ada)
    assert client.post("/healthz").status_code == 405
    event = Event.objects.get(kind=Kind.REFUSED)
    assert (event.actor_id, event.subject_id, event.details["status"]) == (str(ada.oid), "healthz", 405)
