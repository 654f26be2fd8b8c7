"""Talking about a request and changing it on its pages, and what both pages then say."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from allocations.models import Allocation
from approvals.decisions import escalation
from approvals.decisions.actions import approve, ask_back, reject
from approvals.fulfilment import free_again
from approvals.models import Comment, Decision, Request
from tests import factories
from tests.scene import DAY, HOUR, Scene


def ask(scene: Scene, gpus: int = 5, *, hours: float = 1) -> Request:
    """Ada asked some hours ago, for three days."""
    now = timezone.now() - timedelta(hours=hours)
    return factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=gpus, now=now)


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def shown(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer
    return str(answer.content.decode())


def form_of(request: Request, **changes: Any) -> dict[str, Any]:
    """The form of a change as it begins, with these differences."""
    return {
        "team": request.team.slug,
        "flavor": request.spec["flavor"],
        "gpus": request.count,
        "purpose": "training",
        "until": request.until.strftime("%Y-%m-%dT%H:%M"),
        "reason": request.reason,
        "version": request.version,
    } | changes


@pytest.fixture
def page(scene: Scene) -> Client:
    """Ada's browser."""
    return browser(scene.ada)


@pytest.mark.slow
def test_an_approver_who_comes_from_a_mail_decides_in_two_clicks(
    scene: Scene, client: Client
) -> None:
    """Open the link, press Approve; to look, by whichever program, decides nothing."""
    request = ask(scene)
    link = f"/approvals/{request.pk}/"
    assert (
        client.get(link)["Location"] == f"/sign-in?next=%2Fapprovals%2F{request.pk}%2F"
    )
    client.force_login(scene.priya)
    before = Request.objects.values().get()
    for look in (client.get, client.head, client.options):
        look(link)
        look(f"{link}?do=approve&version=1")
    assert (Request.objects.values().get(), Decision.objects.count()) == (before, 0)
    said = shown(client, link)
    assert 'name="do" value="approve"' in said
    client.post(link, {"do": "approve", "version": 1, "reason": ""})
    assert (Request.objects.get().state, Allocation.objects.get().gpus) == (
        "approved",
        5,
    )


@pytest.mark.slow
def test_the_form_of_a_change_begins_as_the_request_stands_and_changes_it(
    page: Client, scene: Scene
) -> None:
    request = ask(scene)
    path = f"/requests/{request.pk}/edit"
    assert f'href="{path}"' in shown(page, f"/requests/{request.pk}/")
    said = shown(page, path)
    assert 'name="gpus" value="5"' in said
    assert "Platform leads decide." in said
    checked = page.post(f"{path}?check=1", form_of(request, gpus=1))
    assert "Automatic." in checked.content.decode()
    assert Request.objects.get().version == 1
    answer = page.post(path, form_of(request, gpus=4))
    assert answer["Location"] == f"/requests/{request.pk}/"
    said = shown(page, f"/requests/{request.pk}/")
    assert "Asked for 5 × A100" in said
    assert "Asked for 4 × A100" not in said
    assert "Changed: GPUs: 5 → 4; Cost: $360 → $" in said
    assert "void" not in said


@pytest.mark.slow
def test_a_change_says_that_votes_are_void_only_where_somebody_had_voted(
    page: Client, scene: Scene
) -> None:
    request = ask(scene, 12)
    approve(request.pk, by=scene.priya, expected_version=1, now=timezone.now())
    page.post(f"/requests/{request.pk}/edit", form_of(Request.objects.get(), gpus=10))
    assert "What was decided before is void." in shown(page, f"/requests/{request.pk}/")
    since = browser(scene.marcus).get(f"/approvals/{request.pk}/").context["edited"]
    assert since["words"] == "Ada Okafor changed it just now; earlier votes are void."


def test_the_story_names_the_kind_of_gpu_that_each_version_asked_for(
    page: Client, scene: Scene
) -> None:
    request = ask(scene, 12)
    factories.flavor(scene.flavor.cluster, "h100", product="H100")
    page.post(
        f"/requests/{request.pk}/edit", form_of(request, flavor="training/h100", gpus=4)
    )
    said = shown(page, f"/requests/{request.pk}/")
    assert "Asked for 12 × A100" in said
    assert "12 × H100" not in said
    assert "4 × H100" in said


