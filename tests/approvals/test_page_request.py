"""One request: what it says in every state, what happened and comes, and what its requester can do."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve
from django.utils import timezone

from accounts.models import User
from allocations.budgets import money
from allocations.ends.actions import expire, give_back
from allocations.models import Allocation
from approvals.conversation.actions import edit
from approvals.decisions import actions as decisions
from approvals.models import Request
from approvals.renewals import renewing
from approvals.requests import prices
from approvals.requests.actions import submit, withdraw
from approvals.requests.links import again_link
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from catalogue import actions as offerings
from fleet.models import Cluster, Flavor
from provisioning.models import Tenancy
from tests import factories
from tests.scene import Scene


def ask(scene: Scene, gpus: int = 3, **changes: Any) -> Request:
    """Ada asks; three GPUs need a person, one does not."""
    return factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=gpus, **changes
    )


def shown(client: Client, request: Request) -> str:
    """What the page says."""
    response = client.get(f"/requests/{request.pk}/")
    assert response.status_code == 200
    return str(response.content.decode())


@pytest.fixture
def page(client: Client, scene: Scene) -> Client:
    """Ada's browser."""
    client.force_login(scene.ada)
    return client


def not_granted(scene: Scene) -> Request:
    """A sweep tried to grant it a moment ago, and could not."""
    asked = ask(scene)
    Request.objects.filter(pk=asked.pk).update(
        not_granted_at=timezone.now(), not_granted_because="Stop a notebook first."
    )
    return asked


def test_what_is_held_is_to_be_used_and_what_is_over_is_not(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, gpus=1)
    link = f"/tenancies/{scene.tenancy.pk}/use"
    assert link in shown(page, asked)
    held = Allocation.objects.get(hold=asked.hold_id)
    give_back(held.pk, gpus=1, by=scene.ada, now=timezone.now())
    assert link not in shown(page, asked)


def test_what_may_be_granted_and_cannot_be_says_what_its_requester_can_do(
    page: Client, scene: Scene
) -> None:
    asked = not_granted(scene)
    for place in (f"/requests/{asked.pk}/", "/"):
        said = page.get(place).content.decode()
        assert "would be granted, but something stands in its way" in said, place
        assert "Stop a notebook first." in said, place
    page.force_login(scene.priya)
    assert "Ada Okafor is told: Stop a notebook first." in shown(page, asked)


def test_what_is_changed_does_not_say_why_it_could_not_be_granted_as_it_was(
    page: Client, scene: Scene
) -> None:
    asked = not_granted(scene)
    now = timezone.now()
    wanted = replace(scene.wanted(5), until=now + timedelta(days=3))
    edit(asked.pk, wanted, by=scene.ada, expected_version=1, now=now)
    assert "Stop a notebook first." not in shown(page, asked)


def test_a_waiting_request_says_for_whom_since_when_and_what_can_be_done(
    page: Client, scene: Scene
) -> None:
    said = shown(page, ask(scene))
    what = ("Vision asks for 3 × A100", "Waits for platform leads", "Since", "first")
    for words in (
        *what,
        "Nothing to do; the answer appears here by itself.",
        "Next decision due",
        "Withdraw it",
        "It loses its place in the line",
        "Should be decided by",
    ):
        assert words in said
    assert "Pending" not in said


def test_large_requests_name_both_seats(page: Client, scene: Scene) -> None:
    said = shown(page, ask(scene, 8))
    assert "Waits for platform leads, then engineering leadership" in said
    assert "Then engineering leadership decide" in said


def test_it_says_how_many_are_before_it(page: Client, scene: Scene) -> None:
    ask(scene, now=timezone.now() - timedelta(hours=1))
    assert "1 before it" in shown(page, ask(scene))


