"""Work that reaches its time limit is told as that, and what never began before it has run for nothing."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests import factories
from tests.calling import Caller
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.known import NOW
from tests.workloads.test_kept import owned
from tests.workloads.test_runs import ASKED, follow, look_after, submit, until
from tests.workloads.test_runs_page import client, page
from workloads.explanations import Action
from workloads.grouping import pieces_of
from workloads.listing import Around, State, Work, work_of
from workloads.models import ClusterObject, Run
from workloads.observed import Nodes
from workloads.runs.planning.abilities import learn
from workloads.watching.kept import copy_of

TOO_LONG = "Job was active longer than specified deadline"
TOO_OFTEN = "Job has reached the specified backoff limit"
JOBSET_SAYS = (
    "jobset failed due to reaching max number of restarts (first failed job: a-w-0)"
)


def at(seconds: int) -> str:
    """A moment before now, as Kubernetes writes it."""
    return (
        f"{NOW - timedelta(minutes=1) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"
    )


def says(kind: str, reason: str, message: str, seconds: int = 0) -> dict[str, Any]:
    """A status with one condition that is true."""
    return {
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": at(seconds),
            }
        ]
    }


def ended(kind: str, message: str) -> dict[str, Any]:
    """The Workload of a job that has failed, in the words that Kueue takes over from the job."""
    status = says("Finished", "Failed", message, 5)
    return owned("Workload", "w", "w1", kind, "a", "s1", spec={}, status=status)


def job(name: str, reason: str, message: str, seconds: int) -> dict[str, Any]:
    """A Job of the set that has failed."""
    spec = {"activeDeadlineSeconds": 7_200, "template": {"spec": {}}}
    status = says("Failed", reason, message, seconds)
    return owned("Job", name, name, "JobSet", "a", "s1", spec=spec, status=status)


def told(
    workload: dict[str, Any],
    jobs: Sequence[dict[str, Any]] = (),
    pods: Sequence[dict[str, Any]] = (),
) -> Work:
    """What is told of one piece of work, read from the copies of its objects."""
    [piece] = pieces_of(
        [copy_of(workload)], map(copy_of, jobs), [copy_of(one) for one in pods]
    )
    around = Around(
        cluster="training",
        queues={},
        team_queues={},
        nodes=Nodes(),
        known=lambda queue: {},
    )
    return work_of(piece, around, {}, now=NOW)


def test_a_jobset_whose_job_ran_out_of_time_was_stopped_at_its_limit() -> None:
    found = told(
        ended("JobSet", JOBSET_SAYS),
        [
            job("a-w-0", "DeadlineExceeded", TOO_LONG, 0),
            job("a-w-1", "BackoffLimitExceeded", TOO_OFTEN, 1),
        ],
    )
    assert (found.state, found.why.code) == (State.FAILED, "stopped_at_limit")
    assert found.why.what == "It was stopped at its time limit of 2 hours."
    assert found.why.detail == TOO_LONG
    assert found.why.step is not None
    assert found.why.step.action is Action.RUN_AGAIN


def test_a_jobset_whose_first_job_failed_by_itself_has_failed() -> None:
    found = told(
        ended("JobSet", JOBSET_SAYS),
        [
            job("a-w-0", "BackoffLimitExceeded", TOO_OFTEN, 0),
            job("a-w-1", "DeadlineExceeded", TOO_LONG, 1),
        ],
    )
    assert (found.why.code, found.why.what) == ("failed", "It has failed.")
    assert found.why.detail == JOBSET_SAYS
    assert told(ended("JobSet", JOBSET_SAYS)).why.code == "failed"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("Job", TOO_LONG),
        ("TrainJob", "TrainJob exceeded its active deadline"),
        (
            "PyTorchJob",
            "PyTorchJob a has failed because it was active longer than specified deadline",
        ),
    ],
)
def test_a_job_that_says_it_itself_was_stopped_at_its_limit(
    kind: str, message: str
) -> None:
    found = told(ended(kind, message))
    assert (found.state, found.why.code) == (State.FAILED, "stopped_at_limit")
    assert found.why.what == "It was stopped at its time limit."


def test_pods_that_have_the_limit_themselves_tell_of_it() -> None:
    def pod(name: str, reason: str) -> dict[str, Any]:
        status = {"phase": "Failed", "reason": reason}
        return owned("Pod", name, name, "Job", "a", "s1", spec={}, status=status)

    late = [pod("a-0", "DeadlineExceeded"), pod("a-1", "DeadlineExceeded")]
    assert told(ended("Job", "Job failed"), [], late).why.code == "stopped_at_limit"
    crashed = [late[0], pod("a-1", "")]
    assert told(ended("Job", "Job failed"), [], crashed).why.code == "failed"


def limited(run: Run, seconds: int) -> None:
    """Give a run that is not sent yet less time than the form lets anybody give it."""

    def limit(found: Any) -> None:
        for each in found.values() if isinstance(found, dict) else found:
            if isinstance(each, dict | list):
                limit(each)
        if isinstance(found, dict) and "activeDeadlineSeconds" in found:
            found["activeDeadlineSeconds"] = seconds

    limit(run.manifests)
    run.limit_seconds = run.limit_on_cluster = seconds
    run.save(update_fields=["manifests", "limit_seconds", "limit_on_cluster"])


@pytest.mark.slow
def test_a_run_on_several_nodes_that_reaches_its_time_limit_says_so_everywhere(
    watched: Watched,
) -> None:
    learn(now=timezone.now())
    # It may be started anew after a failure, and not once its time is over.
    values = {**ASKED.values, "nodes": 2, "gpus": 1, "restarts": 3}
    run = submit(watched, replace(ASKED, template="pytorch", values=values))
    limited(run, 4)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
        until(run, "failed")
    sentence = "It was stopped at its time limit of 1 minute."
    assert run.message == f"{sentence} {TOO_LONG}"
    assert run.started_at is not None
    assert run.cost(timezone.now()) > 0
    assert run.run_attempts.count() == 1
    answer = client(watched.ada).get(f"/runs/{run.pk}")
    assert sentence in page(answer).words
    assert "ended with an error" not in page(answer).words
    again = f'again={run.pk}#id_minutes">Run it again with more time</a>'
    assert again in answer.content.decode()
    found = Caller(watched.ada).get(f"/api/v1/runs/{run.pk}/").json()
    assert (found["state"], found["message"]) == ("failed", run.message)


@pytest.mark.slow
def test_a_run_whose_image_never_came_has_neither_a_start_nor_a_cost_at_its_limit(
    watched: Watched,
) -> None:
    image = "registry.example.com/pull-denied/train:1"
    run = submit(watched, replace(ASKED, values={**ASKED.values, "image": image}))
    limited(run, 4)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "starting")
        until(run, "failed")
    cause = f"Its image {image} does not come: the registry does not have it"
    assert run.message.startswith(cause)
    assert "It was stopped at its time limit of 1 minute." in run.message
    assert run.started_at is None
    assert run.cost(timezone.now()) == 0
    answer = client(watched.ada).get(f"/runs/{run.pk}")
    words = page(answer).words
    assert cause in words
    assert "Started to run" not in words
    again = f'again={run.pk}">Change it and submit it again</a>'
    assert again in answer.content.decode()
    found = Caller(watched.ada).get(f"/api/v1/runs/{run.pk}/").json()
    assert (found["started_at"], found["message"]) == (None, run.message)
    log = Caller(watched.ada).get(f"/api/v1/runs/{run.pk}/logs/")
    assert log.json()["code"] == "log_never_begun"


NEVER: dict[str, Any] = {"waiting": {"reason": "ImagePullBackOff"}}
LOST: dict[str, Any] = {"terminated": {"reason": "ContainerStatusUnknown"}}
CRASHED: dict[str, Any] = {"terminated": {"reason": "Error", "exitCode": 1}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("held_up", "phase", "state", "ready", "has_run"),
    [
        # Of what nobody saw it is believed that it ran.
        ("", "", {}, "False", True),
        ("Its image does not come.", "", {}, "False", False),
        ("Its image does not come.", "", {}, "True", True),
        ("Its image does not come.", "Failed", CRASHED, "False", True),
        ("", "Failed", CRASHED, "False", True),
        ("", "Failed", NEVER, "False", False),
        ("", "Failed", LOST, "False", False),
        ("", "Pending", NEVER, "False", True),
    ],
)
def test_a_run_that_failed_has_a_start_unless_no_pod_of_it_was_seen_to_begin(
    watched: Watched,
    held_up: str,
    phase: str,
    state: dict[str, Any],
    ready: str,
    has_run: bool,
) -> None:
    now = timezone.now()
    let_in = now - timedelta(minutes=5)
    run = factories.run(
        watched.tenancy,
        watched.ada,
        state="starting",
        created_at=let_in,
        sent_at=let_in,
        held_up=held_up,
    )

    def told(kind: str, status: str, when: datetime) -> dict[str, str]:
        return {
            "type": kind,
            "status": status,
            "reason": "Failed",
            "lastTransitionTime": when.isoformat(),
        }

    conditions = [
        told("Admitted", "True", let_in),
        told("PodsReady", ready, let_in),
        told("Finished", "True", now - timedelta(seconds=30)),
    ]
    copied = [owned("Workload", "w", "w1", "Job", run.name, "j1")]
    copied[0] |= {"spec": {}, "status": {"conditions": conditions}}
    if phase:
        pod = owned("Pod", f"{run.name}-0", "p1", "Job", run.name, "j1", spec={})
        statuses = [{"name": "train", "state": state}]
        copied.append(pod | {"status": {"phase": phase, "containerStatuses": statuses}})
    for one in copied:
        one["metadata"]["namespace"] = watched.namespace
        ClusterObject.objects.create(
            cluster=watched.cluster,
            kind=one["kind"],
            namespace=watched.namespace,
            name=one["metadata"]["name"],
            body=copy_of(one),
        )
    follow(run)
    assert run.state == "failed"
    assert (run.started_at is not None, run.ran_seconds > 0) == (has_run, has_run)
    assert (held_up != "" and held_up in run.message) == (not has_run and held_up != "")
