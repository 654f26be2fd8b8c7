"""Keeping GPUs longer by page and API: seen before it is sent, sent once, and what the other pages say of it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from allocations.ends.reminders import remind
from allocations.models import Allocation, Leftover
from approvals.models import Request
from approvals.renewals.renewing import request_of
from approvals.requests.listing import with_all
from approvals.requests.page import sentence
from approvals.states import State
from fleet.models import Cluster, Flavor
from notices.models import Notice
from tests import factories
from tests.calling import Caller
from tests.scene import Scene
from tests.scene import scene as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def scene() -> Scene:
    return make()


@pytest.fixture
def held(scene: Scene) -> Allocation:
    """Two GPUs of Vision for three days."""
    return factories.allocation(scene.ada, scene.tenancy, scene.flavor, gpus=2)


@pytest.fixture
def page(client: Client, scene: Scene) -> Client:
    client.force_login(scene.ada)
    return client


def address(held: Allocation) -> str:
    return f"/allocations/{held.pk}/renew"


def later(held: Allocation, days: int = 2) -> str:
    return (held.until + timedelta(days=days, minutes=1)).strftime("%Y-%m-%dT%H:%M")


def live() -> Allocation:
    return Allocation.objects.live().get()


def test_it_shows_the_answer_before_anything_is_asked(
    page: Client, held: Allocation
) -> None:
    shown = page.get(address(held), {"days": "1"})
    answer = shown.context["answer"]
    assert answer["button"] == "Keep 2 × A100 longer"
    assert [row["label"] for row in answer["changes"]] == ["Quota, A100", "Ends"]
    assert answer["changes"][0]["before"] == answer["changes"][0]["after"] == "2 GPUs"
    assert "on top" in answer["extra"]
    assert [step["title"] for step in shown.context["steps"]] == [
        "Ends; the GPUs go back to the pool by themselves",
        "Work that still runs on them is stopped",
    ]
    assert Request.objects.count() == 1


def test_a_price_that_is_not_the_one_of_then_is_said_of_all_days(
    page: Client, held: Allocation
) -> None:
    words = "from the renewal on, all days cost $1.50, those granted before, too."
    assert words not in page.get(address(held)).context["answer"]["extra"]
    Flavor.objects.update(price_per_gpu_hour="1.5")
    extra = page.get(address(held)).context["answer"]["extra"]
    assert f"A GPU-hour costs $1.50 now and $1.00 as it was granted: {words}" in extra


def test_what_is_not_kept_longer_is_said_before_anything_is_asked(
    page: Client, held: Allocation
) -> None:
    why = "What is held there stays until its end, and is not kept longer"
    Cluster.objects.update(enabled=False)
    shown = page.get(f"/allocations/{held.pk}/renew").content.decode()
    assert f"Training takes no new requests now. {why}." in shown
    Cluster.objects.update(enabled=True)
    Flavor.objects.update(is_offered=False)
    shown = page.get(f"/allocations/{held.pk}/renew").content.decode()
    assert f"A100 on Training is not offered now. {why}." in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda: Cluster.objects.update(enabled=False), "takes no new requests now"),
        (lambda: Flavor.objects.update(is_offered=False), "is not offered now"),
    ],
)
def test_nothing_offers_to_keep_what_cannot_be_kept_longer(
    page: Client, held: Allocation, change: Callable[[], object], why: str
) -> None:
    assert held.tenancy is not None
    factories.make_true(held.tenancy, at=timezone.now())
    request = Request.objects.get()
    asked = f"/requests/{request.pk}/"
    link = f"/allocations/{held.pk}/renew"
    for shown in (asked, "/teams/vision/"):
        assert link in page.get(shown).content.decode()
    change()
    for shown in (asked, "/teams/vision/"):
        assert link not in page.get(shown).content.decode()
    assert "cannot be kept longer" in page.get("/teams/vision/").content.decode()
    row = Allocation.objects.described().get(pk=held.pk)
    assert row.remind_at is not None
    assert remind(row.pk, now=row.remind_at)
    told = Notice.objects.filter(kind="allocation_ending").latest("pk")
    assert "They cannot be kept longer" in told.message["sentence"]
    assert why in told.message["sentence"]
    assert told.link == "/teams/vision/"
    soon = held.until - timedelta(hours=1)
    said = sentence(
        with_all(Request.objects.filter(pk=request.pk)).get(),
        State.ENDING_SOON,
        [],
        now=soon,
    )
    assert said.endswith(f"{why}, so nothing there is kept longer.")


def test_without_a_choice_it_is_seven_days_more(page: Client, held: Allocation) -> None:
    shown = page.get(address(held))
    assert shown.context["form"].data["until"] == later(held, 7)
    words = " ".join(shown.content.decode().split())
    assert (
        "They go on without a gap if this is granted before that end; otherwise they end then."
        in words
    )


@pytest.mark.slow
def test_one_click_keeps_them_and_a_second_sending_changes_nothing(
    page: Client, held: Allocation
) -> None:
    body = {"until": later(held), "reason": "", "token": "one"}
    answers = [page.post(address(held), body) for _ in range(2)]
    made = Request.objects.exclude(renews=None).get()
    assert [answer["Location"] for answer in answers] == [f"/requests/{made.pk}/"] * 2
    assert (live().hold, live().gpus) == (made.hold, 2)
    assert (
        "go on without a gap"
        in page.get(f"/requests/{made.renews_id}/").content.decode()
    )
    assert f"request {made.pk}" in page.get(address(held)).content.decode()


@pytest.mark.slow
def test_what_people_decide_says_so_and_needs_a_reason(
    page: Client, held: Allocation
) -> None:
    body = {"until": later(held, 30), "reason": "", "token": "one"}
    refused = page.post(address(held), body)
    assert refused.status_code == 422
    assert "A person decides this." in refused.content.decode()
    body |= {"reason": "The training is at half of its epochs.", "token": "two"}
    made = Request.objects.get(
        pk=page.post(address(held), body)["Location"].split("/")[2]
    )
    assert (made.state, live().pk) == ("waiting", held.pk)
    shown = page.get(f"/requests/{made.pk}/")
    assert "Asked to keep 2 × A100 longer" in shown.content.decode()
    ends = {"label": "Ends without it", "at": held.until}
    assert ends in shown.context["facts"]


def test_an_earlier_end_is_said_at_its_field(page: Client, held: Allocation) -> None:
    refused = page.post(address(held), {"until": later(held, -1), "token": "one"})
    assert refused.status_code == 422
    assert "later than the present one" in refused.content.decode()


def test_strangers_see_nothing_of_it(
    client: Client, scene: Scene, held: Allocation
) -> None:
    client.force_login(scene.mallory)
    assert client.get(address(held)).status_code == 404
    assert client.post(address(held), {"until": later(held)}).status_code == 404


def test_what_went_back_is_offered_anew(page: Client, held: Allocation) -> None:
    page.post(f"/allocations/{held.pk}/give-back", {"gpus": "2", "token": "one"})
    assert "not held any more" in page.get(address(held)).content.decode()


def test_the_pages_lead_there_once_it_is_there(page: Client, held: Allocation) -> None:
    asked = f"/requests/{request_of(held).pk}/"  # type: ignore[union-attr]
    assert "7 more days" not in page.get(asked).content.decode()
    assert held.tenancy is not None
    factories.make_true(held.tenancy, at=timezone.now() + timedelta(seconds=1))
    for where in ("/teams/vision/", asked):
        assert f'href="{address(held)}"' in page.get(where).content.decode()


def test_every_step_is_dated_on_the_pages_and_in_the_api(
    page: Client, scene: Scene, held: Allocation
) -> None:
    Allocation.objects.update(grace_hours=4, kept_until=held.until + timedelta(hours=4))
    said = Caller(scene.ada).get(f"allocations/{held.pk}/").json()
    assert [step["what"] for step in said["next_steps"]] == [
        "reminder",
        "reminder",
        "end",
        "grace_end",
        "drain",
    ]
    request = request_of(held)
    assert request is not None
    titles = [
        part["title"]
        for part in page.get(f"/requests/{request.pk}/").context["timeline"]
    ]
    assert titles[-3:] == [
        "Ends; kept without charge for a while",
        "The GPUs go back to the pool by themselves",
        "Work that still runs on them is stopped",
    ]
    team = page.get("/teams/vision/").content.decode()
    assert "without charge" in team
    assert "Work that still runs on them is stopped" in team


@pytest.mark.slow
def test_what_still_runs_stands_on_the_pages_and_in_the_api(
    page: Client, scene: Scene, held: Allocation
) -> None:
    page.post(f"/allocations/{held.pk}/give-back", {"gpus": "2", "token": "one"})
    job = {
        "uid": "u",
        "name": "job-bert",
        "job": "Job bert",
        "priority": 1000,
        "since": "2026-11-20T12:00:00Z",
        "gpus": {"a100": 2},
    }
    Leftover.objects.update(running=[job], seen_at=timezone.now())
    request = request_of(held)
    assert request is not None
    for where in ("/teams/vision/", f"/requests/{request.pk}/"):
        said = page.get(where).content.decode()
        assert "1 job still uses 2 × A100 beyond what is held" in said
        assert "Job bert" in said
        assert "Work that still runs is stopped" in said
    body = Caller(scene.ada).get(f"requests/{request.pk}/").json()
    assert [
        (one["job"], one["gpus"], one["flavor"]) for one in body["still_running"]
    ] == [("Job bert", 2, "a100")]


@pytest.mark.slow
def test_the_api_keeps_them_too(scene: Scene, held: Allocation) -> None:
    ada, request = Caller(scene.ada), request_of(held)
    assert request is not None
    until = (held.until + timedelta(days=2)).isoformat()
    seen: dict[str, Any] = ada.post(
        f"requests/{request.pk}/renew/preview/", {"until": until}
    ).json()
    assert (seen["quota"], seen["answer"]["outcome"]) == (
        {"before": 2, "after": 2},
        "automatic",
    )
    assert seen["usd_per_day"]["before"] == seen["usd_per_day"]["after"]
    made = ada.post(f"requests/{request.pk}/renew/", {"until": until})
    assert (made.status_code, made.json()["renews"], made.json()["state"]) == (
        201,
        request.pk,
        "approved",
    )
    gone = ada.post(f"requests/{request.pk}/renew/", {"until": until})
    assert (gone.status_code, gone.json()["code"]) == (409, "not_held")
    early = ada.post(
        f"requests/{made.json()['id']}/renew/", {"until": held.until.isoformat()}
    )
    assert (early.status_code, early.json()["errors"][0]["code"]) == (422, "not_later")


def test_in_its_grace_it_is_still_held_and_says_until_when(
    page: Client, held: Allocation
) -> None:
    now = timezone.now()
    Allocation.objects.update(
        starts_at=now - timedelta(days=3),
        until=now - timedelta(hours=1),
        kept_until=now + timedelta(hours=3),
        grace_hours=4,
        remind_at=None,
    )
    assert held.tenancy is not None
    factories.make_true(held.tenancy)
    request = request_of(held)
    assert request is not None
    shown = page.get(f"/requests/{request.pk}/")
    assert shown.context["state"]["word"] == "Ending soon"
    titles = [part["title"] for part in shown.context["timeline"]]
    assert "The GPUs go back to the pool by themselves" in titles
    assert "In its grace" in page.get("/teams/vision/").content.decode()
