"""What is said of a request that people made smaller: its money, its size and who decided, everywhere the same."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from approvals.conversation.actions import edit
from approvals.decisions.actions import approve
from approvals.models import Request
from notices.models import Notice
from tests import factories
from tests.scene import NOW, Scene

pytestmark = pytest.mark.django_db


def last_told(person: Any) -> dict[str, Any]:
    """The newest notice of somebody, its facts by their labels."""
    said = Notice.objects.filter(person=person).latest("id").said
    return {"title": said.title, "sentence": said.sentence, **dict(said.facts)}


def page(person: Any, path: str) -> str:
    client = Client()
    client.force_login(person)
    response = client.get(path)
    assert response.status_code == 200
    return str(response.content.decode())


def asked(scene: Scene, gpus: int, **fields: Any) -> Request:
    """Ada has asked for three days, just now."""
    now = timezone.now()
    return factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=gpus, days=3, now=now, **fields
    )


def test_the_mail_says_what_was_granted_costs(scene: Scene) -> None:
    request = scene.ask(6)
    approve(request.pk, by=scene.priya, expected_version=1, count=4, now=NOW)
    told = last_told(scene.ada)
    assert told["title"] == "Approved: 4 of 6 × A100 for Vision"
    assert told["Cost"] == "$288"


def test_the_next_to_decide_is_told_what_is_left(scene: Scene) -> None:
    request = scene.ask(12)
    approve(request.pk, by=scene.priya, expected_version=1, count=9, now=NOW)
    told = last_told(scene.elena)
    assert told["title"].startswith("Vision asks for 9 × A100")
    assert told["Cost"] == "$648"
    assert told["Stays free"] == "15 of 24"


def test_the_pages_say_what_was_granted_costs(scene: Scene) -> None:
    request = asked(scene, 6)
    approve(request.pk, by=scene.priya, expected_version=1, count=4, now=timezone.now())
    shown = page(scene.priya, f"/approvals/{request.pk}/")
    assert "$288" in shown
    assert "$432" not in shown
    assert "from 0 to" not in shown
    assert "4 × A100" in shown


def test_what_waits_is_as_large_everywhere_as_the_step_before_left_it(
    scene: Scene,
) -> None:
    request = asked(scene, 12)
    approve(request.pk, by=scene.priya, expected_version=1, count=9, now=timezone.now())
    for path in (
        "/approvals/",
        f"/approvals/{request.pk}/",
        f"/requests/{request.pk}/",
    ):
        shown = page(scene.elena, path)
        assert "9 × A100" in shown, path
        assert "$648" in shown, path


def test_who_changes_it_asks_for_all_of_it_again(scene: Scene) -> None:
    request = scene.ask(12)
    approve(request.pk, by=scene.priya, expected_version=1, count=9, now=NOW)
    edit(
        request.pk, scene.wanted(11, days=3), by=scene.ada, expected_version=2, now=NOW
    )
    request.refresh_from_db()
    assert (request.count, request.cut_to, request.count_now) == (11, None, 11)


def test_who_was_not_needed_in_the_end_has_not_decided(scene: Scene) -> None:
    request = asked(scene, 8)
    approve(request.pk, by=scene.priya, expected_version=1, count=7, now=timezone.now())
    for path in (f"/requests/{request.pk}/", f"/approvals/{request.pk}/"):
        shown = page(scene.priya, path)
        assert "Platform leads decided." in shown, path
        assert "leadership decided" not in shown, path


def seats_left(request: Request) -> list[str]:
    """Who is still to decide."""
    steps = Request.objects.get(pk=request.pk).current_steps
    return [step.seat for step in steps if step.done_at is None]


def test_a_cut_ends_no_leadership_that_what_was_asked_later_counted_on(
    scene: Scene,
) -> None:
    """Leadership was to see eight and four more: it sees four and four."""
    large, small = asked(scene, 8), asked(scene, 4)
    assert seats_left(small) == ["platform_leads"]
    approve(large.pk, by=scene.priya, expected_version=1, count=4, now=timezone.now())
    assert seats_left(large) == ["engineering_leadership"]
    told = last_told(scene.elena)
    assert "with the 4 that wait" in " ".join(told.values())


def test_a_cut_ends_the_leadership_that_nothing_else_needs(scene: Scene) -> None:
    large, small = asked(scene, 8), asked(scene, 3)
    approve(large.pk, by=scene.priya, expected_version=1, count=4, now=timezone.now())
    assert (seats_left(large), seats_left(small)) == ([], ["platform_leads"])


def test_a_request_that_is_changed_to_be_smaller_ends_none_either(scene: Scene) -> None:
    large, small = scene.ask(8), scene.ask(4)
    edit(large.pk, scene.wanted(4), by=scene.ada, expected_version=1, now=NOW)
    assert seats_left(large) == ["platform_leads", "engineering_leadership"]
    assert seats_left(small) == ["platform_leads"]


def test_the_headline_names_those_who_do_decide(scene: Scene) -> None:
    """What was granted automatically since makes this one count as larger: its route stays."""
    request = asked(scene, 4)
    for _ in range(2):
        asked(scene, 2)
    assert [step.seat for step in request.steps.all()] == ["platform_leads"]
    shown = page(scene.priya, f"/approvals/{request.pk}/")
    assert "Platform leads decide, as it was when this was asked." in shown


def test_a_void_vote_is_of_no_part_of_what_is_asked_now(scene: Scene) -> None:
    request = scene.ask(12)
    left = approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    edit(
        request.pk,
        scene.wanted(14),
        by=scene.ada,
        expected_version=left.version,
        now=NOW,
    )
    shown = page(scene.ada, f"/requests/{request.pk}/")
    assert "12 of 14" not in shown
    assert "Approved as platform leads" in shown
    assert "Void: it was changed since." in shown
