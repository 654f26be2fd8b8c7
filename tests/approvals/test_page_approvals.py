"""Deciding on one screen: what it shows, the four actions, who may, and what happens when it changed meanwhile."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import RoleHeld, User
from accounts.roles import Role
from allocations.models import Allocation, UseDay
from approvals.decisions import actions as decisions
from approvals.decisions.triage import mark_of
from approvals.models import Request
from approvals.requests import actions
from catalogue import actions as offerings
from fleet.models import Cluster, Flavor
from notices.kinds import NoticeKind
from notices.models import Notice
from tests import factories
from tests.scene import Scene
from ui.amounts import moment, usd


def ask(scene: Scene, gpus: int = 3, *, hours: float = 1, **changes: Any) -> Request:
    """Ada asked some hours ago."""
    now = timezone.now() - timedelta(hours=hours)
    return factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=gpus, now=now, **changes
    )


def decide(client: Client, request: Request, do: str, **values: Any) -> Any:
    """Send one of the four actions for the version that is there now."""
    sent = {"do": do, "version": Request.objects.get(pk=request.pk).version} | values
    return client.post(f"/approvals/{request.pk}/", sent)


def shown(client: Client, request: Request) -> str:
    """What the screen says."""
    response = client.get(f"/approvals/{request.pk}/")
    assert response.status_code == 200
    return str(response.content.decode())


def signed_in(user: User) -> Client:
    """Another browser."""
    client = Client()
    client.force_login(user)
    return client


def test_what_they_hold_is_shown_with_how_it_was_used(
    page: Client, scene: Scene
) -> None:
    factories.request(
        scene.ada,
        scene.tenancy,
        scene.flavor,
        gpus=2,
        now=timezone.now() - timedelta(days=2),
    )
    today = timezone.now().date()
    for back, used in ((1, 2592), (2, 288)):
        UseDay.objects.create(
            tenancy=scene.tenancy,
            flavor=scene.flavor,
            day=today - timedelta(days=back),
            samples=1440,
            held_sum=2880,
            used_sum=used,
            last_at=timezone.now() - timedelta(days=back),
        )
    User.objects.filter(pk=scene.ada.pk).update(
        managers=["m"], manager_names={"m": {"name": "Mona Fields", "email": ""}}
    )
    said = shown(page, ask(scene, 4))
    assert "90 % on the best one, about 48 GPU-hours held and not used." in said
    assert said.count('class="fill-tone" x=') == 2
    assert "reports to Mona Fields" in said


def test_use_that_is_measured_and_does_not_count_yet_is_told_once(
    page: Client, scene: Scene
) -> None:
    now = timezone.now()
    ask(scene, 2, hours=1)
    asked = ask(scene, 5)

    def told() -> tuple[str, str]:
        context = page.get(f"/approvals/{asked.pk}/").context
        tile = next(each for each in context["tiles"] if each["label"] == "Use")
        fact = next(each for each in context["use"] if each["label"] == "Measured use")
        return f"{tile['value']} {tile['note']}", fact["text"]

    assert told() == ("– not measured yet", "not measured yet")
    UseDay.objects.create(
        tenancy=scene.tenancy,
        flavor=scene.flavor,
        day=now.date(),
        samples=30,
        held_sum=60,
        used_sum=7,
        last_at=now,
    )
    assert told() == ("12 % too early to count", "12 %, too early to count")


@pytest.mark.slow
def test_where_too_few_are_free_it_says_from_when_it_fits(
    page: Client, scene: Scene
) -> None:
    waits = ask(scene, 20)
    held = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=2, now=timezone.now()
    )
    Flavor.objects.filter(pk=scene.flavor.pk).update(gpus_total=20)
    end = Allocation.objects.get(hold=held.hold_id).kept_until
    assert f"It fits from {moment(end, timezone.now())} on, when others end." in shown(
        page, waits
    )
    Flavor.objects.filter(pk=scene.flavor.pk).update(gpus_total=3)
    assert "No end within 60 days makes it fit." in shown(page, waits)


@pytest.fixture
def page(client: Client, scene: Scene) -> Client:
    """Priya's browser."""
    client.force_login(scene.priya)
    return client


