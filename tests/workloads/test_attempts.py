"""Each time that a run ran is kept, with why it ran no longer: once, whoever looks, and whatever nobody saw."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from tests import factories
from tests.calling import Caller
from tests.pages import parsed
from tests.services.process import wait_until
from tests.workloads.conftest import JOB, Watched, is_read, watching
from tests.workloads.test_kept import owned
from tests.workloads.test_runs import ASKED, follow, look_after, submit, there, until
from tests.workloads.test_runs_page import FRAME, MOST_QUERIES
from workloads.models import Attempt, ClusterObject, Run
from workloads.runs import actions, attempts
from workloads.runs.ending import end
from workloads.runs.notices import ended_message
from workloads.runs.pages.page import MOST_ATTEMPTS
from workloads.runs.states import State
from workloads.watching.kept import copy_of

SECOND = timedelta(seconds=1)
MADE_ROOM = "The queue stopped it because it made room for another job."
RECOVERING = (
    "One of its pods has failed, and another one is being started in its place."
)


@pytest.fixture
def running(watched: Watched) -> Iterator[Run]:
    """A run that another one may push out, while everything is watched."""
    run = submit(watched, replace(ASKED, title="smallone", priority="exploratory"))
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
        yield run


def pushed_out(watched: Watched) -> Run:
    """Another run that takes all that the team has, sent and not looked after any more."""
    urgent = replace(ASKED, title="prio", priority="scheduled-training")
    return look_after(submit(watched, urgent, key="two"))


def kept(watched: Watched, body: dict[str, Any]) -> None:
    """Keep a copy of an object of the team's namespace, as a watcher does."""
    body["metadata"]["namespace"] = watched.namespace
    ClusterObject.objects.create(
        cluster=watched.cluster,
        kind=body["kind"],
        namespace=watched.namespace,
        name=body["metadata"]["name"],
        body=copy_of(body),
    )


def in_copy(run: Run, *, evicted: bool) -> bool:
    """Whether the portal's copy has it that a run was evicted, or that it has its quota again since."""
    rows = ClusterObject.objects.filter(kind="Workload").values_list("body", flat=True)
    [status] = [
        {one["type"]: one["status"] for one in body["status"]["conditions"]}
        for body in rows
        if body["metadata"]["ownerReferences"][0]["name"] == run.name
    ]
    wanted = ("True", "False") if evicted else ("False", "True")
    return (status.get("Evicted"), status.get("PodsReady")) == wanted


def agree(run: Run) -> bool:
    """Whether what a run says of how long it ran is what its attempts say."""
    run.refresh_from_db()
    rows = [*run.run_attempts.all()]
    over = [one.ended_at - one.started_at for one in rows if one.ended_at]
    since = [one.started_at for one in rows if one.ended_at is None]
    return run.running_since == next(iter(since), None) and run.ran_seconds == round(
        sum(each.total_seconds() for each in over)
    )


@pytest.mark.slow
def test_a_run_that_made_room_and_ran_again_keeps_both_attempts(
    watched: Watched, running: Run
) -> None:
    began = running.started_at
    job = there(watched, JOB, running.name)
    assert job is not None
    # Kubernetes counts the time limit from where the Job began, which is before its pod did.
    assert running.limit_since == parse_datetime(job["status"]["startTime"])
    other = pushed_out(watched)
    until(other, "running")
    until(running, "waiting")
    [first] = running.run_attempts.all()
    kind = other.main["kind"]
    assert first.why == (
        f"The queue stopped it because it made room for “prio” ({kind} {other.name}), which ranks higher in your queue."
    )
    assert (first.started_at, first.is_sent_back) == (began, True)
    assert agree(running)
    actions.stop(other.pk, by=watched.ada, now=timezone.now())
    until(other, "stopped")
    until(running, "running")
    follow(running)
    one, two = running.run_attempts.all()
    assert (one.pk, one.why, one.ended_at) == (first.pk, first.why, first.ended_at)
    assert (two.number, two.ended_at, two.why) == (2, None, "")
    assert first.ended_at is not None
    assert two.started_at >= first.ended_at
    assert running.started_at == began
    assert agree(running)
    actions.stop(running.pk, by=watched.ada, now=timezone.now())
    until(running, "stopped")
    two.refresh_from_db()
    assert (two.ended_at, two.why, two.is_sent_back) == (running.ended_at, "", False)
    assert agree(running)