def test_who_changes_an_ask_keeps_its_place_in_line(page: Client, scene: Scene) -> None:
    now = timezone.now()
    first = ask(scene, now=now - timedelta(hours=2))
    ask(scene, now=now - timedelta(hours=1))
    edit(
        first.pk,
        replace(scene.wanted(5), until=now + timedelta(days=3)),
        by=scene.ada,
        expected_version=1,
        now=now,
    )
    waiting = page.get(f"/requests/{first.pk}/").context["waiting"]
    assert (waiting["place"], waiting["since"]) == ("first", first.created_at)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("closed", "why"),
    [
        (Cluster, "takes no new requests now."),
        (Flavor, "is not offered now."),
    ],
)
def test_what_nobody_can_approve_now_is_not_promised_an_answer(
    client: Client, scene: Scene, closed: type[Cluster | Flavor], why: str
) -> None:
    asked = scene.ask(8)
    field = "enabled" if closed is Cluster else "is_offered"
    closed._default_manager.update(**{field: False})
    for person, advised in ((scene.ada, True), (scene.priya, False)):
        client.force_login(person)
        shown = client.get(f"/requests/{asked.pk}/").content.decode()
        assert "nobody can approve it now" in shown
        assert why in shown
        assert "the answer appears here by itself" not in shown
        assert ("Withdraw it and ask for something else" in shown) is advised
    client.force_login(scene.ada)
    home = client.get("/").content.decode()
    assert "and nobody can approve it" in home
    assert why in home


def test_nor_is_what_is_offered_no_more(client: Client, scene: Scene) -> None:
    asked = scene.ask(8)
    offerings.change("gpus", by=scene.priya, enabled=False)
    client.force_login(scene.ada)
    for path in (f"/requests/{asked.pk}/", "/"):
        shown = client.get(path).content.decode()
        assert "nobody can approve it" in shown, path
        assert "is not offered here now." in shown


def test_what_waits_for_an_answer_stands_in_nobodys_way(
    page: Client, scene: Scene
) -> None:
    now = timezone.now()
    before = ask(scene, now=now - timedelta(hours=1))
    asked = ask(scene)
    decisions.ask_back(
        before.pk, by=scene.priya, expected_version=1, question="Why?", now=now
    )
    assert page.get(f"/requests/{asked.pk}/").context["waiting"]["place"] == "first"


def test_who_may_decide_is_told_so_and_others_that_they_need_do_nothing(
    page: Client, client: Client, scene: Scene
) -> None:
    asked = ask(scene)
    nothing = "Nothing to do; the answer appears here by itself."
    assert nothing in shown(page, asked)
    client.force_login(scene.priya)
    said = shown(client, asked)
    assert "You can decide it." in said
    assert nothing not in said


def test_a_change_costs_a_day_what_as_many_gpus_cost_a_day(
    page: Client, scene: Scene
) -> None:
    now = timezone.now()
    asked = ask(scene, now=now - timedelta(hours=20))
    wanted = replace(scene.wanted(4), until=asked.until)
    edit(asked.pk, wanted, by=scene.ada, expected_version=1, now=now)
    assert "if granted as asked, $96 a day" in shown(page, asked)


def test_what_was_taken_back_has_no_future(page: Client, scene: Scene) -> None:
    asked = ask(scene)
    page.post(f"/requests/{asked.pk}/withdraw", {"version": asked.version})
    said = shown(page, asked)
    assert "Was asked until" in said
    assert "had it been granted as asked" in said
    assert ", in 3 days" not in said


@pytest.mark.slow
def test_where_less_was_granted_the_price_is_called_the_one_as_asked(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, 5)
    assert "Price as asked" not in shown(page, asked)
    decisions.approve(
        asked.pk, by=scene.priya, expected_version=1, count=4, now=timezone.now()
    )
    assert "Price as asked" in shown(page, asked)


def test_one_gpu_is_spoken_of_as_one(page: Client, scene: Scene) -> None:
    asked = ask(scene, 1)
    assert "1 × A100 is being set up" in shown(page, asked)


def test_it_says_what_is_being_set_up_and_what_runs(page: Client, scene: Scene) -> None:
    asked = ask(scene, 2)
    assert "2 × A100 are being set up" in shown(page, asked)
    factories.make_true(scene.tenancy, at=timezone.now() + timedelta(seconds=1))
    said = shown(page, asked)
    assert "Held" in said
    assert "then they go back by themselves" in said
    assert "Cost so far" in said
    assert "Give back" in said


def test_it_says_that_the_cluster_refused(page: Client, scene: Scene) -> None:
    asked = ask(scene, 1)
    factories.make_true(scene.tenancy, failed="ResourceQuota", message="exceeded quota")
    said = shown(page, asked)
    assert "could not be set up" in said
    assert "exceeded quota" in said


