"""The pages of runs: the form and its answer, a run by its state and by who looks, and a team's list."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from allocations.models import Leftover
from fleet.models import Cluster
from tests import factories
from tests.pages import Element, parsed, sent_by
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.test_runs import ASKED, look_after, submit, until
from ui.amounts import moment
from workloads.models import Run
from workloads.runs.pages.form import RunForm
from workloads.runs.pages.page import length_of
from workloads.runs.pages.views import MOST_ROWS
from workloads.runs.planning.places import place_of
from workloads.template_desk.models import TemplateVersion
from workloads.template_desk.offered import template_titles
from workloads.templates.library import BY_SLUG
from workloads.templates.parameters import MAX_SCRIPT_BYTES

TYPED = {
    "title": "Fine-tune BERT",
    "flavor": "a100",
    "image": "registry.example.com/vision/train:1",
    "program": "train.py --name 'two words'",
    "gpus": "2",
    "cpus": "4",
    "memory": "16",
    "minutes": "60",
    "script_text": "print('hello')\n",
    "script_file": "train.py",
    "variables": "EPOCHS=3",
    "priority": "scheduled-training",
}
# Of these every page asks: who looks, their teams, and how much waits for them.
FRAME = ("django_session", "accounts_user", "accounts_team", "approvals_step")
MOST_QUERIES = 6


def client(user: User) -> Client:
    found = Client()
    found.force_login(user)
    return found


def address(watched: Watched, **query: str) -> str:
    return f"/teams/{watched.team.slug}/runs/new?{urlencode({'template': 'single-node', **query})}"


def page(response: Any) -> Element:
    return parsed(response.content.decode())


def form(response: Any) -> dict[str, str]:
    """What a browser would send of the form as it stands."""
    [whole] = [
        one for one in page(response).walk() if one.attrs.get("id") == "submit-run"
    ]
    return {name: texts[-1] for name, texts in sent_by(whole).items()}


def filled(response: Any, **changed: str) -> dict[str, str]:
    """The form filled in; fields that it does not have are left out."""
    start = form(response)
    return {
        **start,
        **{name: TYPED[name] for name in TYPED if name in start},
        **changed,
    }


def buttons(response: Any) -> set[str]:
    return {one.words for one in page(response).walk() if "button" in one.classes}


def test_the_templates_lead_to_a_form_that_says_what_is_held(watched: Watched) -> None:
    ada = client(watched.ada)
    shown = ada.get(f"/teams/{watched.team.slug}/runs/new")
    links = [
        one.attrs["href"]
        for one in page(shown).walk()
        if "template=single-node" in one.attrs.get("href", "")
    ]
    opened = ada.get(f"/teams/{watched.team.slug}/runs/new{links[0]}")
    assert opened.status_code == 200
    assert "A100: 2 held" in opened.content.decode()
    assert form(opened)["flavor"] == "a100"
    assert form(opened)["token"]
    # Nobody has written anything yet.
    assert "is needed" not in opened.content.decode()


def test_what_is_announced_there_is_read_before_it_is_sent(watched: Watched) -> None:
    ada, where = client(watched.ada), address(watched)
    Cluster.objects.update(announcement="Its nodes restart on Saturday.")
    opened = ada.get(where)
    checked = ada.post(where, {**filled(opened), "check": "1"})
    for shown in (opened, checked):
        assert shown.content.decode().count("Its nodes restart on Saturday.") == 1


def test_without_javascript_it_is_checked_then_submitted_once(watched: Watched) -> None:
    ada, where = client(watched.ada), address(watched)
    typed = filled(ada.get(where))
    checked = ada.post(where, {**typed, "check": "1"})
    assert checked.status_code == 200
    assert "It can start at once" in checked.content.decode()
    assert form(checked) == typed
    assert not Run.objects.exists()
    first, again = ada.post(where, typed), ada.post(where, typed)
    run = Run.objects.get()
    assert first.status_code == again.status_code == 302
    assert first["Location"] == again["Location"] == f"/runs/{run.pk}"
    assert run.submission["values"]["program"] == ["train.py", "--name", "two words"]
    assert run.submission["script"] == {
        "file": "train.py",
        "text": TYPED["script_text"],
    }


@pytest.mark.slow
def test_whoever_goes_back_to_the_form_sees_that_the_run_was_sent(
    watched: Watched,
) -> None:
    ada, where = client(watched.ada), address(watched)
    typed = filled(ada.get(where))
    ada.post(where, typed)
    run = Run.objects.get()
    said = (
        "You started one of this name just now: being sent. This starts it once more."
    )
    again = ada.post(where, {**filled(ada.get(where)), "check": "1"}).content.decode()
    assert said in again
    assert f'href="/runs/{run.pk}"' in again
    other = {**filled(ada.get(where), title="Another"), "check": "1"}
    assert "of this name" not in ada.post(where, other).content.decode()
    Run.objects.update(created_at=timezone.now() - timedelta(minutes=31))
    later = ada.post(where, {**filled(ada.get(where)), "check": "1"})
    assert "of this name" not in later.content.decode()


def test_the_manifest_that_is_downloaded_is_what_is_created(watched: Watched) -> None:
    ada, where = client(watched.ada), address(watched)
    typed = filled(ada.get(where))
    file = ada.post(where, {**typed, "manifest": "1"})
    assert (file.status_code, file["Content-Type"]) == (200, "application/yaml")
    assert not Run.objects.exists()
    ada.post(where, typed)
    run = Run.objects.get()
    assert file["Content-Disposition"] == f'attachment; filename="{run.name}.yaml"'
    assert [*yaml.safe_load_all(file.content)] == run.manifests


WRONG: Mapping[str, tuple[dict[str, str], str, str]] = {
    "no image": ({"image": ""}, "image", "is needed"),
    "too many GPUs": ({"gpus": "8"}, "gpus", "ask for 6 more"),
    "no number": ({"minutes": "soon"}, "minutes", ""),
    "a quotation without an end": (
        {"program": "train.py 'x"},
        "program",
        "has no partner",
    ),
    "a volume without a path": ({"claims": "datasets"}, "claims", "name:/path"),
    "a variable without a value": ({"variables": "EPOCHS"}, "variables", "NAME=value"),
    "a variable of the linker": (
        {"variables": "LD_PRELOAD=x"},
        "variables",
        "LD_PRELOAD",
    ),
    "a script with a path": ({"script_file": "../x"}, "script_text", "plain name"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_stands_at_its_field_and_what_was_typed_stays(
    watched: Watched, name: str
) -> None:
    changed, field, said = WRONG[name]
    ada, where = client(watched.ada), address(watched)
    typed = filled(ada.get(where), **changed)
    refused = ada.post(where, typed)
    assert refused.status_code == 422
    assert field in refused.context["form"].errors
    assert said in str(refused.context["form"].errors[field])
    assert form(refused) == typed
    preview = ada.post(where.replace("/new?", "/new/preview?"), typed)
    assert preview.status_code == 200
    assert not Run.objects.exists()


def test_the_answer_comes_while_typing_and_says_what_is_missing(
    watched: Watched,
) -> None:
    ada, where = client(watched.ada), address(watched)
    preview = where.replace("/new?", "/new/preview?")
    typed = filled(ada.get(where))
    shown = ada.post(preview, typed).content.decode()
    assert "It can start at once" in shown
    assert "<html" not in shown
    assert "disabled" not in shown
    too_many = ada.post(preview, {**typed, "gpus": "8"})
    assert "Ask for 6 more" in too_many.content.decode()
    assert "disabled" in too_many.content.decode()
    assert client(factories.person("Mallory")).post(preview, typed).status_code == 404
    assert not Run.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param(
            {"gpus": "64"},
            "GPUs on each node: Write a whole number of GPUs from 0 to 16.",
            id="more GPUs than a node has",
        ),
        pytest.param(
            {"minutes": "0"},
            "Time limit (minutes): Write a whole number of minutes from 5 to 43,200.",
            id="no minute",
        ),
        pytest.param(
            {"minutes": "9999999"},
            "Time limit (minutes): Write a whole number of minutes from 5 to 43,200.",
            id="too many minutes",
        ),
        pytest.param(
            {"program": 'train.py "unclosed'},
            "Program: A quotation mark has no partner.",
            id="a quotation without an end",
        ),
    ],
)
def test_the_answer_names_the_field_that_is_wrong_and_why(
    watched: Watched, changed: dict[str, str], said: str
) -> None:
    ada, where = client(watched.ada), address(watched)
    preview = where.replace("/new?", "/new/preview?")
    shown = page(ada.post(preview, filled(ada.get(where), **changed))).words
    assert said in shown
    assert "as soon as this is clear:" in shown
    assert "Still empty" not in shown
    both = page(ada.post(preview, filled(ada.get(where), **changed, image=""))).words
    assert said in both
    assert "Still empty: Image." in both


def test_the_answer_lists_what_is_empty_before_anything_is_wrong(
    watched: Watched,
) -> None:
    shown = page(client(watched.ada).get(address(watched))).words
    assert "as soon as you have filled in: Name, Image, Program." in shown
    assert "as soon as this is clear" not in shown


@pytest.mark.slow
def test_the_answer_says_that_held_gpus_are_paid_for_whether_it_runs_or_not(
    watched: Watched,
) -> None:
    ada, where = client(watched.ada), address(watched)
    preview = where.replace("/new?", "/new/preview?")
    typed = filled(ada.get(where))
    shown = page(ada.post(preview, typed)).words
    assert "stopping it saves nothing, giving GPUs back does." in shown
    assert "costs only while it runs" not in shown
    anew = "The limit begins anew each time that it is preempted."
    assert f"1 hour at most. {anew}" in shown
    without = page(ada.post(preview, {**typed, "gpus": "0", "flavor": ""})).words
    assert "saves nothing" not in without


def test_the_list_calls_templates_by_their_titles_in_one_query(
    watched: Watched, django_assert_num_queries: Any
) -> None:
    used = [("single-node", 0), ("gone", 0), ("gone", 3)]
    with django_assert_num_queries(1):
        titles = template_titles(used)
    assert titles == {
        ("single-node", 0): "Single node",
        ("gone", 0): "gone",
        ("gone", 3): "gone",
    }
    with django_assert_num_queries(0):
        template_titles([("single-node", 0)])
    submit(watched)
    shown = page(client(watched.ada).get(f"/teams/{watched.team.slug}/runs")).words
    assert "Single node" in shown
    assert "single-node" not in shown


def test_a_bad_image_is_refused_with_how_one_is_written(watched: Watched) -> None:
    ada, where = client(watched.ada), address(watched)
    typed = filled(ada.get(where), image="https://hub.docker.com/r/pytorch")
    shown = page(ada.post(where.replace("/new?", "/new/preview?"), typed)).words
    assert "Image is no address of a container image: write it like" in shown
    assert "without https:// and spaces" in shown


@pytest.mark.slow
def test_a_run_says_where_it_is_and_who_may_do_what(watched: Watched) -> None:
    run = submit(watched)
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    nora = factories.person("Nora Lind", Role.AUDITOR)
    seen: dict[str, str] = {}
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        seen["submitted"] = client(watched.ada).get(f"/runs/{run.pk}").content.decode()
        look_after(run)
        until(run, "running")
    seen["running"] = client(watched.ada).get(f"/runs/{run.pk}").content.decode()
    assert "It is being sent to the cluster." in seen["submitted"]
    # What is recorded of it is told at once, and what is not, such as its place, by looking.
    assert f'data-live="run-{run.pk}"' in seen["submitted"]
    assert 'hx-trigger="refresh, every 2s"' in seen["submitted"]
    assert "Running" in seen["running"]
    assert "Download" in seen["running"]
    words = {
        "member": buttons(client(watched.ada).get(f"/runs/{run.pk}")),
        "lead": buttons(client(priya).get(f"/runs/{run.pk}")),
        "auditor": buttons(client(nora).get(f"/runs/{run.pk}")),
    }
    assert "Stop the run" in words["member"] & words["lead"]
    assert "Stop the run" not in words["auditor"]
    for who, posts in (("lead", priya), ("auditor", nora)):
        assert client(posts).post(f"/runs/{run.pk}/again").status_code == 403, who
    assert client(nora).get(f"/runs/{run.pk}/log").status_code == 403
    assert client(nora).post(f"/runs/{run.pk}/stop").status_code == 403
    assert client(factories.person("Mallory")).get(f"/runs/{run.pk}").status_code == 404
    log = client(priya).get(f"/runs/{run.pk}/log")
    assert log.content.decode().startswith("rank 0 on a100-")
    stopped = client(priya).post(f"/runs/{run.pk}/stop", follow=True)
    assert "Being stopped" in stopped.content.decode()
    assert "Stop the run" not in buttons(stopped)


ENDS = {
    "finished": "It ran to its end.",
    "failed": "It ended with an error. Out of memory.",
    "refused": "The cluster did not take it, and nothing ran. Out of memory.",
    "gone": "Somebody deleted it on the cluster.",
}


@pytest.mark.slow
@pytest.mark.parametrize("state", ENDS)
def test_one_that_is_over_says_how_and_renews_itself_no_more(
    watched: Watched, state: str
) -> None:
    now = timezone.now()
    message = "Out of memory." if state in ("failed", "refused") else ""
    run = factories.run(
        watched.tenancy, watched.ada, state=state, ended_at=now, message=message
    )
    if state != "refused":
        Run.objects.filter(pk=run.pk).update(started_at=run.created_at)
    shown = client(watched.ada).get(f"/runs/{run.pk}")
    assert ENDS[state] in page(shown).words
    assert "every 2s" not in shown.content.decode()
    assert "Stop the run" not in buttons(shown)
    assert ('id="logs"' in shown.content.decode()) == (state != "refused")
    assert ("Change it and submit it again" in page(shown).words) == (
        state == "refused"
    )
    # Its pods are gone, and its log with them.
    for part in ("Download", "Follow", "data-log", "Show lines with"):
        assert part not in shown.content.decode()
    assert ("The pod is gone, and its log with it." in page(shown).words) == (
        state != "refused"
    )


def test_who_stops_one_is_told_before_that_its_log_goes_with_its_pods(
    watched: Watched,
) -> None:
    run = factories.run(watched.tenancy, watched.ada, state="running")
    stop = next(
        each
        for each in page(client(watched.ada).get(f"/runs/{run.pk}")).walk()
        if each.tag == "form" and each.attrs["action"] == f"/runs/{run.pk}/stop"
    )
    assert "its log goes with them. Its last lines are kept for 30 days." in stop.words
    # It has no pod yet.
    assert "Download" not in stop.words


def test_one_whose_source_was_not_fetched_leads_to_where_it_is_corrected(
    watched: Watched,
) -> None:
    run = factories.run(
        watched.tenancy, watched.ada, state="failed", ended_at=timezone.now()
    )
    link = f'again={run.pk}#id_git_url">Correct its source</a>'
    assert link not in client(watched.ada).get(f"/runs/{run.pk}").content.decode()
    run.submission["repository"] = {
        "url": "https://git.example.com/x.git",
        "revision": "mian",
    }
    run.save()
    assert link in client(watched.ada).get(f"/runs/{run.pk}").content.decode()
    auditor = factories.person("Nora Lind", Role.AUDITOR)
    assert link not in client(auditor).get(f"/runs/{run.pk}").content.decode()


@pytest.mark.slow
def test_one_on_gpus_that_are_no_longer_held_says_when_it_is_stopped(
    watched: Watched,
) -> None:
    run = submit(watched)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
    now = timezone.now()
    assert run.flavor is not None
    ended = factories.allocation(watched.ada, watched.tenancy, run.flavor, gpus=2)
    work = [
        {
            "job": f"Job {run.name}",
            "uid": "u",
            "gpus": {"a100": 2},
            "priority": 0,
            "since": "",
        }
    ]
    usual = {
        "tenancy": watched.tenancy,
        "flavor": run.flavor,
        "gpus": 2,
        "since": now,
        "look_at": now,
    }
    left = Leftover.objects.create(allocation=ended, running=work, **usual)
    shown = client(watched.ada).get(f"/runs/{run.pk}").content.decode()
    assert "no longer held" not in shown
    # Its time limit of an hour ends it before.
    Leftover.objects.filter(pk=left.pk).update(stop_at=now + timedelta(hours=2))
    assert (
        "no longer held"
        not in client(watched.ada).get(f"/runs/{run.pk}").content.decode()
    )
    Leftover.objects.filter(pk=left.pk).update(stop_at=now + timedelta(minutes=30))
    shown = client(watched.ada).get(f"/runs/{run.pk}").content.decode()
    assert "Its GPUs are no longer held: it is stopped on" in shown
    assert "Stopped: its GPUs are no longer held" in shown
    assert "Ask for 2 × A100" in shown


def test_it_is_submitted_again_once_and_can_be_changed_first(watched: Watched) -> None:
    run, ada = submit(watched), client(watched.ada)
    for _ in range(2):
        ada.post(f"/runs/{run.pk}/again", {"token": "mine"})
    assert Run.objects.filter(again_of=run).count() == 1
    start = form(ada.get(f"/teams/{watched.team.slug}/runs/new?again={run.pk}"))
    assert (start["title"], start["gpus"], start["script_text"]) == (
        "Fine-tune BERT",
        "2",
        TYPED["script_text"],
    )
    assert (start["image"], start["program"]) == (
        "registry.example.com/vision/train:1",
        "train.py",
    )


@pytest.mark.slow
def test_a_script_as_large_as_the_page_says_is_taken_and_a_larger_one_is_named(
    watched: Watched,
) -> None:
    ada, where = client(watched.ada), address(watched)
    opened = ada.get(where)
    [whole] = [
        one for one in page(opened).walk() if one.attrs.get("id") == "submit-run"
    ]
    # Encoded as an address is, a script grows to thrice its size.
    assert whole.attrs["enctype"] == "multipart/form-data"
    line = "print('é', [1])\n"
    largest = line * (MAX_SCRIPT_BYTES // len(line.encode()))
    typed = filled(opened, script_text=largest.replace("\n", "\r\n"))
    assert (
        "It can start at once"
        in ada.post(where, {**typed, "check": "1"}).content.decode()
    )
    larger = ada.post(where, {**typed, "script_text": "#" * 300 * 1024})
    assert larger.status_code == 422
    assert (
        "The script has 300 KiB; at most 256 KiB can be pasted. Use Git."
        in larger.content.decode()
    )
    # A browser would cut what is longer, without a word.
    [script] = [
        one for one in page(opened).walk() if one.attrs.get("name") == "script_text"
    ]
    assert "maxlength" not in script.attrs


@pytest.mark.slow
def test_a_team_without_gpus_is_led_to_the_form_that_asks_for_those_of_its_run(
    db: None,
) -> None:
    team, cluster = factories.team("Vision"), factories.cluster("training")
    user = factories.person("Ada Okafor", teams=[team])
    flavor = factories.flavor(cluster, "a100")
    tenancy = factories.make_true(factories.tenancy(team, cluster))
    ada, where = client(user), f"/teams/{team.slug}/runs/new?template=single-node"
    opened = ada.get(where)
    assert "A100: none held" in opened.content.decode()
    answered = ada.post(
        where, {**filled(opened, flavor="a100", gpus="2"), "check": "1"}
    )
    [link] = [one for one in page(answered).walk() if one.words == "Ask for 2 × A100"]
    assert "training%2Fa100" in link.attrs["href"]
    # A run whose GPUs have ended: changing it and running it once more both lead there.
    asked = replace(ASKED, values={**ASKED.values, "gpus": 1}).as_json()
    now = timezone.now()
    run = factories.run(
        tenancy, user, flavor=flavor, submission=asked, state="finished", ended_at=now
    )
    again = ada.post(f"/runs/{run.pk}/again")
    assert again["Location"] == f"/teams/{team.slug}/runs/new?again={run.pk}"
    changed = ada.get(again["Location"])
    assert form(changed)["flavor"] == "a100"
    assert "Your team holds no a100" in changed.content.decode()
    assert any(one.words.startswith("Ask for 1 × A100") for one in page(changed).walk())


def test_it_begins_where_the_team_has_gpus_and_another_place_keeps_what_was_typed(
    db: None,
) -> None:
    team = factories.team("Vision")
    user = factories.person("Ada Okafor", teams=[team])
    early, late = factories.cluster("alpha"), factories.cluster("training")
    without = factories.make_true(factories.tenancy(team, early, project="perception"))
    held = factories.tenancy(team, late)
    factories.allocation(
        user, factories.make_true(held), factories.flavor(late, "a100"), gpus=2
    )
    factories.make_true(held)
    ada, where = client(user), f"/teams/{team.slug}/runs/new?template=single-node"
    opened = ada.get(where)
    assert "A100: 2 held" in opened.content.decode()
    [other] = [
        one
        for one in page(opened).walk()
        if one.words.startswith(without.namespace) and one.tag == "button"
    ]
    assert (other.attrs["form"], other.attrs["name"]) == ("submit-run", "check")
    typed = filled(opened, flavor="", gpus="0")
    moved = ada.post(
        f"/teams/{team.slug}/runs/new{other.attrs['formaction']}",
        {**typed, "check": "1"},
    )
    assert {name: form(moved)[name] for name in ("title", "image", "program")} == {
        name: TYPED[name] for name in ("title", "image", "program")
    }
    assert f"It runs in <code>{without.namespace}</code> on" in moved.content.decode()


def test_the_form_names_its_volumes_as_they_are_typed_and_those_that_the_portal_does_not_keep(
    watched: Watched,
) -> None:
    shown = RunForm(
        {},
        template=BY_SLUG["single-node"],
        place=place_of(watched.tenancy, by=watched.ada),
        volumes=["datasets", "volume-corpus"],
    )
    assert (
        "such as datasets:/data or volume-corpus:/data."
        in shown.fields["claims"].help_text
    )
    ada, where = client(watched.ada), address(watched)
    typed = filled(ada.get(where))
    known = ada.post(where, {**typed, "claims": "datasets:/data", "check": "1"})
    assert "Among the volumes" not in page(known).words
    # Somebody may have made it with kubectl, so it can be sent.
    other = ada.post(where, {**typed, "claims": "nothere:/data", "check": "1"})
    assert f"keeps in {watched.namespace} is no nothere." in page(other).words
    assert "It can start at once" in page(other).words


def test_a_change_that_cannot_go_where_its_run_was_says_so(db: None) -> None:
    team = factories.team("Vision")
    user = factories.person("Ada Okafor", teams=[team])
    left = factories.make_true(
        factories.tenancy(team, factories.cluster("training"), project="detection")
    )
    other = factories.make_true(
        factories.tenancy(team, factories.cluster("development"), project="perception")
    )
    run = factories.run(left, user)
    factories.leave(left, to="leaving", at=timezone.now())
    for query, said in (
        (
            f"again={run.pk}",
            f"Run {run.pk} is of {left.namespace} on Training, which your team leaves.",
        ),
        (
            f"template=single-node&place={left.pk}",
            "The link names a place in which your team cannot start runs now.",
        ),
    ):
        words = page(client(user).get(f"/teams/{team.slug}/runs/new?{query}")).words
        assert f"{said} This one would run in {other.namespace} on Development" in words
    assert (
        "would run in"
        not in page(
            client(user).get(f"/teams/{team.slug}/runs/new?place={other.pk}")
        ).words
    )


def test_a_team_that_can_start_no_run_is_told_why_and_led_to_what_works(
    db: None,
) -> None:
    team = factories.team("Vision")
    ada = client(factories.person("Ada Okafor", teams=[team]))
    where = f"/teams/{team.slug}/runs/new"

    def shown(query: str = "") -> tuple[str, set[str]]:
        found = page(ada.get(f"{where}{query}"))
        [box] = [one for one in found.walk() if "empty" in one.classes]
        return box.words, {one.attrs["href"] for one in box.walk() if one.tag == "a"}

    tenancy = factories.tenancy(team, factories.cluster("training"))
    words, links = shown()
    assert f"{tenancy.namespace} is being made" in words
    assert links == {f"/teams/{team.slug}/"}

    run = factories.run(factories.make_true(tenancy), team.memberships.get().user)
    factories.leave(tenancy, to="leaving", at=timezone.now())
    words, links = shown()
    assert "Vision leaves Training" in words
    assert "Ask for GPUs" not in words
    assert links == {f"/teams/{team.slug}/leaving"}

    words, links = shown(f"?resume={run.pk}")
    assert f"Run {run.pk} cannot go on" in words
    assert "which your team leaves. Its checkpoints are on a volume there." in words
    assert links == {f"/runs/{run.pk}"}


def test_a_run_of_a_template_that_was_withdrawn_is_filled_into_another(
    db: None,
) -> None:
    team, cluster = factories.team("Vision"), factories.cluster("training")
    user = factories.person("Ada Okafor", teams=[team])
    tenancy = factories.make_true(factories.tenancy(team, cluster))
    now = timezone.now()
    TemplateVersion.objects.create(
        slug="quick",
        number=1,
        title="Quick LLM",
        text="{}",
        is_offered=False,
        by=user,
        at=now,
    )
    asked = replace(ASKED, template="quick", flavor="", script=None).as_json()
    run = factories.run(
        tenancy,
        user,
        template="quick",
        submission=asked,
        state="finished",
        ended_at=now,
        gpus=0,
    )
    ada = client(user)
    again = ada.post(f"/runs/{run.pk}/again", follow=True)
    words = page(again).words
    assert "“Quick LLM” is no longer offered. Choose another template." in words
    assert f"What run {run.pk} was submitted with is filled in there." in words
    [link] = [
        one
        for one in page(again).walk()
        if "template=single-node" in one.attrs.get("href", "")
    ]
    start = form(ada.get(f"/teams/{team.slug}/runs/new{link.attrs['href']}"))
    assert (start["title"], start["image"]) == (
        "Fine-tune BERT",
        "registry.example.com/vision/train:1",
    )


def test_what_is_refused_has_no_manifest_to_download(watched: Watched) -> None:
    for wrong in ({"gpus": "many"}, {"gpus": "400"}):
        answer = client(watched.ada).post(
            address(watched), {**TYPED, **wrong, "manifest": "1"}
        )
        assert (answer.status_code, answer["Content-Type"]) == (
            422,
            "text/html; charset=utf-8",
        )
        assert "Content-Disposition" not in answer


@pytest.mark.slow
def test_the_list_is_paged_and_the_work_leads_to_runs(watched: Watched) -> None:
    ada, where = client(watched.ada), f"/teams/{watched.team.slug}/runs"
    assert "No run yet" in ada.get(where).content.decode()
    for number in range(MOST_ROWS + 3):
        factories.run(watched.tenancy, watched.ada, title=f"run {number}")
    first = ada.get(where)
    second = ada.get(where + first.context["next"])
    assert (len(first.context["rows"]), len(second.context["rows"])) == (MOST_ROWS, 3)
    assert second.context["next"] is None
    for odd in ("?before=x", "?before=²", f"?before={'9' * 40}"):
        assert len(ada.get(where + odd).context["rows"]) == MOST_ROWS
    assert where in ada.get(f"/teams/{watched.team.slug}/work").content.decode()
    assert client(factories.person("Mallory")).get(where).status_code == 404


def test_runs_of_one_title_are_told_apart_in_the_list(watched: Watched) -> None:
    runs = [factories.run(watched.tenancy, watched.ada) for _ in range(2)]
    shown = page(client(watched.ada).get(f"/teams/{watched.team.slug}/runs")).words
    assert all(f"{run.title} {run.name} · " in shown for run in runs)


def test_a_time_limit_is_told_to_the_minute() -> None:
    assert length_of(10_015 * 60) == "6 days 22 h 55 min"


def test_a_run_that_runs_says_until_when_its_time_limit_lets_it(
    watched: Watched,
) -> None:
    now = timezone.now()
    waiting = factories.run(watched.tenancy, watched.ada)
    running = factories.run(
        watched.tenancy,
        watched.ada,
        state="running",
        created_at=now,
        sent_at=now,
        started_at=now,
        running_since=now,
    )
    ada = client(watched.ada)
    assert "of at most 1 hour Cost" in page(ada.get(f"/runs/{waiting.pk}")).words
    until = moment(now + timedelta(hours=1), now)
    assert (
        f"of at most 1 hour, until {until}"
        in page(ada.get(f"/runs/{running.pk}")).words
    )


@pytest.mark.slow
def test_looking_again_costs_few_queries_however_much_runs(watched: Watched) -> None:
    run = submit(watched)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
    ada = client(watched.ada)
    ada.get(f"/runs/{run.pk}")
    with CaptureQueriesContext(connection) as seen:
        ada.get(f"/runs/{run.pk}", headers={"HX-Request": "true"})
    said = [one["sql"] for one in seen.captured_queries]
    own = [sql for sql in said if not any(f'FROM "{table}"' in sql for table in FRAME)]
    assert len(own) <= MOST_QUERIES, own
    assert len(said) - len(own) <= len(FRAME), said


def test_a_run_without_a_kind_of_gpu_says_how_many_and_no_kind(
    watched: Watched,
) -> None:
    run = factories.run(watched.tenancy, watched.ada, gpus=2)
    shown = page(client(watched.ada).get(f"/runs/{run.pk}"))
    figures = [each.words for each in shown.walk() if "figure" in each.classes]
    assert figures[0].split() == ["GPUs", "2"]