@pytest.mark.slow
def test_an_attempt_that_ended_while_nobody_looked_is_kept_as_well(
    watched: Watched, running: Run
) -> None:
    # Kubernetes tells times in whole seconds: within one, nothing tells two admissions apart.
    later = timezone.now() + 2 * SECOND
    wait_until(
        lambda: timezone.now() > later,
        what="it to have run for a moment",
    )
    other = pushed_out(watched)
    wait_until(lambda: in_copy(running, evicted=True), what="it to be pushed out")
    actions.stop(other.pk, by=watched.ada, now=timezone.now())
    look_after(other)
    wait_until(lambda: in_copy(running, evicted=False), what="it to run again")
    assert Attempt.objects.filter(run=running).count() == 1
    until(running, "running")
    follow(running)
    one, two = running.run_attempts.all()
    # Whoever it made room for is gone by now.
    assert one.why == (
        "The queue stopped it because it made room for another job, and let it in again."
    )
    assert one.is_sent_back
    assert one.ended_at is not None
    assert one.ended_at <= two.started_at
    assert two.ended_at is None
    assert agree(running)


def as_read(run: Run, count: int) -> list[Run]:
    """The same run as so many workers have read it."""
    return [Run.objects.get(pk=run.pk) for _ in range(count)]


def begun(watched: Watched) -> tuple[Run, datetime]:
    """A run that was sent a minute ago, and when it began."""
    now = timezone.now()
    sent = now - timedelta(minutes=1)
    run = factories.run(
        watched.tenancy, watched.ada, state="waiting", created_at=sent, sent_at=sent
    )
    return run, sent + SECOND


def test_of_two_workers_that_saw_the_same_one_writes_it(watched: Watched) -> None:
    run, at = begun(watched)
    told = [attempts.begin(one, at=at, admitted_at=at) for one in as_read(run, 2)]
    assert told == [True, False]
    later = at + SECOND
    told = [
        attempts.finish(one, at=later, why="It.", is_sent_back=True)
        for one in as_read(run, 2)
    ]
    assert told == [True, False]
    [only] = run.run_attempts.all()
    assert (only.started_at, only.ended_at, only.why) == (at, later, "It.")
    assert agree(run)


def test_of_workers_that_look_at_the_same_time_one_writes_it(watched: Watched) -> None:
    run, at = begun(watched)

    def begin(reader: Run) -> bool:
        try:
            return attempts.begin(reader, at=at, admitted_at=at)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as workers:
        told = [*workers.map(begin, as_read(run, 4))]
    assert sorted(told) == [False, False, False, True]
    assert run.run_attempts.count() == 1
    assert agree(run)


def test_a_worker_that_was_held_up_writes_nothing_into_a_later_attempt(
    watched: Watched,
) -> None:
    run, at = begun(watched)
    [asleep] = as_read(run, 1)
    for again in (at, at + 3 * SECOND):
        [reader] = as_read(run, 1)
        assert attempts.begin(reader, at=again, admitted_at=again)
        assert attempts.finish(
            reader, at=again + SECOND, why="It made room.", is_sent_back=True
        )
    assert not attempts.begin(asleep, at=at, admitted_at=at)
    assert not attempts.finish(asleep, at=at, why="It made room.", is_sent_back=True)
    assert run.run_attempts.count() == 2
    assert agree(run)


