"""Runs that go on from an earlier one's checkpoints: in its folder and nobody else's, when nothing writes there."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from accounts.roles import Role
from audit.models import Event
from tests import factories
from tests.calling import Caller
from tests.concurrency.together import together
from tests.pages import Element
from tests.workloads.conftest import Watched
from tests.workloads.test_runs import ASKED, submit
from tests.workloads.test_runs_page import buttons, client, form, page
from web.refusals import Conflict, NoRight
from workloads.models import Run
from workloads.runs import actions
from workloads.runs.planning.resuming import with_changes
from workloads.templates.library import BY_SLUG
from workloads.templates.pods import checkpoints_in

KEPT = replace(
    ASKED,
    values={**ASKED.values, "checkpoint": "/data/checkpoints/"},
    claims=[{"name": "datasets", "path": "/data"}],
)


def ended(run: Run, state: str = "failed") -> Run:
    """The run once it has run and is over."""
    now = timezone.now()
    stop = (
        {"stop_asked_at": now, "stop_asked_by": run.requester_id}
        if state == "stopped"
        else {}
    )
    Run.objects.filter(pk=run.pk).update(
        state=state, sent_at=now, started_at=now, ended_at=now, **stop
    )
    run.refresh_from_db()
    return run


def resume(watched: Watched, run: Run, *, key: str = "on") -> Run:
    return actions.resume(run.pk, by=watched.ada, key=key, now=timezone.now())


def told(run: Run) -> dict[str, str]:
    """What the run's program finds in its environment."""
    [container] = run.main["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one["value"] for one in container["env"]}


def mounts(run: Run) -> tuple[Any, Any]:
    pod = run.main["spec"]["template"]["spec"]
    return pod["volumes"][1:], pod["containers"][0]["volumeMounts"]


@pytest.mark.parametrize("state", ["failed", "finished", "stopped", "gone"])
def test_it_goes_on_in_the_folder_of_the_run_before(
    watched: Watched, state: str
) -> None:
    run = ended(submit(watched, KEPT), state)
    assert (
        told(run)["QM_CHECKPOINTS"]
        == run.checkpoints
        == f"/data/checkpoints/{run.name}"
    )
    assert "QM_RESUME_FROM" not in told(run)
    on = resume(watched, run)
    assert (on.again_of_id, on.is_resumed) == (run.pk, True)
    assert on.name != run.name
    assert (
        told(on)["QM_RESUME_FROM"]
        == told(on)["QM_CHECKPOINTS"]
        == on.checkpoints
        == run.checkpoints
    )
    assert mounts(on)[1] == mounts(run)[1]
    assert [
        one["persistentVolumeClaim"]
        for one in mounts(on)[0]
        if "persistentVolumeClaim" in one
    ] == [{"claimName": "datasets"}]
    event = Event.objects.get(kind="run.submitted", subject_id=on.pk)
    assert (event.details["resumes"], event.actor_name) == (run.pk, "Ada Okafor")
    # And from there to the next.
    third = resume(watched, ended(on), key="further")
    assert (third.again_of_id, told(third)["QM_RESUME_FROM"]) == (
        on.pk,
        run.checkpoints,
    )


def test_a_rerun_writes_over_nobodys_checkpoints(watched: Watched) -> None:
    run = ended(submit(watched, KEPT))
    on = ended(resume(watched, run))
    for earlier in (run, on):
        again = actions.submit_again(
            earlier, by=watched.ada, key=f"again {earlier.pk}", now=timezone.now()
        )
        assert again.checkpoints == f"/data/checkpoints/{again.name}"
        assert not again.is_resumed
        assert "QM_RESUME_FROM" not in told(again)
        assert (
            "resumes"
            not in Event.objects.get(kind="run.submitted", subject_id=again.pk).details
        )


def test_the_same_key_is_the_same_run_and_another_waits_for_its_end(
    watched: Watched,
) -> None:
    run = ended(submit(watched, KEPT))
    first = resume(watched, run)
    assert resume(watched, run).pk == first.pk
    for earlier in (run, first):
        with pytest.raises(Conflict) as refusal:
            resume(watched, earlier, key="other")
        assert refusal.value.code == "run_goes_on"
    ended(first)
    assert resume(watched, run, key="other").checkpoints == run.checkpoints


def test_of_two_at_the_same_moment_one_goes_on(watched: Watched) -> None:
    run = ended(submit(watched, KEPT))

    refused: list[str] = []

    def attempt(key: str) -> None:
        try:
            resume(watched, run, key=key)
        except Conflict as refusal:
            refused.append(refusal.code)

    together(partial(attempt, "first"), partial(attempt, "second"))
    assert Run.objects.filter(again_of=run).count() == 1
    assert refused == ["run_goes_on"]


def test_without_checkpoints_it_is_refused_with_what_to_do(watched: Watched) -> None:
    live = submit(watched, KEPT)
    with pytest.raises(
        Conflict, match=r"has not ended and may still write checkpoints. Stop it first"
    ):
        resume(watched, live)
    now = timezone.now()
    Run.objects.filter(pk=live.pk).update(state="refused", ended_at=now)
    with pytest.raises(
        Conflict, match=r"never began, so it has written no checkpoint. Rerun it"
    ):
        resume(watched, live)
    bare = ended(submit(watched, key="two"))
    with pytest.raises(Conflict, match="was told no place for checkpoints") as refusal:
        resume(watched, bare)
    assert refusal.value.code == "no_checkpoints"
    with pytest.raises(NoRight):
        actions.resume(bare.pk, by=factories.person("Grace Hopper"), key="on", now=now)


def test_a_folder_is_read_from_what_was_sent_as_it_was_given() -> None:
    given = [
        {
            "env": [
                {"name": "QM_CHECKPOINTS", "value": "/data/$$(HOME)"},
                {"name": "A", "value": "1"},
            ]
        }
    ]
    assert checkpoints_in(given) == "/data/$(HOME)"
    assert checkpoints_in([{"env": [{"name": "A", "value": "QM_CHECKPOINTS"}]}]) == ""


@pytest.mark.slow
def test_by_the_api_it_is_made_once_for_each_key(watched: Watched) -> None:
    run, caller = ended(submit(watched, KEPT)), Caller(watched.ada)
    where = f"runs/{run.pk}/resume/"
    made = caller.post(where, key="on")
    assert made.status_code == 201, made.content
    assert caller.post(where, key="on").json() == made.json()
    found = made.json()
    assert (found["again_of"], found["is_resumed"], found["checkpoints"]) == (
        run.pk,
        True,
        run.checkpoints,
    )
    assert caller.get(f"runs/{run.pk}/").json()["is_resumed"] is False
    refused = caller.post(where, key="other")
    assert (refused.status_code, refused.json()["code"]) == (409, "run_goes_on")
    assert caller.post(where, key=None).json()["code"] == "idempotency_key_missing"
    assert Caller(factories.person("Mallory Finch")).post(where).status_code == 404
    assert (
        Caller(factories.person("Nora Lind", Role.AUDITOR)).post(where).status_code
        == 403
    )


def links(shown: Any) -> dict[str, str]:
    found: list[Element] = [one for one in page(shown).walk() if one.tag == "a"]
    return {one.words: one.attrs["href"] for one in found if "href" in one.attrs}


CHANGED = {
    "values": {
        "minutes": 120,
        "gpus": 1,
        "program": ["train.py", "--lr=3e-5"],
        "cpus": None,
    },
    "variables": {"EPOCHS": "5"},
    "title": "With a smaller rate",
}


def test_with_changed_values_it_goes_on_in_the_same_folder(watched: Watched) -> None:
    run, caller = ended(submit(watched, KEPT)), Caller(watched.ada)
    shown = caller.post(f"runs/{run.pk}/resume/preview/", CHANGED, key="on")
    assert shown.status_code == 200, shown.content
    plan = shown.json()
    assert plan["is_possible"]
    assert [
        (one["field"], one["label"], one["before"], one["after"])
        for one in plan["differences"]
    ] == [
        ("title", "Name", "Fine-tune BERT", "With a smaller rate"),
        ("program", "Program", "train.py", "train.py --lr=3e-5"),
        ("gpus", "GPUs on each node", "2", "1"),
        ("cpus", "CPUs on each node", "4", "8"),
        ("minutes", "Time limit (minutes)", "60", "120"),
        ("variables", "EPOCHS", "", "5"),
    ]
    assert not Run.objects.filter(again_of=run).exists()
    made = caller.post(f"runs/{run.pk}/resume/", CHANGED, key="on")
    assert made.status_code == 201, made.content
    found = made.json()
    for name in ("name", "manifests", "gpus", "usd_per_hour", "limit_seconds"):
        assert plan[name] == found[name]
    on = Run.objects.get(pk=found["id"])
    assert (on.gpus, on.limit_seconds, on.title, on.is_resumed) == (
        1,
        7200,
        "With a smaller rate",
        True,
    )
    assert told(on)["EPOCHS"] == "5"
    assert told(on)["QM_RESUME_FROM"] == on.checkpoints == run.checkpoints
    assert on.submission["values"]["image"] == run.submission["values"]["image"]
    assert on.submission["script"] == run.submission["script"]


REFUSED_CHANGES: dict[str, tuple[dict[str, Any], str, str]] = {
    "another namespace": ({"tenancy": 1}, "/tenancy", "no such field"),
    "another folder": ({"resume_from": "/data"}, "/resume_from", "no such field"),
    "another place for checkpoints": (
        {"values": {"checkpoint": "/data/elsewhere"}},
        "checkpoint",
        "Leave the place for checkpoints as it was",
    ),
    "no volume": (
        {"claims": [], "values": {"checkpoint": None}},
        "claims",
        "on the volume datasets at /data. Mount it there",
    ),
    "another volume in its place": (
        {"claims": [{"name": "volume-new", "path": "/data"}]},
        "claims",
        "on the volume datasets at /data. Mount it there",
    ),
    "more than is held": ({"values": {"gpus": 8}}, "gpus", "ask for 6 more"),
    "a parameter that there is not": (
        {"values": {"speed": 1}},
        "speed",
        "no such parameter",
    ),
    "a template that there is not": (
        {"template": "none"},
        "template",
        "no such template",
    ),
}


def test_changes_of_a_run_that_begins_anew_are_previewed_and_taken(
    watched: Watched,
) -> None:
    run, caller = submit(watched, KEPT), Caller(watched.ada)
    change = {"values": {"cpus": 2}, "title": "With fewer CPUs"}
    shown = caller.post(f"runs/{run.pk}/again/preview/", change, key="anew").json()
    assert [one["label"] for one in shown["differences"]] == [
        "Name",
        "CPUs on each node",
    ]
    made = caller.post(f"runs/{run.pk}/again/", change, key="anew").json()
    assert (made["name"], made["title"]) == (shown["name"], "With fewer CPUs")
    anew = Run.objects.get(pk=made["id"])
    assert (anew.again_of, anew.is_resumed) == (run, False)
    assert anew.checkpoints == f"/data/checkpoints/{anew.name}"
    refused = caller.post(f"runs/{run.pk}/again/", {"values": {"speed": 1}}, key="b")
    assert refused.status_code == 422
    assert "speed" in refused.json()["errors"][0]["pointer"]
    elsewhere = {"values": {"checkpoint": "/data/elsewhere"}}
    moved = caller.post(f"runs/{run.pk}/again/", elsewhere, key="c")
    assert moved.status_code == 201


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED_CHANGES)
def test_changes_that_cannot_be_are_refused_at_their_field(
    watched: Watched, name: str
) -> None:
    change, field, said = REFUSED_CHANGES[name]
    run, caller = ended(submit(watched, KEPT)), Caller(watched.ada)
    refused = caller.post(f"runs/{run.pk}/resume/", change, key="on")
    assert refused.status_code == 422, refused.content
    problem = refused.json()
    assert field in str(problem["errors"][0]["pointer"])
    assert said in str(problem)
    shown = caller.post(f"runs/{run.pk}/resume/preview/", change, key="on")
    assert shown.status_code == (
        422 if set(change) <= {"tenancy", "resume_from"} else 200
    )
    if shown.status_code == 200:
        assert not shown.json()["is_possible"]
        assert [one["text"] for one in shown.json()["problems"] if said in one["text"]]
    assert not Run.objects.filter(again_of=run).exists()


