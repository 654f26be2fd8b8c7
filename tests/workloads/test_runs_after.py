"""Runs that begin when another one has finished: not sent before, sent once then, skipped otherwise."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from accounts.models import User
from audit.models import Event
from insights.failed_runs.gathering import failed_runs
from notices.models import Notice
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from web.refusals import BadValues, Conflict, NoRight
from workloads.models import Run
from workloads.runs import actions, ending, following, sending
from workloads.runs.after import MAX_OFFERED, offered_before
from workloads.runs.planning.plan import Submission
from workloads.runs.states import ENDS, LEGAL, OVER, WORDS, State

ASKED = Submission(
    template="single-node",
    title="Train",
    flavor="a100",
    values={
        "image": "registry.example.com/vision/train:1",
        "program": ("train.py",),
        "gpus": 1,
        "minutes": 60,
    },
)
EVALUATE = replace(
    ASKED, title="Evaluate", flavor="", values={**ASKED.values, "gpus": 0}
)
pytestmark = pytest.mark.django_db
NOT_FINISHED = sorted(OVER - {State.FINISHED})


@pytest.fixture
def ada(db: None) -> User:
    return factories.person("Ada Okafor", teams=[factories.team("Vision")])


@pytest.fixture
def tenancy(ada: User) -> Tenancy:
    """A namespace with 2 A100 that is set up."""
    return place_of_team(ada)


def place_of_team(of: User, cluster: str = "training") -> Tenancy:
    """A namespace of somebody's team with 2 A100 on a cluster of its own."""
    row = factories.cluster(cluster)
    a100 = factories.flavor(row, "a100")
    made = factories.make_true(factories.tenancy(of.teams[0], row))
    factories.allocation(of, made, a100, gpus=2)
    factories.make_true(made)
    return made


def submit(
    tenancy: Tenancy, by: User, asked: Submission = EVALUATE, *, key: str = ""
) -> Run:
    key = key or f"run-{Run.objects.count()}"
    return actions.submit(tenancy.pk, asked, by=by, key=key, now=timezone.now())


def after(run: Run, asked: Submission = EVALUATE) -> Submission:
    return replace(asked, after=run.pk)


def end(run: Run, state: str) -> None:
    """End a run as a worker does."""
    if state == State.STOPPED:
        Run.objects.filter(pk=run.pk).update(
            stop_asked_at=timezone.now(), stop_asked_by=run.requester
        )
    assert ending.end(run.pk, State(state), now=timezone.now())


def state_of(run: Run) -> str:
    return Run.objects.values_list("state", flat=True).get(pk=run.pk)


def refusal(tenancy: Tenancy, by: User, asked: Submission) -> tuple[str, str, str]:
    """The field, the code and the sentence with which a submission is refused."""
    with pytest.raises(BadValues) as refused:
        submit(tenancy, by, asked)
    [one] = refused.value.problems
    return one.field, one.code, str(one)


def test_it_is_not_sent_and_no_worker_looks_at_it_until_the_other_one_ends(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada, ASKED)
    run = submit(tenancy, ada, after(first))
    assert (run.state, run.after_id) == ("blocked", first.pk)
    assert not sending.look_after(run.pk, now=timezone.now)
    due = Run.objects.due(timezone.now())
    assert [one.pk for one in due] == [first.pk]
    [event] = Event.objects.filter(kind="run.submitted", subject_id=str(run.pk))
    assert event.details["after"] == first.pk
    assert state_of(run) == "blocked"


def test_it_is_sent_as_soon_as_the_other_one_has_finished(
    tenancy: Tenancy, ada: User, django_capture_on_commit_callbacks: Any
) -> None:
    first = submit(tenancy, ada, ASKED)
    run = submit(tenancy, ada, after(first))
    with django_capture_on_commit_callbacks() as callbacks:
        end(first, "finished")
    assert len(callbacks) >= 1
    assert state_of(run) == "submitted"
    # Where the message is lost, the clock finds it.
    assert Run.objects.due(timezone.now()).filter(pk=run.pk).exists()
    assert ending.end(first.pk, State.FINISHED, now=timezone.now()) is False