def test_an_attempt_never_begins_before_the_one_before_it_ended(
    watched: Watched,
) -> None:
    run, at = begun(watched)
    attempts.begin(run, at=at, admitted_at=at)
    attempts.finish(run, at=at + 2 * SECOND, why="It made room.", is_sent_back=True)
    attempts.begin(run, at=at, admitted_at=at)
    assert run.running_since == at + 2 * SECOND
    end(run.pk, State.FINISHED, now=timezone.now(), at=at + SECOND)
    last = run.run_attempts.get(number=2)
    assert last.ended_at == at + 2 * SECOND
    assert agree(run)
    assert run.ran_seconds == 2


def test_what_has_ended_begins_no_more(watched: Watched) -> None:
    run, at = begun(watched)
    end(run.pk, State.GONE, now=timezone.now())
    assert not attempts.begin(run, at=at, admitted_at=at)
    assert not run.run_attempts.exists()


@pytest.fixture
def again(watched: Watched) -> Run:
    """A run of 7.20 USD an hour and a limit of an hour, which runs since 5 minutes and was sent back after 10."""
    now = timezone.now()
    start = now - timedelta(minutes=30)
    run = factories.run(
        watched.tenancy,
        watched.ada,
        state="waiting",
        created_at=start,
        sent_at=start,
        usd_per_hour="7.20",
    )
    attempts.begin(run, at=start, admitted_at=start)
    end_of_first = start + timedelta(minutes=10)
    attempts.finish(run, at=end_of_first, why=MADE_ROOM, is_sent_back=True)
    since = now - timedelta(minutes=5)
    attempts.begin(run, at=since, admitted_at=since)
    Run.objects.filter(pk=run.pk).update(state="running")
    return run


def words_of(watched: Watched, run: Run) -> str:
    browser = Client()
    browser.force_login(watched.ada)
    return " ".join(parsed(browser.get(f"/runs/{run.pk}").text).words.split())


def test_the_most_that_it_can_cost_counts_earlier_attempts_and_a_whole_limit(
    watched: Watched, again: Run
) -> None:
    told = Caller(watched.ada).get(f"runs/{again.pk}/").json()
    assert told["usd_at_limit"] == "8.40"
    assert told["ran_seconds"] >= 900
    words = words_of(watched, again)
    assert "$8.40 at its time limit, earlier attempts included" in words
    assert "of at most 1 hour each time that it is let in, until " in words
    assert again.running_since is not None
    stopped = again.running_since + timedelta(minutes=5)
    attempts.finish(again, at=stopped, why=MADE_ROOM, is_sent_back=True)
    # It waits: 15 minutes are paid, and the hour begins anew.
    assert Run.objects.get(pk=again.pk).usd_at_limit == 9
    end(again.pk, State.GONE, now=timezone.now())
    again.refresh_from_db()
    assert again.usd_at_limit is None
    words = words_of(watched, again)
    assert "at its time limit" not in words
    assert "$1.80 $7.20 an hour" in words
    facts = dict(ended_message(again, now=timezone.now()).facts)
    assert (facts["Ran for"], facts["Cost"]) == ("15 min", "$1.80")


def test_its_page_and_the_api_tell_of_each_attempt(
    watched: Watched, again: Run
) -> None:
    words = words_of(watched, again)
    places = [
        words.index(one)
        for one in (
            "Started to run",
            "Sent back to the line by its queue",
            MADE_ROOM,
            "Started again",
        )
    ]
    assert places == sorted(places)
    first, second = Caller(watched.ada).get(f"runs/{again.pk}/").json()["attempts"]
    assert {**first, "started_at": "", "ended_at": ""} == {
        "number": 1,
        "started_at": "",
        "ended_at": "",
        "sent_back": True,
        "why": MADE_ROOM,
    }
    assert (second["number"], second["ended_at"], second["why"]) == (2, None, "")


def test_what_begins_anew_in_its_place_has_what_is_left_of_its_time_limit(
    watched: Watched,
) -> None:
    """A pod of a plain Job is made again, and the Job goes on: of an hour, 20 minutes had passed by then."""
    run, at = begun(watched)
    attempts.begin(run, at=at, admitted_at=at, limit_since=at)
    lost = at + timedelta(minutes=15)
    attempts.finish(run, at=lost, why=RECOVERING, is_sent_back=False)
    again = at + timedelta(minutes=20)
    attempts.begin(run, at=again, admitted_at=at, limit_since=at)
    assert run.limit_at == at + timedelta(hours=1)
    assert run.usd_at_limit == run.usd_per_hour * 55 / 60