def test_the_queue_holds_what_waits_for_this_person_longest_first(
    page: Client, scene: Scene
) -> None:
    new, old = ask(scene, hours=1), ask(scene, hours=30)
    ask(scene, 1)
    cells = [row["cells"] for row in page.get("/approvals/").context["rows"]]
    assert [cell[0]["href"] for cell in cells] == [
        f"/approvals/{old.pk}/",
        f"/approvals/{new.pk}/",
    ]
    assert signed_in(scene.elena).get("/approvals/").context["rows"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"size": "large"}, 1),
        ({"size": "small"}, 1),
        ({"age": "day"}, 1),
        ({"team": "vision"}, 2),
    ],
)
def test_the_queue_is_narrowed(
    page: Client, scene: Scene, query: dict[str, str], count: int
) -> None:
    ask(scene, hours=30)
    ask(scene, 8)
    assert len(page.get("/approvals/", query).context["rows"]) == count


def test_an_empty_queue_says_what_it_is_for(page: Client, scene: Scene) -> None:
    assert "Nothing waits for you" in page.get("/approvals/").content.decode()
    ask(scene)
    assert (
        "Nothing here fits"
        in page.get("/approvals/", {"size": "large"}).content.decode()
    )


def test_the_screen_holds_everything_a_decision_needs(
    page: Client, scene: Scene
) -> None:
    ask(scene, 2, hours=4)
    asked = ask(scene, 5, reason="Five for the long context, <b>no fewer</b>.")
    rival = ask(scene, 4, hours=2)
    said = shown(page, asked)
    facts = (
        "from 2 to 7",
        "more rules are not met",
        "people decide above 2",
        "2 GPUs",
        "7 GPUs",
        "Pool share",
        "Cost a day",
    )
    use = (
        "Asked before",
        "not measured yet",
        "stay free",
        f'href="/approvals/{rival.pk}/"',
        "of Vision",
    )
    for words in (
        "Ada Okafor (Vision) asks for 5 × A100",
        "&lt;b&gt;no fewer&lt;/b&gt;",
        *facts,
        *use,
    ):
        assert words in said, words


@pytest.mark.slow
def test_approving_grants_and_leads_to_the_next(page: Client, scene: Scene) -> None:
    first, second = ask(scene, hours=3), ask(scene, hours=2)
    response = decide(page, first, "approve", reason="Fits the plan.")
    assert (response.status_code, response["Location"]) == (
        302,
        f"/approvals/{second.pk}/",
    )
    assert Request.objects.get(pk=first.pk).state == "approved"
    assert decide(page, second, "approve")["Location"] == f"/requests/{second.pk}/"


@pytest.mark.slow
def test_what_waits_for_an_answer_comes_last_and_counts_as_nobodys_to_decide(
    page: Client, scene: Scene
) -> None:
    asked_back, other = ask(scene, hours=30), ask(scene, hours=1)
    decide(page, asked_back, "ask", reason="Why so many?")
    answer = page.get("/approvals/")
    order = [row["pk"] for row in answer.context["rows"]]
    assert order == [other.pk, asked_back.pk]
    for path in ("/approvals/", f"/approvals/{other.pk}/", "/teams/", "/"):
        said = " ".join(page.get(path).content.decode().split())
        assert '1<span class="sr-only"> waiting for you' in said, path
    home = page.get("/").context["decide"]
    assert [each["href"] for each in home] == [f"/approvals/{other.pk}/"]