@pytest.mark.slow
@pytest.mark.parametrize("state", NOT_FINISHED)
def test_it_is_skipped_where_the_other_one_does_not_finish(
    tenancy: Tenancy, ada: User, state: State
) -> None:
    first = (
        submit(tenancy, ada, after(submit(tenancy, ada)))
        if state is State.SKIPPED
        else submit(tenancy, ada)
    )
    run = submit(tenancy, ada, after(first))
    end(first, state)
    run.refresh_from_db()
    how = state.words.lower()
    assert (run.state, run.message) == (
        "skipped",
        f"It waited for run {first.pk}, Evaluate: {how}.",
    )
    assert (run.sent_at, run.started_at, run.is_over) == (None, None, True)
    assert not Run.objects.due(timezone.now()).filter(pk=run.pk).exists()
    [event] = Event.objects.filter(kind="run.ended", subject_id=str(run.pk))
    assert event.details["state"] == "skipped"
    assert Notice.objects.filter(subject_id=str(run.pk), kind="run_ended").exists()


def test_of_three_each_is_sent_after_the_one_before(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada)
    second = submit(tenancy, ada, after(first))
    third = submit(tenancy, ada, after(second))
    beside = submit(tenancy, ada, after(first))
    end(first, "finished")
    them = second, third, beside
    assert [*map(state_of, them)] == ["submitted", "blocked", "submitted"]
    end(second, "finished")
    assert state_of(third) == "submitted"


def test_a_failure_skips_all_that_follows_and_each_says_what_it_waited_for(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada)
    other = submit(tenancy, ada)
    second = submit(tenancy, ada, after(first))
    of_other = submit(tenancy, ada, after(other))
    third = submit(tenancy, ada, after(second))
    beside = submit(tenancy, ada, after(first))
    last = submit(tenancy, ada, after(third))
    end(first, "failed")
    them = second, third, beside, last
    assert {*map(state_of, them)} == {"skipped"}
    assert [state_of(one) for one in (other, of_other)] == ["submitted", "blocked"]
    third.refresh_from_db()
    assert third.message == f"It waited for run {second.pk}, Evaluate: skipped."


@pytest.mark.slow
def test_a_hundred_in_a_row_end_together(tenancy: Tenancy, ada: User) -> None:
    first = last = factories.run(tenancy, ada)
    for _ in range(100):
        last = factories.run(tenancy, ada, state="blocked", after=last)
    end(first, "failed")
    assert Run.objects.filter(state="skipped").count() == 100


def test_what_waits_is_stopped_at_once_and_what_waits_for_it_is_skipped(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada)
    run = submit(tenancy, ada, after(first))
    last = submit(tenancy, ada, after(run))
    stopped = actions.stop(run.pk, by=ada, now=timezone.now())
    assert (stopped.state, stopped.is_over) == ("stopped", True)
    assert [state_of(one) for one in (first, last)] == ["submitted", "skipped"]
    # Again it is the same, and what has been skipped cannot be stopped.
    assert actions.stop(run.pk, by=ada, now=timezone.now()).state == "stopped"
    with pytest.raises(Conflict, match="The run is over: skipped"):
        actions.stop(last.pk, by=ada, now=timezone.now())
    end(first, "finished")
    assert [state_of(one) for one in (run, last)] == ["stopped", "skipped"]


def test_nobody_else_stops_it(tenancy: Tenancy, ada: User) -> None:
    run = submit(tenancy, ada, after(submit(tenancy, ada)))
    mallory = factories.person("Mallory", teams=[factories.team("Speech")])
    with pytest.raises(NoRight):
        actions.stop(run.pk, by=mallory, now=timezone.now())
    assert state_of(run) == "blocked"


def test_after_one_that_has_finished_it_is_sent_at_once(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada)
    end(first, "finished")
    run = submit(tenancy, ada, after(first))
    assert (run.state, run.after_id) == ("submitted", first.pk)


@pytest.mark.slow
@pytest.mark.parametrize("state", ["failed", "stopped", "refused", "gone"])
def test_after_one_that_did_not_finish_nothing_begins(
    tenancy: Tenancy, ada: User, state: str
) -> None:
    first = submit(tenancy, ada)
    end(first, state)
    how = State(state).words.lower()
    assert refusal(tenancy, ada, after(first)) == (
        "after",
        "run_did_not_finish",
        f"Run {first.pk} did not finish: {how}. Nothing can begin after it.",
    )
    assert Run.objects.count() == 1


