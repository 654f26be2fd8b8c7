"""Another time limit for a run that waits or runs: what it changes, what it is refused for, and how it gets there."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from audit.models import Event
from provisioning.delivery import client_for
from reconciling.controller import MAX_UNFINISHED
from tests import factories
from tests.calling import Caller
from tests.services.process import wait_until
from tests.workloads.conftest import JOB, Watched, is_read, watching
from tests.workloads.runs import run as run_of_template
from tests.workloads.test_maintained import maintain
from tests.workloads.test_runs import ASKED, follow, look_after, submit, there, until
from tests.workloads.test_runs_page import client, page
from web.refusals import BadInput, Refused
from workloads.models import Run
from workloads.runs import actions
from workloads.runs.planning.abilities import learn
from workloads.runs.planning.plan import Submission
from workloads.templates.library import TEMPLATES
from workloads.templates.time_limits import timed_job

HOUR = 3_600
TOGETHER = replace(
    ASKED, template="pytorch", values={**ASKED.values, "nodes": 2, "gpus": 1}
)


def change(run: Run, minutes: int) -> Run:
    """Give a run another time limit."""
    by = run.requester
    return actions.change_limit(run.pk, minutes=minutes, by=by, now=timezone.now())


def seconds_on_cluster(watched: Watched, name: str) -> int:
    """The time limit of a Job as the cluster has it."""
    job = there(watched, JOB, name)
    assert job is not None
    seconds: int = job["spec"]["activeDeadlineSeconds"]
    return seconds


def started(watched: Watched, asked: Submission = ASKED) -> Run:
    """A run that runs; for use while the cluster is watched."""
    wait_until(is_read, what="everything to be listed")
    learn(now=timezone.now())
    run = submit(watched, asked)
    look_after(run)
    until(run, "running")
    return run


def test_a_limit_can_change_where_kubernetes_lets_that_of_a_job_change() -> None:
    found = {}
    for template in TEMPLATES:
        [main] = [
            one
            for one in template.render(run_of_template(template))
            if one["kind"] not in ("ConfigMap", "Service")
        ]
        name = timed_job(main)
        found[template.slug] = name and name.removeprefix(f"{template.slug}-0a1b2c3d")
    assert {slug: name for slug, name in found.items() if name is not None} == {
        "single-node": "",
        "sweep": "",
        "batch": "",
        "pytorch": "-worker-0",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "job"), [(ASKED, ""), (TOGETHER, "-worker-0")], ids=["job", "jobset"]
)
def test_a_run_goes_on_with_another_limit(
    watched: Watched, asked: Submission, job: str
) -> None:
    with watching(watched.kubernetes):
        run = started(watched, asked)
        began, before = run.running_since, run.limit_at
        change(run, 90)
        assert look_after(run).limit_on_cluster == 90 * 60
        assert seconds_on_cluster(watched, run.name + job) == 90 * 60
        follow(run)
    assert before is not None
    assert run.limit_at == before + timedelta(minutes=30)
    assert (run.state, run.running_since) == ("running", began)
    assert [one.why for one in run.run_attempts.all()] == [""]
    event = Event.objects.get(kind="run.limit_changed")
    assert event.actor_name == watched.ada.name
    assert (event.details["before"], event.details["seconds"]) == (HOUR, 90 * 60)
    text = page(client(watched.ada).get(f"/runs/{run.pk}")).words
    assert "Time limit set to 1 h 30 min" in text
    assert "of at most 1 h 30 min" in text


@pytest.mark.slow
def test_a_job_that_was_made_anew_with_its_first_limit_gets_the_one_of_its_run(
    watched: Watched,
) -> None:
    with watching(watched.kubernetes):
        run = started(watched, TOGETHER)
        name = f"{run.name}-worker-0"
        change(run, 90)
        look_after(run)
        anew = {"spec": {"activeDeadlineSeconds": HOUR}}
        client_for(watched.cluster).merge(JOB, name, watched.namespace, anew)

        def is_noticed() -> bool:
            return follow(run).has_other_limit

        wait_until(is_noticed, what="the other limit to be noticed")
        look_after(run)
        assert seconds_on_cluster(watched, name) == 90 * 60

        def is_settled() -> bool:
            look_after(run)
            return not follow(run).has_other_limit

        wait_until(is_settled, what="the copy to have the limit")


def test_a_limit_that_changes_before_the_run_is_sent_is_the_one_that_it_gets(
    watched: Watched,
) -> None:
    run = submit(watched)
    change(run, 120)
    # It is created as it was shown, and changed then.
    assert look_after(run).has_other_limit
    assert not look_after(run).has_other_limit
    assert seconds_on_cluster(watched, run.name) == 2 * HOUR


def test_one_that_changes_while_a_worker_sends_another_is_sent_after_it(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit(watched)
    look_after(run)
    change(run, 90)

    def meanwhile(point: str) -> None:
        if (
            point == "run.limited"
            and Run.objects.get(pk=run.pk).limit_seconds != 2 * HOUR
        ):
            change(run, 120)

    monkeypatch.setattr("workloads.runs.sending.failpoints.reach", meanwhile)
    assert look_after(run).has_other_limit
    look_after(run)
    assert seconds_on_cluster(watched, run.name) == 2 * HOUR


def test_a_cluster_that_refuses_it_ends_no_run_and_says_so_until_it_takes_it(
    watched: Watched,
) -> None:
    run = submit(watched)
    look_after(run)
    change(run, 120)
    watched.kubernetes.fail(status=422)
    look_after(run)
    assert (run.state, run.is_over, run.has_other_limit) == ("waiting", False, True)
    watched.kubernetes.cluster.faults.clear()
    text = page(client(watched.ada).get(f"/runs/{run.pk}")).words
    assert f"The cluster has not taken the new time limit yet: {run.message}" in text
    Run.objects.filter(pk=run.pk).update(requeue_at=timezone.now())
    look_after(run)
    assert seconds_on_cluster(watched, run.name) == 2 * HOUR
    text = page(client(watched.ada).get(f"/runs/{run.pk}")).words
    assert "new time limit" not in text


@pytest.mark.slow
@pytest.mark.parametrize("asked", [None, 2**31 + 9], ids=["none", "too-large"])
def test_a_limit_that_a_member_changes_on_the_cluster_is_put_back(
    watched: Watched, asked: int | None
) -> None:
    with watching(watched.kubernetes):
        run = started(watched)
        theirs = {"spec": {"activeDeadlineSeconds": asked}}
        client_for(watched.cluster).merge(JOB, run.name, watched.namespace, theirs)

        def is_noticed() -> bool:
            return follow(run).has_other_limit

        wait_until(is_noticed, what="the other limit to be noticed")
        look_after(run)
    assert seconds_on_cluster(watched, run.name) == HOUR
    assert not run.has_other_limit


def test_a_start_counts_towards_the_limit(watched: Watched) -> None:
    denied = "registry.example.com/pull-denied/train:1"
    asked = replace(ASKED, values={**ASKED.values, "image": denied})
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        run = submit(watched, asked)
        look_after(run)
        until(run, "starting")
        wait_until(lambda: follow(run).limit_since is not None, what="its Job to begin")
    Run.objects.update(limit_since=timezone.now() - timedelta(minutes=50))
    with pytest.raises(BadInput, match="ends it at once"):
        change(run, 30)
    assert change(run, 90).limit_at is not None


def test_what_was_given_up_is_tried_again_and_says_that_the_run_goes_on(
    watched: Watched,
) -> None:
    run = submit(watched)
    look_after(run)
    change(run, 120)
    Run.objects.update(unfinished=MAX_UNFINISHED)
    look_after(run)
    assert run.parked_at is not None
    assert "The run goes on with its earlier limit" in run.message
    change(run, 120)
    assert Event.objects.filter(kind="run.limit_changed").count() == 1
    run.refresh_from_db()
    assert run.message == ""
    look_after(run)
    assert seconds_on_cluster(watched, run.name) == 2 * HOUR


def test_a_limit_that_was_refused_and_is_taken_back_leaves_no_message(
    watched: Watched,
) -> None:
    run = submit(watched)
    look_after(run)
    change(run, 120)
    watched.kubernetes.fail(status=422)
    assert look_after(run).message
    shown = Caller(watched.ada).get(f"/api/v1/runs/{run.pk}/").json()
    assert not shown["limit_is_on_cluster"]
    change(run, 60)
    run.refresh_from_db()
    assert (run.message, run.has_other_limit) == ("", False)


def test_the_same_limit_again_changes_nothing(watched: Watched) -> None:
    run = submit(watched)
    look_after(run)
    change(run, 60)
    run.refresh_from_db()
    assert run.limit_changed_at is None
    assert not Event.objects.filter(kind="run.limit_changed").exists()


def test_what_is_submitted_again_has_the_limit_that_the_run_had_last(
    watched: Watched,
) -> None:
    run = submit(watched)
    look_after(run)
    change(run, 120)
    run.refresh_from_db()
    again = actions.submit_again(run, by=watched.ada, key="again", now=timezone.now())
    assert again.limit_seconds == 2 * HOUR
    assert submit(watched).pk == run.pk, "the first submission is still that run"


REFUSED: list[tuple[dict[str, Any], int, str, str]] = [
    ({}, 4, "bad_limit", "from 5 to 43200"),
    ({}, 43_201, "bad_limit", "from 5 to 43200"),
    (
        {"state": "running", "running_since": -2, "limit_seconds": 4 * HOUR},
        120,
        "limit_is_reached",
        "Its limit has counted for 2 h: one of 2 hours ends it at once",
    ),
    ({"limit_seconds": None}, 60, "no_limit", "runs until you stop it"),
    ({"state": "failed", "ended_at": 0}, 90, "run_is_over", "The run is over: failed."),
    ({"stop_asked_at": 0}, 90, "run_is_stopping", "is being stopped"),
    (
        {"kind": "MPIJob"},
        90,
        "limit_is_fixed",
        "Kubernetes gives a MPIJob no other time limit",
    ),
]


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "minutes", "code", "words"), REFUSED, ids=[each[2] for each in REFUSED]
)
def test_a_limit_that_cannot_be_is_refused_with_a_sentence(
    fields: dict[str, Any], minutes: int, code: str, words: str
) -> None:
    now, given = timezone.now(), dict(fields)
    kind = given.pop("kind", "Job")
    for name in ("running_since", "ended_at", "stop_asked_at"):
        if name in given:
            given[name] = now + timedelta(hours=given[name])
    tenancy = factories.tenancy()
    ada = factories.person("Ada", teams=[tenancy.team])
    if "running_since" in given:
        given |= {
            "started_at": given["running_since"],
            "created_at": given["running_since"],
        }
    if "stop_asked_at" in given:
        given["stop_asked_by"] = ada
    run = factories.run(tenancy, ada, **given)
    if kind != "Job":
        run.manifests[0]["kind"] = kind
        run.save(update_fields=["manifests"])
    for attempt in (actions.change_limit, actions.preview_limit):
        arguments: dict[str, Any] = {"minutes": minutes, "by": ada, "now": now}
        with pytest.raises(Refused, match=words) as refused:
            attempt(run.pk, **arguments)
        assert refused.value.code == code
    body = {"minutes": minutes}
    answer = Caller(ada).post(f"runs/{run.pk}/limit/", body)
    assert answer.json()["code"] == code
    run.refresh_from_db()
    assert run.limit_changed_at is None


@pytest.mark.slow
def test_the_answer_says_what_changes_before_it_is_sent(watched: Watched) -> None:
    with watching(watched.kubernetes):
        run = started(watched)
    maintain(watched, 1.5, 2, drains=True)
    browser = client(watched.ada)
    start = browser.get(f"/runs/{run.pk}/limit")
    assert start.context["change"] is None, "nothing changes yet"
    assert "Say how long it may run" in page(start).words
    shown = browser.get(f"/runs/{run.pk}/limit?minutes=120")
    text = page(shown).words
    assert "Time limit 1 hour 2 hours" in text.replace("→", "").replace("  ", " ")
    assert "Set to 2 hours" in text
    assert "Save what you keep of it before" in text, "the maintenance stops it"
    previewed = Caller(watched.ada).post(
        f"runs/{run.pk}/limit/preview/", {"minutes": 120}
    )
    found = previewed.json()
    assert found["limit_seconds"] == 2 * HOUR
    assert "maintenance" in found["early_stops"]
    assert float(found["usd_at_limit"]) == pytest.approx(
        2 * float(run.usd_per_hour), 0.01
    )
    run.refresh_from_db()
    assert run.limit_changed_at is None
    assert browser.post(f"/runs/{run.pk}/limit", {"minutes": "120"}).status_code == 302
    run.refresh_from_db()
    assert run.limit_seconds == 2 * HOUR


def test_a_number_that_cannot_be_a_limit_stands_at_its_field(watched: Watched) -> None:
    run = submit(watched)
    browser = client(watched.ada)
    for sent, status in ((browser.get, 200), (browser.post, 422)):
        answer = sent(f"/runs/{run.pk}/limit", {"minutes": "2h"})
        assert "Write a whole number of minutes from 5 to 43,200." in page(answer).words
        assert answer.status_code == status