def test_all_of_it_is_not_less(page: Client, scene: Scene) -> None:
    asked = ask(scene, 5)
    answer = decide(page, asked, "less", count="5")
    assert answer.status_code == 422
    told = "Say fewer than 5 or an earlier end, or approve all of it."
    assert told in answer.content.decode()
    assert Request.objects.get(pk=asked.pk).state == "waiting"


def test_approving_less_starts_with_what_would_be_automatic(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, 5)
    assert page.get(f"/approvals/{asked.pk}/").context["less"]["count"] == 2
    decide(page, asked, "less", count="4")
    assert Request.objects.get().approved_count == 4


@pytest.mark.slow
def test_what_is_approved_for_less_is_named_with_what_was_asked(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, 12)
    decide(page, asked, "less", count="10")
    elena = signed_in(scene.elena)
    assert said_after(page, asked) == (
        "Your step is approved for less: 10 of 12 × A100 for Vision. "
        "Next to decide: engineering leadership."
    )
    decide(elena, asked, "approve")
    assert said_after(elena, asked) == "Approved: 10 of 12 × A100 for Vision."
    told = Notice.objects.get(kind=NoticeKind.REQUEST_DECIDED, person=scene.ada)
    assert told.said.title == "Approved: 10 of 12 × A100 for Vision"
    whole = ask(scene, 3)
    decide(page, whole, "approve")
    assert said_after(page, whole) == "Approved: 3 × A100 for Vision."


@pytest.mark.slow
def test_an_approval_says_who_decides_next_until_the_last_one(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, 12)
    decide(page, asked, "approve")
    assert said_after(page, asked) == (
        "Your step is approved: 12 × A100 for Vision. "
        "Next to decide: engineering leadership."
    )
    elena = signed_in(scene.elena)
    decide(elena, asked, "approve")
    assert said_after(elena, asked) == "Approved: 12 × A100 for Vision."


def test_an_approval_of_a_step_that_needs_another_says_that_it_is_counted(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene)
    asked.steps.update(quorum=2)
    decide(page, asked, "approve")
    assert said_after(page, asked) == (
        "Your approval is counted: 3 × A100 for Vision. Next to decide: platform leads."
    )


def said_after(client: Client, request: Request) -> str:
    """What the next page says was done."""
    return " ".join(
        map(str, client.get(f"/requests/{request.pk}/").context["messages"])
    )


@pytest.mark.slow
@pytest.mark.parametrize("count", ["0", "6", "1.5", "99999999999"])
def test_nobody_approves_more_than_was_asked_or_none(
    page: Client, scene: Scene, count: str
) -> None:
    asked = ask(scene, 5)
    assert decide(page, asked, "less", count=count).status_code == 422
    assert Request.objects.get().state == "waiting"


def test_rejecting_needs_a_reason_and_keeps_what_was_written(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene)
    response = decide(page, asked, "reject", reason=" ")
    assert response.status_code == 422
    assert "Say why" in response.content.decode()
    assert decide(page, asked, "reject", reason="The pool is full.").status_code == 302
    assert Request.objects.get().state == "rejected"


def test_asking_hands_the_turn_to_the_requester(page: Client, scene: Scene) -> None:
    asked = ask(scene)
    decide(page, asked, "ask", reason="Would two do?")
    assert Request.objects.get().turn == "requester"
    assert "Would two do?" in shown(page, asked)


def test_what_changed_meanwhile_is_said_and_nothing_is_decided(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene)
    decide(signed_in(scene.marcus), asked, "ask", reason="Would two do?")
    response = decide(page, asked, "approve", version=1)
    said = response.content.decode()
    assert response.status_code == 412
    assert "It changed while you looked" in said
    assert "Marcus Weber asked just now: Would two do?" in said
    assert Request.objects.get().state == "waiting"
    assert 'name="version" value="2"' in said


def test_a_request_that_was_withdrawn_meanwhile_is_not_decided(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene)
    actions.withdraw(asked.pk, by=scene.ada, now=timezone.now())
    response = decide(page, asked, "approve", version=1)
    assert response.status_code == 409
    assert "already withdrawn" in response.content.decode()