def test_another_teams_run_is_refused_as_one_that_does_not_exist(
    tenancy: Tenancy, ada: User
) -> None:
    mallory = factories.person("Mallory", teams=[factories.team("Speech")])
    theirs = submit(place_of_team(mallory, "inference"), mallory)
    field, code, words = refusal(tenancy, ada, after(theirs))
    unknown = replace(EVALUATE, after=theirs.pk + 1)
    said = words.replace(str(theirs.pk), str(theirs.pk + 1))
    assert refusal(tenancy, ada, unknown) == (field, code, said)
    assert (field, code) == ("after", "no_such_run")
    assert Run.objects.count() == 1


def test_it_may_go_to_another_cluster_and_is_lost_with_that(
    tenancy: Tenancy, ada: User
) -> None:
    elsewhere = place_of_team(ada, "inference")
    first = submit(tenancy, ada)
    run = submit(elsewhere, ada, after(first))
    last = submit(tenancy, ada, after(run))
    assert run.state == "blocked"
    now = timezone.now()
    type(elsewhere.cluster).objects.filter(pk=elsewhere.cluster_id).update(
        written_off_at=now, away_since=now, enabled=False
    )
    following.follow(now=timezone.now, gone=lambda run_id: None)
    them = first, run, last
    assert [*map(state_of, them)] == ["submitted", "gone", "skipped"]


def test_the_same_key_is_the_same_run(tenancy: Tenancy, ada: User) -> None:
    first = submit(tenancy, ada)
    run = submit(tenancy, ada, after(first), key="one")
    assert submit(tenancy, ada, after(first), key="one").pk == run.pk
    with pytest.raises(Conflict, match="This key came with other values"):
        submit(tenancy, ada, EVALUATE, key="one")


def test_its_time_limit_changes_while_it_waits_and_sends_nothing(
    tenancy: Tenancy, ada: User
) -> None:
    run = submit(tenancy, ada, after(submit(tenancy, ada)))
    actions.change_limit(run.pk, minutes=90, by=ada, now=timezone.now())
    assert not sending.look_after(run.pk, now=timezone.now)
    assert state_of(run) == "blocked"


def test_once_more_it_waits_only_for_what_still_goes_on(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada)
    run = submit(tenancy, ada, after(first))

    def again(key: str, **changes: Any) -> Run:
        return actions.submit_again(
            run, by=ada, key=key, now=timezone.now(), changes=changes
        )

    assert again("one").after_id == first.pk
    assert again("two", after=None).after_id is None
    shown = actions.preview_again(run.pk, {"after": None}, by=ada, key="two")
    [changed] = shown.differences
    assert (changed.label, changed.before, changed.after) == (
        "Begins after",
        f"run {first.pk}",
        "",
    )
    end(first, "failed")
    once_more = again("three")
    assert (once_more.after_id, once_more.state) == (None, "submitted")
    assert actions.preview_again(run.pk, {}, by=ada, key="three").differences == []


def test_the_newest_that_go_on_are_offered_and_those_that_are_named(
    tenancy: Tenancy, ada: User
) -> None:
    over = factories.run(tenancy, ada, state="failed", ended_at=timezone.now())
    old = factories.run(tenancy, ada)
    live = [factories.run(tenancy, ada) for _ in range(MAX_OFFERED)]
    team = tenancy.team_id
    newest = [one.pk for one in reversed(live)]
    assert [one.pk for one in offered_before(team)] == newest
    named = [
        one.pk for one in offered_before(team, named=[over.pk, old.pk, live[0].pk])
    ]
    assert named == [*newest, old.pk, over.pk]
    assert offered_before(factories.team("Speech").pk, named=[over.pk]) == []


def test_what_may_follow_a_run_that_waits() -> None:
    assert LEGAL[State.BLOCKED] == {
        State.SUBMITTED, State.STOPPED, State.SKIPPED, State.GONE,
    }  # fmt: skip
    before = {state for state, following in LEGAL.items() if State.SKIPPED in following}
    assert before == {State.BLOCKED}
    assert {*WORDS} == {*State}
    assert {*ENDS} == OVER


