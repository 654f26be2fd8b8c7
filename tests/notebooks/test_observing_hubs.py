"""Hubs are observed: what answers, what does not and why, and how often a hub that is away is called."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from accounts.roles import Role
from audit.models import Event
from notebooks.hubs import actions, observing
from notebooks.models import Hub
from notebooks.tasks import observe_hubs
from portal.celery_schedule import SCHEDULE
from tests import factories
from tests.notebooks.hubs import TOKEN, Served, hub, serving_hub

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_hub(tmp_path_factory.mktemp("hub")) as running:
        yield running


@pytest.fixture
def there(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A connected hub that answers, and is due."""
    (tmp_path / "hub").write_text(f"{TOKEN}\n")
    monkeypatch.setattr(settings.ENV, "hub_credentials_dir", tmp_path)
    monkeypatch.setattr(settings.ENV, "hub_hosts_allowed", [f"127.0.0.1:{served.port}"])
    monkeypatch.setattr(settings.ENV, "ca_file", served.ca_file)
    served.status, served.body, served.headers = "200 OK", {"version": "6.1.1"}, []
    served.paths.clear()
    return hub(factories.cluster("training"), address=served.address)


def observe(of: Hub, *, after: timedelta = timedelta(0)) -> Hub:
    """Have it observed at once, whatever it waits for."""
    now = timezone.now() + after
    Hub.objects.update(next_look_at=now)
    observing.observe(of.pk, now=lambda: now)
    return Hub.objects.get()


def waits_after(observed: Hub) -> float:
    """Seconds until it is observed again."""
    assert observed.looked_at is not None
    return (observed.next_look_at - observed.looked_at).total_seconds()


def test_a_hub_that_answers_is_known_with_its_version(
    there: Hub, served: Served
) -> None:
    found = observe(there)
    assert (found.reachable, found.version, found.message, found.failures) == (
        True,
        "6.1.1",
        "",
        0,
    )
    assert waits_after(found) == 25
    assert served.paths == ["/hub/api/info"]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        ("502 Bad Gateway", "<html>nginx</html>", "502"),
        (
            "404 Not Found",
            "<html>nothing</html>",
            "does not answer as a JupyterHub does",
        ),
        ("200 OK", "<html>Welcome</html>", "does not answer as a JupyterHub does"),
        ("200 OK", {"version": "the newest"}, "does not answer as a JupyterHub does"),
        ("200 OK", {"version": "4.1.6"}, "4.1.6; the portal works with 5 and 6"),
        ("302 Found", "", "does not answer as a JupyterHub does"),
    ],
)
def test_what_is_no_hub_to_work_with_is_told_in_words(
    there: Hub, served: Served, status: str, body: object, words: str
) -> None:
    served.status, served.body = status, body
    served.headers = (
        [("Location", "https://169.254.169.254/")] if status.startswith("302") else []
    )
    found = observe(there)
    assert (found.reachable, found.failures) == (False, 1)
    assert words in found.message


def test_a_token_that_the_hub_refuses_or_that_is_not_there_is_told_without_it(
    there: Hub, tmp_path: Path
) -> None:
    (tmp_path / "hub").write_text("canary")
    refused = observe(there).message
    assert "refused the portal's token" in refused
    assert "canary" not in refused
    (tmp_path / "hub").write_text("")
    assert "one line of plain characters" in observe(there).message
    (tmp_path / "hub").unlink()
    assert "cannot be read" in observe(there).message


def test_a_hub_that_is_away_keeps_its_version_and_is_called_less_and_less(
    there: Hub, served: Served
) -> None:
    observe(there)
    served.status, served.body = "503 Service Unavailable", "away"
    waits = [waits_after(observe(there)) for _ in range(6)]
    assert waits == [25, 50, 100, 200, 300, 300]
    found = Hub.objects.get()
    assert (found.reachable, found.version) == (False, "6.1.1")
    served.status, served.body = "200 OK", {"version": "6.2.0"}
    found = observe(there)
    assert (found.reachable, found.version, found.failures) == (True, "6.2.0", 0)
    events = Event.objects.filter(subject_type="hub").order_by("seq")
    assert [one.kind for one in events] == [
        "hub.reachable",
        "hub.unreachable",
        "hub.reachable",
    ]


def test_a_hub_that_names_a_time_is_not_called_before_it(
    there: Hub, served: Served
) -> None:
    served.status, served.body = (
        "429 Too Many Requests",
        {"status": 429, "message": "Slow down."},
    )
    served.headers = [("Retry-After", "900")]
    assert waits_after(observe(there)) == 900


def test_before_its_time_nobody_calls_it_and_one_worker_at_a_time_does(
    there: Hub, served: Served
) -> None:
    now = timezone.now() + timedelta(seconds=1)
    assert actions.claim_observation(there.pk, now=now)
    assert not actions.claim_observation(there.pk, now=now + timedelta(seconds=59))
    observing.observe(there.pk, now=lambda: now)
    assert served.paths == []
    assert actions.claim_observation(there.pk, now=now + timedelta(seconds=60))


def test_nothing_is_kept_of_a_hub_that_was_changed_meanwhile(there: Hub) -> None:
    Hub.objects.update(address="https://new.example.com")
    actions.note_observed(there, now=timezone.now(), version="6.1.1")
    assert Hub.objects.get().reachable is None
    Hub.objects.all().delete()
    actions.note_observed(there, now=timezone.now(), problem="Away.")


def test_a_change_has_it_observed_at_once(
    there: Hub, served: Served, tmp_path: Path
) -> None:
    served.status = "503 Service Unavailable"
    observe(there)
    (tmp_path / "new").write_text(TOKEN)
    lead = factories.person("Priya Nair", Role.PLATFORM_LEAD)
    now = timezone.now()
    actions.connect(
        there.cluster, address=served.address, token_file="new", by=lead, now=now
    )
    assert Hub.objects.due(now).get().failures == 0


def test_the_clock_has_every_due_hub_observed(there: Hub) -> None:
    entry = SCHEDULE["observe hubs"]
    assert (entry["task"], entry["schedule"]) == (observe_hubs.name, 30.0)
    observe_hubs()