def test_the_preview_is_refused_for_whom_and_for_what_going_on_is(
    watched: Watched,
) -> None:
    run = submit(watched, KEPT)
    where = f"runs/{run.pk}/resume/preview/"
    live = Caller(watched.ada).post(where, {})
    assert (live.status_code, live.json()["code"]) == (409, "run_goes_on")
    ended(run)
    assert Caller(watched.ada).post(where, {}).json()["differences"] == []
    assert Caller(factories.person("Mallory Finch")).post(where, {}).status_code == 404
    assert (
        Caller(factories.person("Nora Lind", Role.AUDITOR)).post(where, {}).status_code
        == 403
    )


def test_a_source_takes_the_place_of_a_script_and_another_template_keeps_what_it_knows() -> (
    None
):
    kept = replace(KEPT, values={**KEPT.values, "launcher": "none"})
    source = {"url": "https://git.example.com/a.git", "revision": "v1"}
    changed = with_changes(kept, {"repository": source, "template": "mpi"}, BY_SLUG)
    assert (changed.script, changed.repository) == (None, source)
    assert "launcher" not in changed.values
    assert changed.values["checkpoint"] == kept.values["checkpoint"]
    assert with_changes(changed, {"script": kept.script}, BY_SLUG).repository is None
    assert with_changes(kept, {}, BY_SLUG) == kept