@pytest.mark.slow
def test_a_change_that_is_refused_keeps_what_was_written(
    page: Client, scene: Scene
) -> None:
    request = ask(scene)
    path = f"/requests/{request.pk}/edit"
    same = page.post(path, form_of(request))
    assert same.status_code == 422
    assert (
        "Nothing is different from what you asked for already." in same.content.decode()
    )
    stale = page.post(path, form_of(request, gpus=4, version=9))
    assert stale.status_code == 412
    assert 'value="4"' in stale.content.decode()
    assert page.post(path, form_of(request, gpus=99)).status_code == 422
    assert page.post(path, form_of(request, gpus=4, colour="blue")).status_code == 422


@pytest.mark.slow
def test_only_who_asked_gets_the_form_and_only_while_it_waits(
    page: Client, scene: Scene
) -> None:
    request = ask(scene)
    path = f"/requests/{request.pk}/edit"
    for other in (scene.priya, scene.mallory):
        assert browser(other).get(path).status_code == 404
        assert browser(other).post(path, form_of(request, gpus=4)).status_code == 404
    approve(request.pk, by=scene.priya, expected_version=1, now=timezone.now())
    assert page.get(path)["Location"] == f"/requests/{request.pk}/"
    assert (
        page.post(path, form_of(request, gpus=4))["Location"]
        == f"/requests/{request.pk}/"
    )
    assert Request.objects.get().content_version == 1


@pytest.mark.slow
def test_an_approver_sees_what_changed_since_they_spoke(
    page: Client, scene: Scene
) -> None:
    request = ask(scene)
    ask_back(
        request.pk,
        by=scene.priya,
        expected_version=1,
        question="Would three do?",
        now=timezone.now(),
    )
    for gpus in (4, 3):
        page.post(
            f"/requests/{request.pk}/edit", form_of(Request.objects.get(), gpus=gpus)
        )
    path = f"/approvals/{request.pk}/"
    since = browser(scene.priya).get(path).context["edited"]
    assert since["words"] == "Ada Okafor changed it just now, after you spoke."
    assert since["rows"][0] == {"label": "GPUs", "before": "5", "after": "3"}
    assert browser(scene.marcus).get(path).context["edited"]["rows"][0]["before"] == "4"


@pytest.mark.slow
def test_a_vote_on_what_was_changed_meanwhile_says_what_changed(
    page: Client, scene: Scene
) -> None:
    request = ask(scene)
    page.post(f"/requests/{request.pk}/edit", form_of(request, gpus=4))
    answer = browser(scene.priya).post(
        f"/approvals/{request.pk}/", {"do": "approve", "version": 1}
    )
    assert answer.status_code == 412
    assert "Ada Okafor changed it just now: GPUs: 5 → 4" in answer.content.decode()
    assert not Allocation.objects.exists()


@pytest.mark.slow
def test_a_comment_stands_on_both_pages(page: Client, scene: Scene) -> None:
    request = ask(scene)
    path = f"/requests/{request.pk}/comment"
    assert (
        page.post(path, {"text": "It is for the review."})["Location"]
        == f"/requests/{request.pk}/"
    )
    back = browser(scene.priya).post(path, {"text": "Thank you.", "back": "approval"})
    assert back["Location"] == f"/approvals/{request.pk}/"
    for where, client in (("requests", page), ("approvals", browser(scene.priya))):
        said = shown(client, f"/{where}/{request.pk}/")
        assert "It is for the review." in said
        assert "Thank you." in said


def test_a_comment_needs_words_and_somebody_who_sees_the_request(
    page: Client, scene: Scene
) -> None:
    request = ask(scene)
    path = f"/requests/{request.pk}/comment"
    assert page.post(path, {"text": " "}).status_code == 422
    assert page.post(path, {"text": "x" * 2001}).status_code == 422
    assert browser(scene.mallory).post(path, {"text": "Me too."}).status_code == 404
    assert page.get(path)["Location"] == f"/requests/{request.pk}/"
    assert not Comment.objects.exists()


