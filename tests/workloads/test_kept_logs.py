"""Logs outlive their pods: the last lines of each are kept at the end of a run, and before it is stopped."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounts.roles import Role
from tests import factories
from tests.calling import Caller
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.test_runs import ASKED, look_after, submit, until
from workloads.models import ClusterObject, KeptLog, Run
from workloads.runs import actions
from workloads.runs.logs import keeping
from workloads.runs.logs.keeping import (
    MAX_CHARACTERS,
    bounded,
    keep_of_ended,
    keep_of_ending,
)
from workloads.runs.logs.reading import GONE, KEPT, KeptSource, Line

SHORT = {**ASKED.values, "launcher": "none", "program": ("sleep", "1")}


def later() -> datetime:
    """When the copies of its pods are known to be there, too."""
    return timezone.now() + timedelta(seconds=5)


@pytest.fixture
def finished(watched: Watched) -> Run:
    """A run that has ended by itself, whose pods are there."""
    run = submit(watched, replace(ASKED, values=SHORT))
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "finished")
    return run


def its_pods_go() -> None:
    """Kubernetes deletes the pods of what has ended after a week."""
    ClusterObject.objects.filter(kind="Pod").delete()


def log_of(watched: Watched, run: Run, query: str = "") -> Any:
    return Caller(watched.ada).get(f"runs/{run.pk}/logs/{query}").json()


def test_a_log_is_the_same_when_its_pod_is_gone(
    watched: Watched, finished: Run
) -> None:
    before = log_of(watched, finished)
    assert before["lines"]
    keep_of_ended(now=later)
    its_pods_go()
    assert log_of(watched, finished) == before
    last = before["lines"][-1]
    assert log_of(watched, finished, "?tail=1")["lines"] == [last]
    first = before["lines"][0]["place"]
    assert log_of(watched, finished, f"?after={first}")["lines"] == before["lines"][1:]
    named = f"?pod={before['pod']}"
    assert log_of(watched, finished, named) == before
    shown = Caller(watched.ada).get(f"runs/{finished.pk}/").json()
    assert [one["name"] for one in shown["kept_logs"]] == [before["pod"]]


def test_who_follows_it_gets_what_is_kept_and_its_end(
    watched: Watched, finished: Run
) -> None:
    lines = log_of(watched, finished)["lines"]
    keep_of_ended(now=later)
    its_pods_go()
    browser = Client()
    browser.force_login(watched.ada)
    page = browser.get(f"/runs/{finished.pk}").text
    assert f"/runs/{finished.pk}/log?follow=1" in page
    assert GONE not in page
    file = browser.get(f"/runs/{finished.pk}/log").text
    assert file == "".join(f"{one['text']}\n" for one in lines)


def test_a_stream_of_what_is_kept_ends_with_a_sentence() -> None:
    kept = KeptSource("train-0", [Line("2026-11-28T10:00:00Z.0", "epoch 1")])
    assert kept.frames() == (
        f"id: 2026-11-28T10:00:00Z.0\ndata: epoch 1\n\nevent: end\ndata: {KEPT}\n\n"
    )


def test_one_that_is_stopped_keeps_what_it_had_written(watched: Watched) -> None:
    run = submit(watched)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
        before = log_of(watched, run)["lines"]
        actions.stop(run.pk, by=watched.ada, now=timezone.now())
        until(run, "stopped")
        wait_until(
            lambda: not watched.copies("Pod"), what="the copies of its pods to go"
        )
    assert log_of(watched, run)["lines"][: len(before)] == before != []


def test_one_that_reaches_its_time_limit_keeps_what_it_had_written(
    watched: Watched,
) -> None:
    run = submit(watched)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
    before = log_of(watched, run)["lines"]
    run.refresh_from_db()
    assert run.limit_at is not None
    long_before, soon = run.limit_at - timedelta(minutes=1), run.limit_at
    keep_of_ending(now=lambda: long_before)
    assert not KeptLog.objects.exists()
    keep_of_ending(now=lambda: soon - timedelta(seconds=20))
    its_pods_go()
    assert log_of(watched, run)["lines"][: len(before)] == before != []


def test_one_without_a_time_limit_is_not_kept_before_it_ends(watched: Watched) -> None:
    now = timezone.now()
    factories.run(
        watched.tenancy,
        watched.ada,
        state="running",
        limit_seconds=None,
        created_at=now,
        sent_at=now,
        started_at=now,
        running_since=now,
    )
    keep_of_ending(now=lambda: now + timedelta(days=100))
    assert not KeptLog.objects.exists()


def test_a_log_that_cannot_be_read_keeps_no_run_from_being_stopped(
    watched: Watched,
) -> None:
    run = submit(watched)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
        watched.kubernetes.fail("/log$", status=503)
        actions.stop(run.pk, by=watched.ada, now=timezone.now())
        until(run, "stopped")
    its_pods_go()
    assert log_of(watched, run)["code"] == "log_gone"


def test_a_cluster_that_is_away_is_asked_again(watched: Watched, finished: Run) -> None:
    watched.kubernetes.fail("/log$", status=503)
    keep_of_ended(now=later)
    assert not KeptLog.objects.exists()
    watched.kubernetes.cluster.faults.clear()
    keep_of_ended(now=later)
    assert KeptLog.objects.count() == 1


def test_what_is_kept_is_not_read_again(watched: Watched, finished: Run) -> None:
    keep_of_ended(now=later)
    watched.kubernetes.fail("/log$", status=503)
    before = KeptLog.objects.get().kept_at
    keep_of_ended(now=later)
    assert KeptLog.objects.get().kept_at == before


def test_nothing_is_kept_where_nothing_is_to_be(
    watched: Watched, finished: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings.ENV, "logs_kept_days", 0)
    keep_of_ended(now=later)
    its_pods_go()
    assert log_of(watched, finished)["code"] == "log_gone"


def test_who_may_read_no_log_reads_none_that_is_kept(
    watched: Watched, finished: Run
) -> None:
    keep_of_ended(now=later)
    its_pods_go()
    where = f"runs/{finished.pk}/logs/"
    stranger = Caller(factories.person("Grace Hopper"))
    assert stranger.get(where).status_code == 404
    auditor = Caller(factories.person("Nora Lind", Role.AUDITOR))
    assert auditor.get(where).status_code == 403


def test_what_was_kept_for_its_days_is_forgotten(
    watched: Watched, finished: Run
) -> None:
    keep_of_ended(now=later)
    keeping.forget(now=later() + timedelta(days=29))
    assert KeptLog.objects.exists()
    keeping.forget(now=later() + timedelta(days=30))
    assert not KeptLog.objects.exists()


def test_only_the_last_lines_are_kept_where_there_are_too_many() -> None:
    lines = [Line(f"2026-11-28T10:00:00Z.{n}", "x" * 1_000) for n in range(100)]
    kept = bounded(lines).split("\n")
    assert kept[-1].startswith("2026-11-28T10:00:00Z.99 ")
    assert 60 < len(kept) < 64
    assert len("\n".join(kept)) <= MAX_CHARACTERS


def test_what_no_database_takes_is_left_out() -> None:
    assert bounded([Line("p.0", "a\x00b")]) == "p.0 a\ufffdb"
    assert len(bounded([Line("p.0", "y" * 100_000)])) < 5_000
    assert bounded([]) == ""
