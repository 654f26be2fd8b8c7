"""Logs outlive their pods: the last lines of each are kept at the end of a run, and before it is stopped."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from accounts.roles import Role
from tests import factories
from tests.calling import Caller
from tests.pages import parsed
from tests.services.process import wait_until
from tests.services.redis import of_settings
from tests.workloads.conftest import POD, Watched, is_read, watching
from tests.workloads.test_runs import ASKED, look_after, submit, until
from workloads import tasks
from workloads.models import ClusterObject, KeptLog, Run
from workloads.runs import actions, attempts, following
from workloads.runs.ending import end
from workloads.runs.logs import keeping
from workloads.runs.logs.keeping import (
    MAX_CHARACTERS,
    bounded,
    keep_of_ended,
    keep_of_ending,
    keep_of_sent_back,
)
from workloads.runs.logs.reading import GONE, KEPT, KeptSource, Line
from workloads.runs.pods import pods_of
from workloads.runs.shown import NOT_KEPT
from workloads.runs.states import State

HOLD = "example.com/has-its-grace"
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_cluster_that_is_away_is_asked_again(watched: Watched, finished: Run) -> None:
    watched.kubernetes.fail("/log$", status=503)
    keep_of_ended(now=later)
    assert not KeptLog.objects.exists()
    watched.kubernetes.cluster.faults.clear()
    keep_of_ended(now=later)
    assert KeptLog.objects.count() == 1


@pytest.mark.slow
def test_what_is_kept_is_not_read_again(watched: Watched, finished: Run) -> None:
    keep_of_ended(now=later)
    watched.kubernetes.fail("/log$", status=503)
    before = KeptLog.objects.get().kept_at
    keep_of_ended(now=later)
    assert KeptLog.objects.get().kept_at == before


@pytest.mark.slow
def test_nothing_is_kept_where_nothing_is_to_be(
    watched: Watched, finished: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings.ENV, "logs_kept_days", 0)
    keep_of_ended(now=later)
    its_pods_go()
    assert log_of(watched, finished)["code"] == "log_gone"


@pytest.mark.slow
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


@pytest.mark.slow
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


def keeping_it(run: Run) -> Run:
    """What the clock does every two seconds: read what became of runs, and keep the log of who is sent back."""
    following.follow(
        now=timezone.now,
        gone=lambda run_id: None,
        sent_back=lambda run_id: keep_of_sent_back(run_id, now=timezone.now()),
    )
    run.refresh_from_db()
    return run


def hold_pods(watched: Watched, run: Run) -> list[str]:
    """Have a run's pods stay while they are being deleted, as those do that have a grace; their names."""
    names = [one.name for one in pods_of(run)]
    for name in names:
        set_finalizers(watched, name, [HOLD])
    return names


def let_go(watched: Watched, names: list[str]) -> None:
    for name in names:
        set_finalizers(watched, name, [])


def set_finalizers(watched: Watched, pod: str, names: list[str]) -> None:
    body = {"metadata": {"finalizers": names}}
    watched.kubernetes.patch(POD, pod, watched.namespace, body)


@pytest.fixture
def pushed_out(watched: Watched) -> Iterator[Run]:
    """A run that makes room for another one, and whose pods have their grace."""
    run = submit(watched, replace(ASKED, title="smallone", priority="exploratory"))
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
        held = hold_pods(watched, run)
        urgent = replace(ASKED, title="prio", priority="scheduled-training")
        look_after(submit(watched, urgent, key="two"))
        wait_until(
            lambda: keeping_it(run).state == "waiting", what="it to be sent back"
        )
        yield run
        let_go(watched, [name for name in held if there_is(watched, name)])


def there_is(watched: Watched, name: str) -> bool:
    return watched.kubernetes.get(POD, name, watched.namespace) is not None


@pytest.mark.slow
def test_an_attempt_that_is_sent_back_keeps_what_its_pods_wrote_in_their_grace(
    watched: Watched, pushed_out: Run
) -> None:
    run = pushed_out
    [pod] = pods_of(run)
    assert pod.word == "Being stopped"

    def is_kept() -> bool:
        return keeping_it(run).kept_logs.exists()

    wait_until(is_kept, what="its log to be kept")
    before = log_of(watched, run)["lines"]
    let_go(watched, [pod.name])
    wait_until(lambda: not pods_of(run), what="its pod to go")
    assert log_of(watched, run)["code"] == "log_not_started"
    kept = log_of(watched, run, f"?pod={pod.name}&attempt=1")
    assert kept["lines"][: len(before)] == before[: len(kept["lines"])] != []
    told = Caller(watched.ada).get(f"runs/{run.pk}/").json()
    assert [(one["name"], one["attempt"]) for one in told["kept_logs"]] == [
        (pod.name, 1)
    ]
    browser = Client()
    browser.force_login(watched.ada)
    shown = parsed(browser.get(f"/runs/{run.pk}").text)
    assert NOT_KEPT not in " ".join(shown.words.split())
    where = f"?pod={pod.name}&attempt=1"
    page = browser.get(f"/runs/{run.pk}{where}").text
    assert f'href="{escape(where)}#logs"' in page
    assert f"Log of {pod.label}, attempt 1" in parsed(page).words
    file = browser.get(f"/runs/{run.pk}/log{where}").text
    assert file.splitlines() == [one["text"] for one in kept["lines"]]
    # Who may read no log is led to none.
    auditor = Client()
    auditor.force_login(factories.person("Nora Lind", Role.AUDITOR))
    assert "attempt=1" not in auditor.get(f"/runs/{run.pk}").text