@pytest.mark.slow
def test_a_rejection_says_because_of_what_and_is_offered_again(
    page: Client, scene: Scene
) -> None:
    request = ask(scene)
    assert "Too few are free" in shown(
        browser(scene.priya), f"/approvals/{request.pk}/"
    )
    sent = {
        "do": "reject",
        "version": 1,
        "reason": "Next week.",
        "reason_code": "capacity",
    }
    browser(scene.priya).post(f"/approvals/{request.pk}/", sent)
    assert Decision.objects.get().because == "capacity"
    assert free_again.sweep(timezone.now()) == [request.pk]
    said = shown(page, f"/requests/{request.pk}/")
    assert "It is free now: ask again" in said
    link = page.get(f"/requests/{request.pk}/").context["again"]
    assert 'name="gpus" value="5"' in shown(page, link)


def test_what_happens_next_stands_on_both_pages_with_its_dates(
    page: Client, scene: Scene
) -> None:
    request = ask(scene)
    step = request.steps.get()
    assert step.escalate_at is not None
    for where, client in (("requests", page), ("approvals", browser(scene.priya))):
        said = shown(client, f"/{where}/{request.pk}/")
        for words in (
            "Platform leads are reminded",
            "Should be decided by",
            "If nobody has, engineering leadership may decide in their place",
        ):
            assert words in said, (where, words)
        assert f'datetime="{step.escalate_at.isoformat()[:16]}' in said, where


def test_what_the_clock_did_and_that_it_stands_still_is_said(
    page: Client, scene: Scene
) -> None:
    request = factories.request(
        scene.ada,
        scene.tenancy,
        scene.flavor,
        gpus=3,
        days=20,
        now=timezone.now() - 3 * DAY,
    )
    escalation.look(request.pk, now=timezone.now() - HOUR)
    said = shown(page, f"/requests/{request.pk}/")
    for words in (
        "Platform leads were reminded",
        "Passed on to engineering leadership, too",
        "Nobody had decided by then.",
        "Waits for platform leads or engineering leadership",
    ):
        assert words in said
    ask_back(
        request.pk,
        by=scene.elena,
        expected_version=1,
        question="Why?",
        now=timezone.now(),
    )
    said = shown(page, f"/requests/{request.pk}/")
    assert "The clock stands still since" in said
    assert "Lapses, if it is not answered" in said
    assert "Lapses, if nobody has decided" not in said


@pytest.mark.slow
def test_a_manager_of_no_team_opens_the_request_that_they_decide(scene: Scene) -> None:
    boss, chief = factories.person("Boss Bauer"), factories.person("Chief Chen")
    User.objects.filter(pk=scene.ada.pk).update(
        managers=[str(boss.oid), str(chief.oid)]
    )
    request = ask(scene)
    for path in (f"/approvals/{request.pk}/", f"/requests/{request.pk}/"):
        assert browser(boss).get(path).status_code == 404
    request.steps.update(seat=f"person:{boss.oid}", label="Boss Bauer, manager")
    said = shown(browser(boss), f"/approvals/{request.pk}/")
    assert "Approve" in said
    assert f'href="/approvals/{request.pk}/"' in shown(
        browser(boss), f"/requests/{request.pk}/"
    )
    assert browser(chief).get(f"/approvals/{request.pk}/").status_code == 404
    User.objects.filter(pk=boss.pk).update(is_away=True, away_known_at=timezone.now())
    escalation.look(request.pk, now=timezone.now())
    assert "Chief Chen, in place of Boss Bauer, manager decides" in shown(
        browser(chief), f"/requests/{request.pk}/"
    )


def test_it_can_be_asked_again_whatever_became_of_it(
    page: Client, scene: Scene
) -> None:
    request = ask(scene)
    reject(
        request.pk, by=scene.priya, expected_version=1, reason="No.", now=timezone.now()
    )
    context = page.get(f"/requests/{request.pk}/").context
    assert context["may"]["again"]
    assert not context["offered"]
    assert 'name="gpus" value="5"' in shown(page, context["again"])