def test_nobody_decides_their_own_request(page: Client, scene: Scene) -> None:
    factories.join(scene.team, scene.priya)
    asked = factories.request(scene.priya, scene.tenancy, scene.flavor, gpus=3)
    said = shown(page, asked)
    assert "Nobody decides their own request." in said
    assert "Approve less" not in said
    response = decide(page, asked, "approve")
    assert response.status_code == 403
    assert Request.objects.get().state == "waiting"


@pytest.mark.slow
def test_eight_gpus_need_platform_leads_and_then_leadership(
    page: Client, scene: Scene
) -> None:
    asked, leader = ask(scene, 8), signed_in(scene.elena)
    assert "This step is for platform leads." in shown(leader, asked)
    assert decide(leader, asked, "approve").status_code == 403
    decide(page, asked, "approve")
    assert Request.objects.get().state == "waiting"
    said = shown(page, asked)
    assert "Platform leads: Priya Raman approved" in said
    assert "This step is for engineering leadership." in said
    decide(leader, asked, "approve")
    assert Request.objects.get().state == "approved"


def test_a_stranger_and_a_member_decide_nothing(scene: Scene) -> None:
    asked = ask(scene)
    assert signed_in(scene.mallory).get(f"/approvals/{asked.pk}/").status_code == 404
    assert decide(signed_in(scene.mallory), asked, "approve").status_code == 404
    ben = factories.person("Ben Ruiz", teams=[scene.team])
    assert decide(signed_in(ben), asked, "approve").status_code == 403
    assert Request.objects.get().state == "waiting"


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        {"do": "burn"},
        {"version": "x"},
        {"version": ""},
        {"state": "approved"},
        {"version": "-1"},
    ],
)
def test_a_form_that_the_page_did_not_make_is_refused(
    page: Client, scene: Scene, wrong: dict[str, str]
) -> None:
    asked = ask(scene)
    sent = {"do": "approve", "version": "1", "reason": ""} | wrong
    assert page.post(f"/approvals/{asked.pk}/", sent).status_code == 422
    assert Request.objects.get().state == "waiting"


@pytest.mark.slow
def test_looking_never_decides(page: Client, scene: Scene) -> None:
    asked = ask(scene)
    page.get(f"/approvals/{asked.pk}/", {"do": "approve", "version": "1"})
    page.head(f"/approvals/{asked.pk}/")
    assert Request.objects.get().state == "waiting"


@pytest.mark.slow
def test_a_request_whose_end_has_passed_can_still_be_rejected(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, hours=48, days=1)
    assert "Reject" in shown(page, asked)
    assert decide(page, asked, "approve").status_code == 409
    assert decide(page, asked, "reject", reason="Too late now.").status_code == 302


def test_a_decided_request_shows_how_it_was_judged(page: Client, scene: Scene) -> None:
    asked = ask(scene)
    decisions.reject(
        asked.pk, by=scene.marcus, expected_version=1, reason="No.", now=timezone.now()
    )
    said = shown(page, asked)
    assert "It is already rejected." in said
    assert "Platform leads were to decide." in said


@pytest.mark.slow
def test_the_queue_takes_as_many_queries_for_fifty_as_for_five(
    page: Client, scene: Scene
) -> None:
    counts = []
    for number in (5, 45):
        factories.more_like(ask(scene, days=2), number - 1)
        for address in (
            "/approvals/",
            f"/approvals/{Request.objects.latest('pk').pk}/",
        ):
            with CaptureQueriesContext(connection) as seen:
                page.get(address)
            counts.append(len(seen))
    assert counts[:2] == counts[2:]
    # The screen judges the request anew, which reads policy, prices, budgets, holdings, what was asked lately and what
    # ends next; and whether who asked is still of the team.
    assert counts[0] <= 12, counts
    assert counts[1] <= 20, counts