@pytest.mark.slow
def test_a_log_that_went_with_its_pods_is_said_to_be_gone(
    watched: Watched, pushed_out: Run
) -> None:
    run = pushed_out
    KeptLog.objects.all().delete()
    [pod] = pods_of(run)
    browser = Client()
    browser.force_login(watched.ada)
    # Its pod is there yet.
    assert NOT_KEPT not in browser.get(f"/runs/{run.pk}").text
    let_go(watched, [pod.name])
    wait_until(lambda: not pods_of(run), what="its pod to go")
    assert NOT_KEPT in " ".join(
        parsed(browser.get(f"/runs/{run.pk}").text).words.split()
    )
    gone = log_of(watched, run, f"?pod={pod.name}&attempt=1")
    assert (gone["code"], gone["detail"]) == ("log_gone", NOT_KEPT)


def told_to_workers() -> set[str]:
    """The tasks that wait for a worker, each with its arguments."""
    found = set()
    for client in of_settings():
        for key in client.scan_iter(_type="list"):
            for message in map(json.loads, client.lrange(key, 0, -1)):
                head = message["headers"]
                found.add(f"{head['task']}{head['argsrepr']}")
    return found


@pytest.mark.slow
def test_the_clock_has_a_worker_keep_the_log_of_who_is_sent_back(
    watched: Watched, pushed_out: Run
) -> None:
    KeptLog.objects.all().delete()
    tasks.follow_runs()
    assert f"workloads.tasks.keep_log[{pushed_out.pk}]" in told_to_workers()
    tasks.keep_log(pushed_out.pk)
    assert KeptLog.objects.exists()


@pytest.mark.slow
def test_what_is_sent_back_is_read_every_five_seconds_and_no_more_often(
    watched: Watched, pushed_out: Run
) -> None:
    now = timezone.now()
    KeptLog.objects.all().delete()
    keep_of_sent_back(pushed_out.pk, now=now)
    for later_by, is_read_again in ((4, False), (6, True)):
        at = now + timedelta(seconds=later_by)
        keep_of_sent_back(pushed_out.pk, now=at)
        assert (KeptLog.objects.get().kept_at == at) is is_read_again


@pytest.mark.slow
def test_a_cluster_that_is_away_keeps_nobody_from_being_followed(
    watched: Watched, pushed_out: Run
) -> None:
    KeptLog.objects.all().delete()
    watched.kubernetes.fail("/log$", status=503)
    keep_of_sent_back(pushed_out.pk, now=timezone.now())
    assert not KeptLog.objects.exists()
    watched.kubernetes.cluster.faults.clear()
    keep_of_sent_back(pushed_out.pk, now=timezone.now())
    assert KeptLog.objects.exists()


def test_pods_of_one_name_in_two_attempts_keep_a_log_each(watched: Watched) -> None:
    now = timezone.now()
    run = factories.run(
        watched.tenancy, watched.ada, state="waiting", created_at=now, sent_at=now
    )
    for number in (1, 2):
        attempts.begin(run, at=now, admitted_at=None)
        attempts.finish(run, at=now, why="It made room.", is_sent_back=True)
        run.kept_logs.create(
            attempt=run.run_attempts.last(),
            pod=f"{run.name}-worker-0",
            lines=f"2026-11-28T10:00:00Z.0 of {number}",
            kept_at=now,
        )
    where = f"?pod={run.name}-worker-0"
    for query, text in (
        (f"{where}&attempt=1", "of 1"),
        (f"{where}&attempt=2", "of 2"),
        (where, "of 2"),
        ("?attempt=1", "of 1"),
    ):
        [line] = log_of(watched, run, query)["lines"]
        assert line["text"] == text
    unknown = log_of(watched, run, f"{where}&attempt=3")
    assert (unknown["status"], unknown["code"]) == (404, "no_such_attempt")
    end(run.pk, State.GONE, now=timezone.now())
    browser = Client()
    browser.force_login(watched.ada)
    page = parsed(browser.get(f"/runs/{run.pk}").text).words
    assert f"Log of {run.name}-worker-0, attempt 2" in page
    assert f"Also kept: {run.name}-worker-0, attempt 1" in " ".join(page.split())