def test_it_waits_for_a_cluster_that_does_not_answer_and_has_not_failed(
    page: Client, scene: Scene
) -> None:
    Cluster.objects.update(reachable=False)
    asked = ask(scene, 1)
    factories.make_true(scene.tenancy, failed="Namespace", message="It is away.")
    said = shown(page, asked)
    assert "Setting up" in said
    assert "The cluster does not answer now: it is made once it does" in said
    assert "could not be set up" not in said


def test_it_says_when_it_ends_soon_and_that_it_ended(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, 1, days=4, now=timezone.now() - timedelta(days=3, hours=12))
    factories.make_true(scene.tenancy)
    assert "Ending soon" in shown(page, asked)
    past = timezone.now() - timedelta(seconds=1)
    Allocation.objects.filter(hold=asked.hold_id).update(
        until=past, kept_until=past, remind_at=None
    )
    expire(Allocation.objects.get(hold=asked.hold_id).pk, now=timezone.now())
    said = shown(page, asked)
    assert "went back. Ask again" in said
    assert "The end date came." in said


def test_what_was_given_back_stands_in_the_story(page: Client, scene: Scene) -> None:
    asked = ask(scene, 2)
    held = Allocation.objects.get(hold=asked.hold_id)
    give_back(held.pk, gpus=1, by=scene.ada, now=timezone.now())
    assert "Gave back 1 × A100" in shown(page, asked)


def set_up_at(client: Client, request: Request) -> list[datetime]:
    """When the story says that it was set up."""
    story = client.get(f"/requests/{request.pk}/").context["timeline"]
    return [entry["at"] for entry in story if entry["title"].startswith("Set up on")]


def converged(scene: Scene, *, generation: int | None = None) -> datetime:
    """A worker made everything true, of an older generation where one is named, and wrote it down."""
    newest = Tenancy.objects.get(pk=scene.tenancy.pk).generation
    with transaction.atomic():
        event = record(
            Kind.TENANCY_CONVERGED,
            actor=PORTAL,
            subject=("tenancy", scene.tenancy.pk),
            generation=generation or newest,
        )
    factories.make_true(scene.tenancy, at=event.at)
    Tenancy.objects.filter(pk=scene.tenancy.pk).update(
        observed_generation=generation or newest
    )
    return event.at


def test_it_was_set_up_when_it_first_was_and_stays_so(
    page: Client, scene: Scene
) -> None:
    converged(scene)
    asked = ask(scene, 2)
    assert set_up_at(page, asked) == []
    first = converged(scene)
    held = Allocation.objects.get(hold=asked.hold_id)
    give_back(held.pk, gpus=1, by=scene.ada, now=timezone.now())
    converged(scene)
    assert set_up_at(page, asked) == [first]


def test_an_older_generation_that_became_true_after_the_grant_did_not_set_it_up(
    page: Client, scene: Scene
) -> None:
    before = Tenancy.objects.get(pk=scene.tenancy.pk).generation
    asked = ask(scene, 2)
    converged(scene, generation=before)
    assert set_up_at(page, asked) == []
    first = converged(scene)
    assert set_up_at(page, asked) == [first]


def test_what_was_never_set_up_is_not_set_up_by_its_end(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, 2)
    held = Allocation.objects.get(hold=asked.hold_id)
    give_back(held.pk, gpus=None, by=scene.ada, now=timezone.now())
    converged(scene)
    assert set_up_at(page, asked) == []


def test_a_rejection_says_who_and_why(page: Client, scene: Scene) -> None:
    asked = ask(scene)
    decisions.reject(
        asked.pk,
        by=scene.priya,
        expected_version=1,
        reason="The pool is full.",
        now=timezone.now(),
    )
    said = shown(page, asked)
    assert "Priya Raman rejected it: The pool is full." in said
    assert "Ask again" in said
    form = page.get(again_link(asked, now=timezone.now())).content.decode()
    assert asked.reason in form