def test_what_began_anew_in_its_place_was_interrupted_and_not_sent_back(
    watched: Watched, again: Run
) -> None:
    attempts.finish(again, at=timezone.now(), why=RECOVERING, is_sent_back=False)
    words = words_of(watched, again)
    assert words.index("Interrupted") < words.index(RECOVERING)
    assert words.count("Sent back to the line by its queue") == 1


def test_a_run_that_was_never_interrupted_says_that_it_started(
    watched: Watched,
) -> None:
    run, at = begun(watched)
    attempts.begin(run, at=at, admitted_at=at)
    words = words_of(watched, run)
    assert "Started to run" in words
    assert "Started again" not in words
    assert "each time that it is let in" not in words
    told = Caller(watched.ada).get(f"runs/{run.pk}/").json()["attempts"]
    assert [one["number"] for one in told] == [1]


@pytest.mark.slow
def test_of_very_many_attempts_the_page_tells_of_the_last(
    watched: Watched, again: Run
) -> None:
    for _ in range(MOST_ATTEMPTS + 1):
        attempts.finish(again, at=timezone.now(), why=MADE_ROOM, is_sent_back=True)
        attempts.begin(again, at=timezone.now(), admitted_at=None)
    words = words_of(watched, again)
    assert words.count(MADE_ROOM) == MOST_ATTEMPTS - 1
    assert "Interrupted 3 times" in words
    assert words.count("Started to run") == 1
    told = Caller(watched.ada).get(f"runs/{again.pk}/").json()["attempts"]
    assert len(told) == MOST_ATTEMPTS + 3


@pytest.mark.slow
def test_looking_again_at_a_run_with_a_past_costs_one_query_more(
    watched: Watched, running: Run
) -> None:
    other = pushed_out(watched)
    until(running, "waiting")
    actions.stop(other.pk, by=watched.ada, now=timezone.now())
    until(other, "stopped")
    until(running, "running")
    browser = Client()
    browser.force_login(watched.ada)

    def asked() -> int:
        with CaptureQueriesContext(connection) as seen:
            browser.get(f"/runs/{running.pk}", headers={"HX-Request": "true"})
        said = [one["sql"] for one in seen.captured_queries]
        return sum(not any(f'FROM "{one}"' in sql for one in FRAME) for sql in said)

    # The watcher still copies: a look after which nothing has changed is meant.
    wait_until(lambda: asked() <= MOST_QUERIES + 1, what="a look without news")


def test_pods_that_are_seen_before_what_lets_them_in_begin_no_attempt(
    watched: Watched,
) -> None:
    now = timezone.now()
    run = factories.run(
        watched.tenancy,
        watched.ada,
        state="waiting",
        created_at=now - 9 * SECOND,
        sent_at=now - 9 * SECOND,
    )
    kept(watched, owned("Job", run.name, "j1", spec={"template": {"spec": {}}}))
    ready = [{"type": "Ready", "status": "True"}]
    pod = owned("Pod", f"{run.name}-0", "p1", "Job", run.name, "j1", spec={})
    kept(watched, pod | {"status": {"phase": "Running", "conditions": ready}})
    follow(run)
    assert (run.state, run.run_attempts.count()) == ("waiting", 0)
    workload = owned("Workload", "w", "w1", "Job", run.name, "j1", spec={})
    let_in = [
        {"type": kind, "status": status, "lastTransitionTime": now.isoformat()}
        for kind, status in (("Admitted", "True"), ("PodsReady", "False"))
    ]
    kept(watched, workload | {"status": {"conditions": let_in}})
    follow(run)
    assert (run.state, run.run_attempts.count()) == ("starting", 0)