def body(tenancy: Tenancy, **more: Any) -> dict[str, Any]:
    """A submission as a call sends it."""
    asked = EVALUATE.as_json()
    kept = {name: asked[name] for name in ("template", "title", "values")}
    return {**kept, "tenancy": tenancy.pk, **more}


@pytest.mark.slow
def test_over_the_api_it_is_submitted_read_listed_and_stopped(
    tenancy: Tenancy, ada: User
) -> None:
    caller, first = Caller(ada), submit(tenancy, ada, ASKED)
    made = caller.post("runs/", body(tenancy, after=first.pk))
    assert made.status_code == 201, made.content
    run = made.json()
    assert (run["state"], run["after"]) == ("blocked", first.pk)
    assert caller.get(f"runs/{first.pk}/").json()["after"] is None
    [listed] = caller.get("runs/?state=blocked&why=true").json()["results"]
    assert (listed["id"], listed["after"]) == (run["id"], first.pk)
    assert caller.post("runs/", body(tenancy, after=None)).json()["after"] is None
    stopped = caller.post(f"runs/{run['id']}/stop/")
    assert (stopped.status_code, stopped.json()["state"]) == (200, "stopped")


def test_the_preview_says_that_it_begins_then_and_promises_no_start(
    tenancy: Tenancy, ada: User
) -> None:
    caller, first = Caller(ada), submit(tenancy, ada, ASKED)
    asked = body(tenancy, after=first.pk)
    shown = caller.post("runs/preview/", asked).json()
    assert shown["is_possible"]
    assert shown["start"] == {
        "at_once": False,
        "sentence": "It begins when Train has finished",
        "detail": "It is sent to the cluster then, and takes its place in the line. "
        "If that run does not finish, this one is skipped.",
    }
    end(first, "finished")
    at_once = caller.post("runs/preview/", asked).json()
    assert "begins when" not in at_once["start"]["sentence"]


@pytest.mark.slow
@pytest.mark.parametrize("path", ["runs/", "runs/preview/"])
def test_over_the_api_a_run_that_cannot_be_waited_for_is_a_problem_of_its_field(
    tenancy: Tenancy, ada: User, path: str
) -> None:
    mallory = factories.person("Mallory", teams=[factories.team("Speech")])
    theirs = submit(place_of_team(mallory, "inference"), mallory)
    failed = submit(tenancy, ada)
    end(failed, "failed")
    caller = Caller(ada)
    for number, code in (
        (theirs.pk, "no_such_run"),
        (10**6, "no_such_run"),
        (10**30, "no_such_run"),
        (failed.pk, "run_did_not_finish"),
    ):
        answer = caller.post(path, body(tenancy, after=number))
        if path == "runs/":
            assert answer.status_code == 422
            [problem] = answer.json()["errors"]
            found = problem["pointer"], problem["code"]
            assert found == ("/after", code)
        else:
            assert not answer.json()["is_possible"]
            [problem] = answer.json()["problems"]
            assert (problem["field"], problem["code"]) == ("after", code)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, -1, "1", 1.5, True])
def test_only_a_number_names_the_run_to_wait_for(
    tenancy: Tenancy, ada: User, number: object
) -> None:
    answer = Caller(ada).post("runs/", body(tenancy, after=number))
    assert answer.status_code in (400, 422)
    assert not Run.objects.exists()


def test_what_was_skipped_is_no_failure_and_did_not_end_as_one_that_ran(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada)
    submit(tenancy, ada, after(first))
    end(first, "failed")
    found = failed_runs(Run.objects.all(), now=timezone.now())
    assert (found.ended, found.runs, [one.last.pk for one in found.causes]) == (
        1,
        1,
        [first.pk],
    )


def test_the_database_has_what_waits_be_sent_or_end_and_nothing_come_back_to_waiting(
    tenancy: Tenancy, ada: User
) -> None:
    first = factories.run(tenancy, ada)
    waits = factories.run(tenancy, ada, state="blocked", after=first)
    sent = factories.run(tenancy, ada, after=first)
    moves = [(waits, state) for state in {*State} - LEGAL[State.BLOCKED]]
    for run, state in [*moves, (sent, State.BLOCKED), (sent, State.SKIPPED)]:
        if state == run.state:
            continue
        with (
            pytest.raises(DatabaseError, match="never goes on"),
            transaction.atomic(),
        ):
            Run.objects.filter(pk=run.pk).update(state=state)