@pytest.mark.slow
def test_the_form_of_a_run_changes_its_values_and_says_which(watched: Watched) -> None:
    ada = client(watched.ada)
    run = ended(submit(watched, KEPT))
    shown = ada.get(f"/runs/{run.pk}")
    where = links(shown)["With other values"]
    opened = ada.get(where)
    words = page(opened).words
    assert "It goes on from the last checkpoint of" in words
    assert "Nothing changes." in words
    # The run named no priority: the form stands on the one that it had.
    assert form(opened)["priority"] == "exploratory"
    typed = {**form(opened), "minutes": "90", "variables": "LR=0.1"}
    checked = ada.post(where, {**typed, "check": "1"})
    assert "Time limit (minutes) 60 90" in page(checked).words
    assert not Run.objects.filter(again_of=run).exists()
    # A field that nobody can change is not read from a form that was tampered with.
    answers = [ada.post(where, {**typed, "checkpoint": "/elsewhere"}) for _ in range(2)]
    [on] = Run.objects.filter(again_of=run)
    assert {one["Location"] for one in answers} == {f"/runs/{on.pk}"}
    assert (on.limit_seconds, on.is_resumed, on.checkpoints) == (
        5400,
        True,
        run.checkpoints,
    )
    assert told(on)["LR"] == "0.1"
    refused = ada.post(where, {**form(ada.get(where))})
    assert f"Run {on.pk} goes on from these checkpoints already" in page(refused).words


