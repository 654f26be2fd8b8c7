"""From a submission to the cluster and to its end: sent once, followed, stopped, explained when it cannot be."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from allocations.ends.actions import give_back
from allocations.models import Allocation
from audit.models import Event
from connectors.kubernetes import path
from notices.kinds import NoticeKind
from notices.models import Notice
from provisioning.models import Tenancy
from tests import factories
from tests.services.process import wait_until
from tests.workloads.conftest import JOB, POD, Watched, is_read, is_seen, watching
from web.refusals import BadValues, Conflict, NoRight, Refused
from workloads.models import ClusterAbility, Run
from workloads.runs import actions, ending, following, sending
from workloads.runs.planning.plan import Submission
from workloads.runs.planning.queue_copies import queue_demand
from workloads.runs.states import State

ASKED = Submission(
    template="single-node",
    title="Fine-tune BERT",
    flavor="a100",
    values={
        "image": "registry.example.com/vision/train:1",
        "program": ("train.py",),
        "gpus": 2,
        "cpus": 4,
        "memory": 16,
        "minutes": 60,
    },
    script={"file": "train.py", "text": "print('hello')\n"},
)


def submit(watched: Watched, asked: Submission = ASKED, *, key: str = "one") -> Run:
    return actions.submit(
        watched.tenancy.pk, asked, by=watched.ada, key=key, now=timezone.now()
    )


def look_after(run: Run) -> Run:
    sending.look_after(run.pk, now=timezone.now)
    run.refresh_from_db()
    return run


def follow(run: Run) -> Run:
    following.follow(now=timezone.now, gone=partial(following.check, now=timezone.now))
    run.refresh_from_db()
    return run


def until(run: Run, state: str) -> None:
    def reached() -> bool:
        Run.objects.filter(pk=run.pk).update(requeue_at=timezone.now())
        look_after(run)
        return is_seen(follow(run), state)

    wait_until(reached, what=f"the run to be {state}")


def there(watched: Watched, ref: tuple[str, str], name: str) -> dict[str, Any] | None:
    return watched.kubernetes.get(ref, name, watched.namespace)


def test_what_is_shown_is_what_is_created_and_it_is_created_once(
    watched: Watched,
) -> None:
    shown = actions.preview(watched.tenancy.pk, ASKED, by=watched.ada, key="one")
    assert shown.problems == []
    run = submit(watched)
    assert submit(watched).pk == run.pk
    assert run.name == shown.name
    assert run.name.startswith("fine-tune-bert-")
    assert run.manifests == [*shown.manifests]
    look_after(run)
    assert (run.state, run.message) == ("waiting", "")
    job = there(watched, JOB, run.name)
    assert job is not None
    assert (
        job["metadata"]["annotations"]["quartermaster.io/started-by"]
        == watched.ada.name
    )
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    script = there(watched, ("v1", "ConfigMap"), f"{run.name}-script")
    assert script is not None
    assert script["data"] == {"train.py": "print('hello')\n"}
    assert script["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    # A second worker that was told of it does nothing.
    assert not sending.look_after(run.pk, now=timezone.now)


def test_an_answer_that_was_lost_creates_nothing_twice(watched: Watched) -> None:
    run = submit(watched)
    watched.kubernetes.create(run.main)
    before = there(watched, JOB, run.name)
    look_after(run)
    assert run.state == "waiting"
    job = there(watched, JOB, run.name)
    assert before is not None
    assert job is not None
    assert job["metadata"]["uid"] == before["metadata"]["uid"]


def test_somebody_elses_object_of_the_same_name_is_left_alone(watched: Watched) -> None:
    run = submit(watched)
    watched.job(run.name)
    look_after(run)
    assert (run.state, run.is_over) == ("refused", True)
    assert "not of this run" in run.message
    assert there(watched, JOB, run.name) is not None


def test_a_run_of_which_a_part_is_refused_for_good_leaves_nothing_on_the_cluster(
    watched: Watched,
) -> None:
    run = submit(watched)
    script = next(one for one in run.manifests if one["kind"] == "ConfigMap")
    watched.kubernetes.create(
        {**script, "metadata": {**script["metadata"], "labels": {}}}
    )
    look_after(run)
    assert (run.state, run.is_over) == ("refused", True)
    assert there(watched, JOB, run.name) is None


@pytest.mark.slow
def test_it_runs_ends_and_says_how_long_it_took(watched: Watched) -> None:
    values = {**ASKED.values, "launcher": "none", "program": ("sleep", "2")}
    run = submit(watched, replace(ASKED, values=values))
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "finished")
    assert run.is_over
    # Kubernetes tells times in whole seconds.
    assert run.ran(timezone.now()) >= timedelta(seconds=1)
    assert run.cost(timezone.now()) > 0
    assert run.running_since is None
    assert [
        event.kind for event in Event.objects.filter(subject_type="run").order_by("seq")
    ] == [
        "run.submitted",
        "run.started",
        "run.ended",
    ]


@pytest.mark.slow
def test_one_that_waits_says_so_and_stops_before_it_runs(watched: Watched) -> None:
    first, second = submit(watched), submit(watched, key="two")
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(first)
        until(first, "running")
        look_after(second)
        assert follow(second).state == "waiting"
        actions.stop(second.pk, by=watched.ada, now=timezone.now())
        until(second, "stopped")
        actions.stop(first.pk, by=watched.ada, now=timezone.now())
        until(first, "stopped")
    assert there(watched, JOB, first.name) is None
    assert not watched.kubernetes.names(POD)
    again = actions.stop(first.pk, by=watched.ada, now=timezone.now())
    assert again.state == "stopped"
    assert Event.objects.filter(kind="run.stopped").count() == 2


def test_one_that_is_over_by_itself_is_not_stopped(watched: Watched) -> None:
    now = timezone.now()
    over = factories.run(
        watched.tenancy,
        watched.ada,
        state="finished",
        created_at=now,
        sent_at=now,
        started_at=now,
        ended_at=now,
    )
    with pytest.raises(Conflict, match="The run is over: finished"):
        actions.stop(over.pk, by=watched.ada, now=now)


@pytest.mark.slow
def test_the_demand_counts_what_runs_and_what_waits_in_one_query(
    watched: Watched,
) -> None:
    first, second = submit(watched), submit(watched, key="two")
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(first)
        until(first, "running")
        look_after(second)
        wait_until(
            lambda: queue_demand(watched.tenancy, "a100", 2).waiting == 1,
            what="the second to wait",
        )
    with CaptureQueriesContext(connection) as seen:
        demand = queue_demand(watched.tenancy, "a100", 2)
    assert (demand.used, demand.waiting, demand.estimate) == (2, 1, None)
    assert len(seen) == 1
    assert queue_demand(watched.tenancy, "h100", 2).used == 0
    below = {
        name: queue_demand(watched.tenancy, "a100", 2, priority=name).below
        for name in watched.tenancy.open_priorities
    }
    # Both are exploratory, so nothing of that priority pushes them out.
    assert below == {"scheduled-training": 2, "exploratory": 0, "best-effort": 0}


@pytest.mark.slow
def test_a_run_that_cannot_be_followed_keeps_no_other_from_being_followed(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, other = submit(watched), submit(watched, key="two")
    know = following._know

    def fails_at_one(run: Run, *args: Any, **named: Any) -> None:
        if run.pk == broken.pk:
            raise RuntimeError("broken")
        know(run, *args, **named)

    monkeypatch.setattr(following, "_know", fails_at_one)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(other)
        look_after(broken)
        failures = []

        def reached() -> bool:
            try:
                follow(other)
            except ExceptionGroup as failure:
                failures.append(failure)
            other.refresh_from_db()
            return bool(failures) and is_seen(other, "running")

        wait_until(reached, what="the other to run while this one fails")


@pytest.mark.slow
def test_one_that_somebody_deletes_on_the_cluster_is_gone(watched: Watched) -> None:
    run = submit(watched)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
        where = path(JOB, watched.namespace, run.name)
        watched.kubernetes.write("DELETE", f"{where}?propagationPolicy=Background")
        until(run, "gone")
    assert run.message == ""


@pytest.mark.parametrize("state", [State.FAILED, State.REFUSED, State.GONE])
def test_who_started_a_run_that_never_began_is_told_of_its_end_at_once(
    watched: Watched, state: State
) -> None:
    run = submit(watched)
    assert ending.end(run.pk, state, now=timezone.now())
    told = Notice.objects.get(kind=NoticeKind.RUN_ENDED)
    assert told.person == watched.ada
    assert "last lines" not in told.message["sentence"], "there are none"


def test_nobody_is_told_of_the_end_of_a_short_run_that_began(watched: Watched) -> None:
    run = submit(watched)
    Run.objects.filter(pk=run.pk).update(started_at=timezone.now())
    assert ending.end(run.pk, State.FAILED, now=timezone.now())
    assert not Notice.objects.filter(kind=NoticeKind.RUN_ENDED).exists()


def test_a_stop_that_comes_before_the_sending_sends_nothing(watched: Watched) -> None:
    run = submit(watched)
    actions.stop(run.pk, by=watched.ada, now=timezone.now())
    look_after(run)
    assert run.state == "stopped"
    assert there(watched, JOB, run.name) is None


def test_a_cluster_that_is_away_is_tried_again_and_says_so(watched: Watched) -> None:
    run = submit(watched)
    watched.kubernetes.fail(status=503)
    look_after(run)
    assert (run.state, run.is_over) == ("submitted", False)
    assert "503" in run.message
    assert run.requeue_at > timezone.now() - timedelta(seconds=1)
    watched.kubernetes.cluster.faults.clear()
    Run.objects.filter(pk=run.pk).update(requeue_at=timezone.now())
    assert look_after(run).state == "waiting"


Change = Callable[[Submission], Submission]


def values(**changed: object) -> Change:
    return lambda asked: replace(asked, values={**asked.values, **changed})


REFUSED: dict[str, tuple[Change, str, str]] = {
    "more than a node has": (values(gpus=16), "gpus", "A node has 8 × A100"),
    "more than the team holds": (values(gpus=8), "gpus", "Your team holds 2"),
    "no such template": (
        lambda asked: replace(asked, template="magic"),
        "template",
        "no such template",
    ),
    "not installed": (
        lambda asked: replace(asked, template="mpi"),
        "template",
        "does not know MPIJob",
    ),
    "a flavor it holds none of": (
        lambda asked: replace(asked, flavor="h100"),
        "flavor",
        "holds no h100",
    ),
    "an unknown parameter": (values(turbo=True), "turbo", "no such parameter"),
    "an image that is none": (
        values(image="$(id)"),
        "image",
        "is no address of a container image",
    ),
    "a script of 10 MB": (
        lambda asked: replace(
            asked, script={"file": "train.py", "text": "#" * 10_000_000}
        ),
        "script",
        "256 KiB",
    ),
    "a script with a path": (
        lambda asked: replace(asked, script={"file": "../x.py", "text": "1"}),
        "script",
        "plain name",
    ),
    "a source on the loopback": (
        lambda asked: replace(
            asked,
            script=None,
            repository={"url": "https://127.0.0.1/x.git", "revision": "main"},
        ),
        "repository",
        "not a machine of this network",
    ),
    "a variable of the linker": (
        lambda asked: replace(asked, variables={"LD_PRELOAD": "x.so"}),
        "variables",
        "LD_PRELOAD",
    ),
    "a priority above the team's": (
        lambda asked: replace(asked, priority="production-inference"),
        "priority",
        "may use these priorities",
    ),
    "no name": (lambda asked: replace(asked, title="  "), "title", "name"),
    "checkpoints that would be lost": (
        values(checkpoint="/ckpt"),
        "checkpoint",
        "would be lost",
    ),
    "one path for two volumes": (
        lambda asked: replace(
            asked,
            claims=[
                {"name": "datasets", "path": "/d"},
                {"name": "other", "path": "/d/"},
            ],
        ),
        "claims",
        "same path",
    ),
    "GPUs of no kind": (
        lambda asked: replace(asked, flavor=""),
        "flavor",
        "Choose the kind",
    ),
    "more memory than there is": (values(memory=4000), "memory", "GiB of memory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_run_is_refused_with_a_sentence_at_its_field(
    watched: Watched, name: str
) -> None:
    ClusterAbility.objects.create(
        cluster=watched.cluster, kinds=["Job.batch/v1"], seen_at=timezone.now()
    )
    change, field, said = REFUSED[name]
    shown = actions.preview(
        watched.tenancy.pk, change(ASKED), by=watched.ada, key="one"
    )
    assert {one.field for one in shown.problems} == {field}, shown.problems
    assert said in shown.problems[0].text
    with pytest.raises(Refused, match=r".+") as refusal:
        submit(watched, change(ASKED))
    assert refusal.value.field == field
    assert not Run.objects.exists()


def test_only_people_of_the_team_submit_and_only_where_it_stays(
    watched: Watched,
) -> None:
    stranger = factories.person("Grace Hopper")
    with pytest.raises(NoRight):
        actions.submit(
            watched.tenancy.pk, ASKED, by=stranger, key="one", now=timezone.now()
        )
    run = submit(watched)
    with pytest.raises(NoRight):
        actions.stop(run.pk, by=stranger, now=timezone.now())
    Tenancy.objects.filter(pk=watched.tenancy.pk).update(observed_generation=0)
    with pytest.raises(Conflict, match="not there yet"):
        submit(watched, key="two")


def test_the_same_key_with_other_values_is_another_thing(watched: Watched) -> None:
    submit(watched)
    with pytest.raises(Conflict, match="other values"):
        submit(watched, replace(ASKED, variables={"EPOCHS": "3"}))


def test_the_same_submission_is_the_same_run_where_it_could_be_no_new_one(
    watched: Watched,
) -> None:
    """What ended in between keeps its answer from nobody whose first one was lost."""
    run = submit(watched)
    held, now = Allocation.objects.get(), timezone.now()
    give_back(held.pk, gpus=None, by=watched.ada, now=now)
    with pytest.raises(BadValues):
        submit(watched, key="two")
    assert submit(watched) == run
    with pytest.raises(Conflict, match="other values"):
        submit(watched, replace(ASKED, variables={"EPOCHS": "3"}))


def test_a_run_is_submitted_again_as_it_was(watched: Watched) -> None:
    run = submit(watched)
    again = actions.submit_again(run, by=watched.ada, key="again", now=timezone.now())
    assert again.pk != run.pk
    assert (again.again_of_id, again.submission) == (run.pk, run.submission)


def test_what_nobody_has_asked_the_cluster_yet_is_not_called_missing(
    watched: Watched,
) -> None:
    shown = actions.preview(
        watched.tenancy.pk, replace(ASKED, template="mpi"), by=watched.ada, key="one"
    )
    assert ["has not asked the cluster yet" in one.text for one in shown.problems] == [
        True
    ]
