"""What people carry out, over the API."""

from typing import Any

import pytest
from django.utils import timezone

from manual.models import Task
from tests.approvals.shop import granted, task_of
from tests.calling import Caller
from tests.scene import Scene


@pytest.fixture
def lead(scene: Scene) -> Caller:
    """Priya, a platform lead."""
    return Caller(scene.priya)


def test_leads_see_all_members_their_own_and_strangers_none(
    scene: Scene, lead: Caller
) -> None:
    task = task_of(granted(scene, "openai"))
    for caller, seen in ((lead, 1), (Caller(scene.ada), 1), (Caller(scene.mallory), 0)):
        assert len(caller.get("tasks/").json()["results"]) == seen
    told = lead.get(f"tasks/{task.pk}/").json()
    assert told["title"] == "Set up gpt-4o-mini with 2k tokens a minute"
    assert (told["state"], told["assignee"]) == ("open", None)
    assert told["to_do"].startswith("Deploy gpt-4o-mini with 2k tokens a minute")
    assert Caller(scene.mallory).get(f"tasks/{task.pk}/").status_code == 404


@pytest.mark.slow
def test_it_is_taken_given_and_done(scene: Scene, lead: Caller) -> None:
    task = task_of(granted(scene, "openai"))
    taken = lead.post(f"tasks/{task.pk}/take/", {"version": 1})
    assert (taken.status_code, taken.json()["assignee"]["name"]) == (200, "Priya Raman")
    given = lead.post(f"tasks/{task.pk}/give/", {"to": scene.marcus.username}).json()
    assert given["assignee"]["name"] == "Marcus Weber"
    assert lead.post(f"tasks/{task.pk}/give/", {"to": None}).json()["state"] == "open"
    stale = lead.post(f"tasks/{task.pk}/done/", {"note": "There.", "version": 1})
    assert (stale.status_code, stale.json()["code"]) == (412, "stale")
    done = lead.post(f"tasks/{task.pk}/done/", {"note": "There."}).json()
    assert (done["state"], done["note"]) == ("done", "There.")
    again = lead.post(f"tasks/{task.pk}/cannot/", {"reason": "No."})
    assert (again.status_code, again.json()["code"]) == (409, "task_over")


def test_the_same_key_finishes_it_once_with_the_same_answer(
    scene: Scene, lead: Caller
) -> None:
    task = task_of(granted(scene, "openai", now=timezone.now()))
    answers = [
        lead.post(f"tasks/{task.pk}/cannot/", {"reason": "No quota."}, key="k")
        for _ in range(2)
    ]
    assert answers[0].json() == answers[1].json()
    assert scene.held_usd() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("done", {}, 422),
        ("done", {"note": ""}, 422),
        ("give", {}, 422),
        ("give", {"to": "nobody@example.com"}, 422),
        ("take", {"who": "me"}, 422),
        ("take", {"version": "1"}, 422),
    ],
)
def test_what_does_not_fit_is_refused(
    scene: Scene, lead: Caller, path: str, body: dict[str, Any], code: int
) -> None:
    task = task_of(granted(scene, "openai"))
    assert lead.post(f"tasks/{task.pk}/{path}/", body).status_code == code
    task.refresh_from_db()
    assert task.version == 1


def test_members_do_not_carry_out_what_they_asked_for(scene: Scene) -> None:
    task = task_of(granted(scene, "openai"))
    ada = Caller(scene.ada)
    assert ada.post(f"tasks/{task.pk}/take/").status_code == 403
    assert ada.post(f"tasks/{task.pk}/done/", {"note": "There."}).status_code == 403


@pytest.mark.slow
def test_a_list_is_narrowed_by_state_and_request(scene: Scene, lead: Caller) -> None:
    other, endpoint = granted(scene, "openai"), granted(scene, "endpoint")
    Task.objects.filter(request_number=other.pk).update(
        state="dropped", done_at=other.created_at
    )
    for query, found in (
        ("state=unfinished", [endpoint.pk]),
        ("state=dropped", [other.pk]),
        (f"request={other.pk}", [other.pk]),
    ):
        rows = lead.get(f"tasks/?{query}").json()["results"]
        assert [row["request"] for row in rows] == found, query
    assert lead.get("tasks/?request=one").status_code == 400
    assert lead.get("tasks/?state=lost").status_code == 400


@pytest.mark.slow
def test_a_list_takes_as_many_queries_for_five_as_for_one(
    scene: Scene, lead: Caller, django_assert_max_num_queries: Any
) -> None:
    granted(scene, "openai")
    lead.get("tasks/")  # says when the token was last used
    with django_assert_max_num_queries(6) as few:
        lead.get("tasks/")
    for name in ("westeurope", "uksouth", "westus3", "eastus2"):
        granted(scene, "openai", region=name)
    with django_assert_max_num_queries(6) as many:
        assert len(lead.get("tasks/").json()["results"]) == 5
    assert len(few) == len(many)


@pytest.mark.slow
def test_what_takes_no_gpus_is_let_go_over_the_api(scene: Scene) -> None:
    asked = granted(scene, "openai", now=timezone.now())
    ada = Caller(scene.ada)
    told = ada.post(f"requests/{asked.pk}/let-go/").json()
    assert told["stage"] == "ended"
    assert [task["state"] for task in told["tasks"]] == ["dropped"]
    again = ada.post(f"requests/{asked.pk}/let-go/")
    assert (again.status_code, again.json()["code"]) == (409, "not_held")
    assert Caller(scene.mallory).post(f"requests/{asked.pk}/let-go/").status_code == 404