@pytest.mark.slow
def test_the_queue_says_how_many_follow_those_that_it_shows(
    page: Client, scene: Scene
) -> None:
    factories.more_like(ask(scene, days=2), 49)
    assert page.get("/approvals/").context["more"] == 0
    factories.more_like(ask(scene, days=2), 2)
    shown = page.get("/approvals/")
    assert (len(shown.context["rows"]), shown.context["more"]) == (50, 3)
    assert "3 more follow as they are decided" in " ".join(
        shown.content.decode().split()
    )


@pytest.mark.slow
@pytest.mark.parametrize("values", [{}, {"count": ""}])
def test_approving_less_without_a_number_never_approves_all(
    page: Client, scene: Scene, values: dict[str, str]
) -> None:
    request = ask(scene, 5)
    answer = decide(page, request, "less", **values)
    assert answer.status_code == 422
    assert answer.context["form"].errors == {"count": ["Say how many."]}
    assert Request.objects.get(pk=request.pk).state == "waiting"


def test_who_else_waits_is_shown_only_to_who_may_see_it(
    page: Client, scene: Scene
) -> None:
    request = ask(scene)
    speech = factories.team("Speech", by=scene.mallory)
    factories.join(speech, scene.mallory)
    place = factories.tenancy(speech, scene.flavor.cluster)
    factories.request(scene.mallory, place, scene.flavor, gpus=4, now=timezone.now())
    assert "Speech" in shown(page, request)
    assert "Speech" not in shown(signed_in(scene.ada), request)


FITS_NEVER = "No end within 60 days makes it fit."


def test_what_is_not_possible_is_never_the_primary_button(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, 8)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=21)
    some = page.get(f"/approvals/{asked.pk}/")
    assert some.context["primary"] == {
        "label": "Approve 3 of 8",
        "count": 3,
        "less": True,
        "why": FITS_NEVER,
    }
    assert 'name="do" value="approve"' not in some.content.decode()
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=24)
    none = page.get(f"/approvals/{asked.pk}/")
    assert (none.context["primary"]["label"], none.context["primary"]["count"]) == (
        "",
        0,
    )
    assert FITS_NEVER in none.content.decode()


def test_what_a_closed_cluster_keeps_from_being_granted_is_said_before_the_vote(
    page: Client, scene: Scene
) -> None:
    waiting = ask(scene, 8)
    Cluster.objects.update(enabled=False)
    shown = page.get(f"/approvals/{waiting.pk}/").content.decode()
    why = "Training takes no new requests now"
    assert f"It cannot be granted any more: {why}" in shown
    assert 'value="approve"' not in shown
    assert 'value="reject"' in shown
    assert "Automatic for" not in shown
    assert mark_of(Request.objects.get(pk=waiting.pk)) == "not_now"
    together = page.get(f"/approvals/together?pk={waiting.pk}").content.decode()
    assert (
        f"Request {waiting.pk} of Vision cannot be granted any more: {why}." in together
    )


def test_who_else_waits_is_counted_as_far_as_it_is_still_asked_for(
    page: Client, scene: Scene
) -> None:
    waiting, other = ask(scene, 3), ask(scene, 8)
    Request.objects.filter(pk=other.pk).update(cut_to=4)
    [row] = page.get(f"/approvals/{waiting.pk}/").context["rivals"]["rows"]
    assert row["gpus"] == "4 GPUs"


@pytest.mark.slow
def test_the_queue_ticks_nothing_that_cannot_be_granted(
    page: Client, scene: Scene
) -> None:
    waiting = ask(scene, 8)

    def mark() -> str:
        [row] = page.get(f"/approvals/{waiting.pk}/").context["queue"]
        return str(row["mark"])

    assert mark() == "ok"
    scene.ada.memberships.all().delete()
    assert mark() == "not_now"
    factories.join(scene.team, scene.ada)
    assert mark() == "ok"
    offerings.change("gpus", by=scene.priya, enabled=False)
    assert mark() == "not_now"
    offerings.change("gpus", by=scene.priya, enabled=True)
    factories.leave(scene.tenancy, to="leaving", at=timezone.now())
    assert mark() == "not_now"