def test_withdrawing_takes_it_back_once(page: Client, scene: Scene) -> None:
    asked = ask(scene)
    assert page.post(f"/requests/{asked.pk}/withdraw").status_code == 302
    assert Request.objects.get().state == "withdrawn"
    assert "took it back before it was decided" in shown(page, asked)
    again = page.post(f"/requests/{asked.pk}/withdraw")
    assert again.status_code == 409
    assert "The request is already withdrawn." in again.content.decode()


def test_only_who_asked_withdraws(client: Client, scene: Scene) -> None:
    asked = ask(scene)
    client.force_login(scene.priya)
    response = client.post(f"/requests/{asked.pk}/withdraw")
    assert response.status_code == 403
    assert "Who asked can withdraw." in response.content.decode()


@pytest.mark.slow
def test_a_question_is_answered_on_the_page(page: Client, scene: Scene) -> None:
    asked = ask(scene)
    decisions.ask_back(
        asked.pk,
        by=scene.priya,
        expected_version=1,
        question="Would two do?",
        now=timezone.now(),
    )
    said = shown(page, asked)
    assert "Waits for an answer from you" in said
    assert "Would two do?" in said
    empty = page.post(f"/requests/{asked.pk}/answer", {"text": " "})
    assert (empty.status_code, "Write something first." in empty.content.decode()) == (
        422,
        True,
    )
    assert (
        page.post(f"/requests/{asked.pk}/answer", {"text": "No, three."}).status_code
        == 302
    )
    assert "Waits for platform leads" in shown(page, asked)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["", "withdraw", "answer"])
def test_a_strangers_request_looks_like_a_missing_one(
    client: Client, scene: Scene, path: str
) -> None:
    asked = ask(scene)
    client.force_login(scene.mallory)
    for pk in (asked.pk, 4_000_000_000_000_000_000):
        address = f"/requests/{pk}/{path}"
        response = (
            client.post(address, {"reason": "x"}) if path else client.get(address)
        )
        assert response.status_code == 404


def test_what_people_write_stays_text(page: Client, scene: Scene) -> None:
    said = shown(
        page, ask(scene, reason="<script>alert(1)</script> & more than ten letters")
    )
    assert "<script>alert(1)" not in said
    assert "&lt;script&gt;alert(1)" in said


@pytest.mark.slow
def test_it_shows_the_same_as_an_api_call_and_can_be_asked_again(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene, reason="It's for the detector's evaluation.")
    response = page.get(f"/requests/{asked.pk}/")
    address = response.context["curl"].split()[3]
    assert resolve(urlsplit(address).path).view_name == "v1:request-list"
    assert '"flavor": "training/a100"' in response.context["curl"]
    assert "It'\\''s for" in response.context["curl"]
    decisions.reject(
        asked.pk, by=scene.priya, expected_version=1, reason="No.", now=timezone.now()
    )
    again = page.get(page.get(f"/requests/{asked.pk}/").context["again"])
    assert "Ask for 3 × A100" in again.content.decode()


@pytest.mark.slow
def test_it_takes_a_dozen_queries_at_most_however_long_its_story(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene)
    address = f"/requests/{asked.pk}/"
    counts = []
    for number in range(3):
        with CaptureQueriesContext(connection) as seen:
            page.get(address)
        counts.append(len(seen))
        version = Request.objects.get(pk=asked.pk).version
        decisions.ask_back(
            asked.pk,
            by=scene.priya,
            expected_version=version,
            question=f"{number}?",
            now=timezone.now(),
        )
        page.post(f"{address}answer", {"text": "Yes."})
    assert max(counts) == min(counts) <= 12


@pytest.mark.slow
def test_what_somebody_asked_who_left_is_withdrawn_by_the_team(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene)
    ben = factories.person("Ben Ruiz", teams=[scene.team])
    page.force_login(ben)
    shown = page.get(f"/requests/{asked.pk}/").content.decode()
    assert "Withdraw it" not in shown
    assert page.post(f"/requests/{asked.pk}/withdraw").status_code == 403
    scene.ada.memberships.all().delete()
    shown = page.get(f"/requests/{asked.pk}/").content.decode()
    assert "is no longer of Vision, so nobody is granted it" in shown
    assert "Withdraw it, and ask for it yourself" in shown
    page.force_login(scene.priya)
    assert "Somebody of the team withdraws it" in (
        page.get(f"/requests/{asked.pk}/").content.decode()
    )
    decide = page.get(f"/approvals/{asked.pk}/").content.decode()
    assert f"{scene.ada.name} is no longer of Vision." in decide
    assert page.post(f"/requests/{asked.pk}/withdraw").status_code == 403
    page.force_login(ben)
    assert page.post(f"/requests/{asked.pk}/withdraw").status_code == 302
    told = f"Ben Ruiz withdrew it: {scene.ada.name} is no longer of Vision."
    assert told in page.get(f"/requests/{asked.pk}/").content.decode()
    assert scene.held_usd() == 0


