"""When a run is tried again: after a failure, after a crash, and after its stop; and when nobody tries it any more."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.roles import Role
from audit.models import Event
from notices.models import Notice
from reconciling import failpoints
from reconciling.controller import MAX_UNFINISHED
from reconciling.lease import SECONDS
from tests import factories
from tests.calling import Caller
from tests.workloads.conftest import JOB, Watched
from tests.workloads.test_runs import submit, there
from workloads.models import Run
from workloads.runs import actions, sending

SECOND = timedelta(seconds=1)


class Dead(BaseException):
    """The worker is gone."""


class Clock:
    """A time that goes on when it is told to."""

    def __init__(self) -> None:
        self.at = timezone.now()

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def poison(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run that ends every worker that tries it."""

    def die() -> None:
        raise Dead

    run = submit(watched)
    monkeypatch.setenv("FAILPOINT", "run.write:always")
    monkeypatch.setattr(failpoints, "strike", die)
    return run


def tried(run: Run, clock: Clock) -> None:
    """One worker's try when the run is due."""
    clock.at = max(run.requeue_at, clock.at + SECONDS * SECOND)
    with suppress(Dead):
        sending.look_after(run.pk, now=clock)
    run.refresh_from_db()


def parked(run: Run, clock: Clock) -> None:
    for _ in range(MAX_UNFINISHED + 1):
        tried(run, clock)
    assert run.parked_at is not None


def test_a_run_that_ends_every_worker_is_parked_and_the_leads_are_told_once(
    poison: Run, clock: Clock
) -> None:
    lead = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    parked(poison, clock)
    tried(poison, clock)

    assert (poison.state, poison.message) == ("submitted", sending.PARKED)
    assert not Run.objects.due(clock.at + timedelta(days=1)).exists()
    assert Event.objects.get(kind="run.parked").subject_id == str(poison.pk)
    assert list(Notice.objects.values_list("kind", "person")) == [
        ("run_parked", lead.pk)
    ]


def test_a_parked_run_is_not_said_to_be_tried_again_by_itself(
    watched: Watched, poison: Run, clock: Clock
) -> None:
    """Nor that its cluster has a problem: nobody asks the cluster any more."""
    parked(poison, clock)
    api = Caller(watched.ada)
    why = api.get(f"runs/{poison.pk}/").json()["why"]
    assert (why["code"], why["outlook"]) == ("run_parked", "escalate")
    assert "tried no more" in why["what"]
    assert "Stop it, and submit it again" in why["do"]
    assert "again by itself" not in " ".join(map(str, why.values()))
    [listed] = api.get("runs/?why=true").json()["results"]
    assert listed["why"] == why


def test_a_parked_run_is_tried_again_when_somebody_stops_it(
    watched: Watched, poison: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(poison, clock)
    monkeypatch.delenv("FAILPOINT")
    actions.stop(poison.pk, by=watched.ada, now=clock.at)

    tried(poison, clock)
    assert (poison.state, poison.parked_at, poison.message) == ("stopped", None, "")


def test_a_stop_that_was_parked_is_tried_again_when_it_is_asked_for_again(
    watched: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit(watched)
    actions.stop(run.pk, by=watched.ada, now=clock.at)
    Run.objects.filter(pk=run.pk).update(parked_at=clock.at)
    actions.stop(run.pk, by=watched.ada, now=clock.at)
    run.refresh_from_db()

    tried(run, clock)
    assert run.state == "stopped"
    assert Event.objects.filter(kind="run.stopped").count() == 1


def test_each_failure_waits_longer_and_at_most_half_a_minute(
    watched: Watched, clock: Clock
) -> None:
    run, waits = submit(watched), list[float]()
    for _ in range(6):
        watched.kubernetes.fail(status=503)
        tried(run, clock)
        waits.append((run.requeue_at - clock.at) / SECOND)

    bounds = [2, 4, 8, 16, 30, 30]
    assert all(
        most / 2 <= wait <= most for most, wait in zip(bounds, waits, strict=True)
    ), waits


def test_a_stop_during_a_failing_try_does_not_wait_for_its_pause(
    watched: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit(watched)
    while_trying(
        monkeypatch, lambda: actions.stop(run.pk, by=watched.ada, now=clock.at)
    )
    watched.kubernetes.fail(status=503)
    tried(run, clock)

    assert run.requeue_at == clock.at
    watched.kubernetes.cluster.faults.clear()
    tried(run, clock)
    assert run.state == "stopped"


def test_a_stop_during_the_sending_is_carried_out_after_it(
    watched: Watched, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit(watched)
    while_trying(
        monkeypatch, lambda: actions.stop(run.pk, by=watched.ada, now=clock.at)
    )
    tried(run, clock)
    assert (run.state, run.requeue_at, run.lease_until) == ("waiting", clock.at, None)

    tried(run, clock)
    assert there(watched, JOB, run.name) is None


def test_a_second_message_about_a_run_that_failed_begins_no_try(
    watched: Watched, clock: Clock
) -> None:
    run = submit(watched)
    watched.kubernetes.fail(status=503)
    tried(run, clock)

    with CaptureQueriesContext(connection) as seen:
        assert not sending.look_after(run.pk, now=clock)
    assert len(seen) == 1


def while_trying(
    monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]
) -> None:
    """Let something happen once, right after the lease was taken."""
    monkeypatch.setenv("FAILPOINT", "run.write:1")
    failpoints.forget()
    monkeypatch.setattr(failpoints, "strike", happens)