def test_who_may_ask_for_any_team_has_not_left_it(scene: Scene) -> None:
    waiting = ask(scene, 8)

    def told() -> tuple[bool, bool]:
        [row] = Request.objects.filter(pk=waiting.pk).with_orphaned()
        return row.is_orphaned, bool(row.why_orphaned)  # type: ignore[attr-defined]

    assert told() == (False, False)
    scene.ada.memberships.all().delete()
    assert told() == (True, True)
    RoleHeld.objects.create(user=scene.ada, role=Role.PLATFORM_LEAD)
    assert told() == (False, False)
    User.objects.filter(pk=scene.ada.pk).update(is_active=False)
    assert told() == (True, True)


@pytest.mark.slow
def test_as_many_as_the_button_says_can_be_approved(page: Client, scene: Scene) -> None:
    asked = ask(scene, 8)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=21)
    offered = page.get(f"/approvals/{asked.pk}/").context["primary"]["count"]
    decide(page, asked, "less", count=str(offered + 1))
    assert Request.objects.get(pk=asked.pk).decisions.count() == 0
    assert decide(page, asked, "less", count=str(offered)).status_code == 302
    assert Request.objects.get(pk=asked.pk).decisions.get().count == offered


def test_a_rejected_step_bears_no_tick_and_speaks_of_the_past(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, 16)
    decide(page, asked, "reject", reason="The pool is full.")
    screen = page.get(f"/approvals/{asked.pk}/")
    assert [seat["state"] for seat in screen.context["seats"]] == ["rejected", "next"]
    assert "steps__item--done" not in screen.content.decode()
    sentence = "Platform leads, then engineering leadership were to decide."
    assert screen.context["verdict"]["sentence"] == sentence
    assert page.get(f"/requests/{asked.pk}/").context["verdict"]["sentence"] == sentence


def test_the_queue_marks_what_fits(page: Client, scene: Scene) -> None:
    small, large = ask(scene, 3, hours=3), ask(scene, 24, hours=2)
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=12)
    rows = page.get(f"/approvals/{small.pk}/").context["queue"]
    assert [(row["href"], row["mark"]) for row in rows] == [
        (f"/approvals/{small.pk}/", "ok"),
        (f"/approvals/{large.pk}/", "not_now"),
    ]


@pytest.mark.slow
def test_what_a_colleague_decided_meanwhile_is_told_on_the_open_page(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, 3)
    assert page.get(f"/approvals/{asked.pk}/").context["meanwhile"] == []
    decisions.approve(
        asked.pk, by=scene.marcus, expected_version=asked.version, now=timezone.now()
    )
    told = page.get(f"/approvals/{asked.pk}/?seen={asked.version}").context["meanwhile"]
    assert any("Marcus Weber approved" in line for line in told)


@pytest.mark.slow
def test_everything_that_waits_is_live(page: Client, scene: Scene) -> None:
    asked = ask(scene, 3)
    for path in (
        "/",
        "/approvals/",
        f"/approvals/{asked.pk}/",
        "/requests/",
        "/tasks/",
    ):
        said = page.get(path).content.decode()
        assert re.search(r'data-live="[^"]*\brequests\b', said), path
        assert 'id="rail" data-live="requests clusters"' in said


def test_a_price_that_is_not_the_one_of_then_is_shown_with_it(
    page: Client, scene: Scene
) -> None:
    waits = ask(scene, 4)
    then = usd(waits.usd)
    Flavor.objects.filter(pk=scene.flavor.pk).update(price_per_gpu_hour=2)
    assert f"({then} when it was asked for)" in shown(page, waits)
