"""The little pages of the frame: alive, ready, the gallery, and the page that says what was refused."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from portal.models import note_pulse
from portal.tasks import pulse
from tests import factories
from workloads.models import Feed
from workloads.watching import feeds


def refuse_to_connect(*args: object) -> None:
    """What the database says when it is down, or asked when it must not be."""
    raise OperationalError("connection refused at db.internal:5432")


def test_alive_is_answered_without_a_database() -> None:
    with connection.execute_wrapper(refuse_to_connect):
        answer = Client().get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert answer["Content-Type"] == "text/plain"


@pytest.mark.django_db
def test_ready_is_answered_while_the_database_answers() -> None:
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"database": "ok"})


@pytest.mark.django_db
def test_not_ready_while_the_database_is_down_and_says_no_more_than_that() -> None:
    with connection.execute_wrapper(refuse_to_connect):
        answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()) == (
        503,
        {"database": "OperationalError"},
    )
    assert Client().get("/readyz").status_code == 200


@pytest.mark.django_db
def test_workers_and_watcher_that_stand_still_are_seen_from_outside() -> None:
    def said() -> tuple[int, dict[str, str]]:
        answer = Client().get("/workz")
        return answer.status_code, answer.json()

    now = timezone.now()
    assert said() == (503, {"workers": "never seen", "watcher": "ok"})
    pulse()
    assert said() == (200, {"workers": "ok", "watcher": "ok"})
    long_ago = now - timedelta(minutes=3)
    since = f"not since {long_ago:%Y-%m-%dT%H:%M:%SZ}"
    note_pulse(now=long_ago)
    assert said() == (503, {"workers": since, "watcher": "ok"})
    pulse()
    feed = Feed.objects.create(cluster=factories.cluster(), kind="Job")
    assert said() == (503, {"workers": "ok", "watcher": "never seen"})
    Feed.objects.filter(pk=feed.pk).update(holder="a", lease_until=long_ago)
    assert said() == (503, {"workers": "ok", "watcher": since})
    Feed.objects.filter(pk=feed.pk).update(lease_until=now + timedelta(seconds=6))
    assert said()[0] == 200
    feeds.let_go("a", now=now)
    assert said()[0] == 200


@pytest.mark.django_db
def test_everybody_reads_that_the_workers_stand_still(client: Client) -> None:
    client.force_login(factories.person("Ada Okafor"))
    words = "The portal’s workers stand still"
    assert words not in client.get("/").content.decode()
    note_pulse(now=timezone.now() - timedelta(minutes=3))
    assert words in client.get("/").content.decode()
    pulse()
    assert words not in client.get("/").content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("debug", "demo", "status"),
    [(False, False, 404), (True, False, 200), (False, True, 200)],
)
def test_the_gallery_is_missing_in_production(
    client: Client, settings: Any, debug: bool, demo: bool, status: int
) -> None:
    client.force_login(factories.person("Ada Okafor"))
    settings.DEBUG, settings.DEMO = debug, demo
    assert client.get("/styleguide").status_code == status


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_may_ask_by_any_address_and_over_http(settings: Any, path: str) -> None:
    settings.PUBLIC_URL = "https://gpus.acme.com"
    settings.ALLOWED_HOSTS = ["gpus.acme.com"]
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    by_its_address = Client(HTTP_HOST="10.244.1.7:8000")
    assert by_its_address.get(path).status_code == 200
    assert by_its_address.get("/workz").status_code in {301, 400}


@pytest.mark.django_db
def test_a_form_from_elsewhere_gets_the_page_of_refusals() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(factories.person("Ada Okafor"))
    answer = client.post("/theme", {"theme": "dark"})
    assert answer.status_code == 403
    assert "The form was not accepted" in answer.content.decode()
    assert "qm_theme" not in answer.cookies