@pytest.mark.slow
def test_its_page_offers_it_and_the_new_one_leads_back(watched: Watched) -> None:
    ada, word = client(watched.ada), "Rerun from checkpoint"
    run = submit(watched, KEPT)
    assert word not in buttons(ada.get(f"/runs/{run.pk}"))
    assert word not in buttons(
        ada.get(f"/runs/{ended(submit(watched, key='bare')).pk}")
    )
    ended(run)
    assert word in buttons(ada.get(f"/runs/{run.pk}"))
    auditor = client(factories.person("Nora Lind", Role.AUDITOR))
    assert word not in buttons(auditor.get(f"/runs/{run.pk}"))
    assert auditor.post(f"/runs/{run.pk}/resume").status_code == 403
    answers = [ada.post(f"/runs/{run.pk}/resume", {"token": "mine"}) for _ in range(2)]
    [on] = Run.objects.filter(again_of=run)
    assert {one["Location"] for one in answers} == {f"/runs/{on.pk}"}
    shown = ada.get(f"/runs/{on.pk}")
    assert "Goes on from" in page(shown).words
    assert links(shown)[f"run {run.pk}"] == f"/runs/{run.pk}"
    refused = ada.post(f"/runs/{run.pk}/resume", {"token": "other"}, follow=True)
    assert f"Run {on.pk} goes on from these checkpoints already" in page(refused).words