def test_who_has_no_access_any_more_is_not_said_to_have_left(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene)
    decisions.ask_back(
        asked.pk,
        by=scene.priya,
        expected_version=1,
        question="Why now?",
        now=timezone.now(),
    )
    User.objects.filter(pk=scene.ada.pk).update(is_active=False)
    page.force_login(factories.person("Ben Ruiz", teams=[scene.team]))
    shown = page.get(f"/requests/{asked.pk}/").content.decode()
    words = f"{scene.ada.name} has no access to the portal any more"
    assert f"{words}, so nobody is granted it" in shown
    assert "Nothing to do here" not in shown
    page.post(f"/requests/{asked.pk}/withdraw")
    asked.refresh_from_db()
    assert asked.withdrawn_because == f"Ben Ruiz withdrew it: {words}."


def test_a_booking_costs_from_its_beginning_whenever_it_is_looked_at(
    page: Client, scene: Scene
) -> None:
    now = timezone.now()
    asked = ask(scene)
    begins = now + timedelta(days=8)
    Request.objects.filter(pk=asked.pk).update(
        starts_at=begins,
        until=begins + timedelta(days=1),
        usd=money.cost(
            gpus=asked.gpus,
            price=scene.flavor.price_per_gpu_hour,
            start=begins,
            end=begins + timedelta(days=1),
        ),
    )
    asked.refresh_from_db()
    for at in (now, now + timedelta(days=5)):
        assert prices.usd_now(asked, now=at) == asked.usd
        assert not prices.differs(asked, now=at)


def test_a_change_of_what_is_over_says_that_nothing_was_changed(
    page: Client, scene: Scene
) -> None:
    asked = ask(scene)
    withdraw(asked.pk, by=scene.ada, now=timezone.now())
    assert page.post(f"/requests/{asked.pk}/edit", {}).status_code == 302
    shown = page.get(f"/requests/{asked.pk}/").content.decode()
    assert "Nothing was changed: it is already withdrawn." in shown


def test_who_may_read_old_policies_is_led_to_the_one_that_judged(
    client: Client, scene: Scene
) -> None:
    asked = scene.ask(8)
    for person, href in ((scene.priya, "/policy/versions/1/"), (scene.ada, None)):
        client.force_login(person)
        facts = client.get(f"/requests/{asked.pk}/").context["facts"]
        [judged] = [fact for fact in facts if fact["label"] == "Judged by"]
        assert (judged["text"], judged.get("href")) == ("Policy 1", href)


@pytest.mark.slow
def test_a_renewal_says_that_what_it_would_keep_went_back(
    client: Client, scene: Scene
) -> None:
    now = timezone.now()
    first = factories.request(
        scene.ada,
        scene.tenancy,
        scene.flavor,
        gpus=2,
        days=1,
        now=now - timedelta(days=1, hours=1),
    )
    held = Allocation.objects.get(hold=first.hold_id)
    wanted = renewing.wanted(
        first,
        until=now + timedelta(days=40),
        reason="Go on a while.",
        now=now - timedelta(hours=2),
    )
    renewal = submit(wanted, by=scene.ada, now=now - timedelta(hours=2))
    client.force_login(scene.ada)

    def labels() -> set[str]:
        facts = client.get(f"/requests/{renewal.pk}/").context["facts"]
        return {fact["label"] for fact in facts}

    assert "The GPUs it would keep ended" not in labels()
    Allocation.objects.filter(pk=held.pk).update(
        ended_at=now, end_reason="expired", remind_at=None
    )
    assert "The GPUs it would keep ended" in labels()
