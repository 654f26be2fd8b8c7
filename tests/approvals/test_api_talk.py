"""Changing and talking about a request over the API, and what it says of what happens next."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from allocations.ends.actions import give_back
from allocations.models import Allocation
from approvals.decisions import escalation
from approvals.decisions.actions import approve
from approvals.models import Comment, Request
from tests import factories
from tests.calling import Caller
from tests.scene import DAY, Scene

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(scene: Scene) -> Request:
    """Five GPUs, a minute ago."""
    now = timezone.now() - timedelta(minutes=1)
    return factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=5, now=now)


def change(caller: Caller, request: Request, body: object, **headers: str) -> Any:
    seen = {"If-Match": f'"{Request.objects.get(pk=request.pk).version}"'}
    return caller.send(
        "PATCH", f"requests/{request.pk}/", body, key=None, **(seen | headers)
    )


@pytest.mark.slow
def test_what_is_left_out_of_a_change_stays_as_it_is(
    scene: Scene, asked: Request
) -> None:
    answer = change(Caller(scene.ada), asked, {"spec": {"gpus": 4}})
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert (body["count"], body["content_version"], body["version"]) == (4, 2, 2)
    assert (body["until"], body["reason"], body["spec"]["flavor"]) == (
        asked.until.isoformat().replace("+00:00", "Z"),
        asked.reason,
        asked.spec["flavor"],
    )
    assert [step["version"] for step in body["steps"]] == [1, 2]
    until = (asked.until + DAY).isoformat()
    body = change(
        Caller(scene.ada),
        asked,
        {"until": until, "reason": "One more day for the review."},
    ).json()
    assert datetime.fromisoformat(body["until"]) == asked.until + DAY
    assert (body["reason"], body["count"]) == ("One more day for the review.", 4)


def test_gpus_are_changed_in_the_short_form_in_which_they_were_asked_for(
    scene: Scene, asked: Request
) -> None:
    ada = Caller(scene.ada)
    body = change(ada, asked, {"gpus": 4, "purpose": "notebook"}).json()
    assert (body["gpus"], body["purpose"], body["content_version"]) == (
        4,
        "notebook",
        2,
    )
    for wrong, pointer in (
        ({"gpus": 3, "spec": {"gpus": 3}}, "/gpus"),
        ({"flavor": "training/none"}, "/flavor"),
    ):
        refused = change(ada, asked, wrong)
        assert refused.status_code == 422
        assert [one["pointer"] for one in refused.json()["errors"]] == [pointer]


def test_a_change_names_the_version_that_was_seen(scene: Scene, asked: Request) -> None:
    ada = Caller(scene.ada)
    missing = change(ada, asked, {"spec": {"gpus": 4}}, **{"If-Match": ""})
    assert (missing.status_code, missing.json()["code"]) == (428, "version_missing")
    stale = change(ada, asked, {"spec": {"gpus": 4}}, **{"If-Match": '"7"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "stale")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"spec": {"gpus": 5}}, 422, "nothing_changed"),
        ({"spec": {"gpus": "4"}}, 422, "invalid"),
        ({"spec": {"colour": "blue"}}, 422, "unknown_field"),
        ({"colour": "blue"}, 422, "unknown_field"),
        ({"until": "2020-01-01T00:00:00Z"}, 422, "in_the_past"),
        ({"spec": {"flavor": "nowhere/a100"}}, 422, "not_there"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(
    scene: Scene, asked: Request, body: object, status: int, code: str
) -> None:
    answer = change(Caller(scene.ada), asked, body)
    said = answer.json()
    assert answer.status_code == status, said
    assert code in str(said)
    assert Request.objects.get().version == 1


def test_a_booking_is_not_changed_to_end_before_it_begins(scene: Scene) -> None:
    now, ada = timezone.now(), Caller(scene.ada)
    body = {
        "team": scene.team.slug,
        "flavor": scene.flavor.key,
        "gpus": 5,
        "purpose": "training",
        "starts_at": (now + 10 * DAY).isoformat(),
        "until": (now + 13 * DAY).isoformat(),
        "reason": "A run for the review.",
    }
    booked = Request.objects.get(pk=ada.post("requests/", body).json()["id"])
    refused = change(ada, booked, {"until": (now + 5 * DAY).isoformat()})
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (
        422,
        "begins_after_its_end",
    )


def test_what_is_kept_longer_begins_no_later(scene: Scene) -> None:
    now = timezone.now()
    held = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=2, now=now)
    ada, until = Caller(scene.ada), (now + 60 * DAY).isoformat()
    body = {"until": until, "reason": "It is not done yet."}
    made = ada.post(f"requests/{held.pk}/renew/", body).json()
    assert made["state"] == "waiting"
    longer = Request.objects.get(pk=made["id"])
    later = {"starts_at": (now + 50 * DAY).isoformat()}
    refused = change(ada, longer, later)
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (
        422,
        "begins_at_once",
    )


def test_others_of_the_team_may_not_change_it_and_strangers_do_not_see_it(
    scene: Scene, asked: Request
) -> None:
    colleague = factories.person(teams=[scene.team])
    for person, status in ((colleague, 403), (scene.priya, 403), (scene.mallory, 404)):
        assert (
            change(Caller(person), asked, {"spec": {"gpus": 4}}).status_code == status
        )


def test_comments_are_added_once_and_listed_oldest_first(
    scene: Scene, asked: Request
) -> None:
    ada, path = Caller(scene.ada), f"requests/{asked.pk}/comments/"
    for _ in range(2):
        made = ada.post(path, {"text": "For the review."}, key="same")
        assert (made.status_code, made.json()["text"], made.json()["by"]["name"]) == (
            201,
            "For the review.",
            "Ada Okafor",
        )
    Caller(scene.priya).post(path, {"text": "I see."})
    assert [row["text"] for row in ada.get(path).json()["results"]] == [
        "For the review.",
        "I see.",
    ]
    assert Comment.objects.count() == 2
    for call in (
        Caller(scene.mallory).get(path),
        Caller(scene.mallory).post(path, {"text": "Me too."}),
    ):
        assert call.status_code == 404
    assert ada.post(path, {"text": ""}).status_code == 422


def test_it_says_what_happens_next_with_its_dates(scene: Scene, asked: Request) -> None:
    step = asked.steps.get()
    said = Caller(scene.ada).get(f"requests/{asked.pk}/").json()["next"]
    assert [row["what"] for row in said] == [
        "Platform leads decide",
        "Platform leads are reminded",
        "Should be decided by",
        "If nobody has, engineering leadership may decide in their place",
        "Lapses, if nobody has decided",
        "Ends, when approved",
    ]
    assert [row["at"] and datetime.fromisoformat(row["at"]) for row in said[:4]] == [
        None,
        step.remind_at,
        step.due_at,
        step.escalate_at,
    ]
    escalation.look(asked.pk, now=timezone.now() + 2 * DAY)
    said = Caller(scene.ada).get(f"requests/{asked.pk}/").json()["next"]
    assert [row["what"] for row in said][:2] == [
        "Platform leads or engineering leadership decide",
        "Should have been decided by",
    ]


def test_a_changed_request_tells_what_each_version_asked_for(
    scene: Scene, asked: Request
) -> None:
    ada = Caller(scene.ada)
    assert ada.get(f"requests/{asked.pk}/").json()["versions"] == []
    body = change(ada, asked, {"spec": {"gpus": 4}}).json()
    assert [
        (one["content_version"], one["by"]["name"], one["name"], one["changed"])
        for one in body["versions"]
    ] == [
        (1, "Ada Okafor", "5 × A100", []),
        (2, "Ada Okafor", "4 × A100", ["GPUs: 5 → 4", "Cost: $360 → $288"]),
    ]
    assert [one["content_version"] for one in body["evaluations"]] == [1, 2]


def test_a_request_of_which_a_vote_left_less_tells_how_much_it_is_about_now(
    scene: Scene,
) -> None:
    now = timezone.now()
    asked = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=12, days=3, now=now
    )
    sooner = asked.until - DAY
    approve(
        asked.pk, by=scene.priya, expected_version=1, count=9, until=sooner, now=now
    )
    ada = Caller(scene.ada)
    listed = ada.get("requests/").json()["results"][0]
    for body in (listed, ada.get(f"requests/{asked.pk}/").json()):
        assert (body["state"], body["count"], body["count_now"]) == ("waiting", 12, 9)
        assert datetime.fromisoformat(body["until"]) == asked.until
        assert datetime.fromisoformat(body["until_now"]) == sooner
        # Nine for two days are half of twelve for three.
        assert Decimal(body["usd_now"]) == Decimal(body["usd"]) / 2


@pytest.mark.parametrize("path", ["requests/", "requests/{}/"])
def test_what_was_granted_for_fewer_tells_what_that_costs(
    scene: Scene, path: str
) -> None:
    now = timezone.now()
    asked = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=4, days=3, now=now
    )
    approve(asked.pk, by=scene.priya, expected_version=1, count=1, now=now)
    found = Caller(scene.ada).get(path.format(asked.pk)).json()
    body = found["results"][0] if "results" in found else found
    assert body["state"] == "approved"
    assert Decimal(body["usd_now"]) == Decimal(body["usd"]) / 4


def test_what_was_taken_back_says_when_by_whom_and_why(scene: Scene) -> None:
    now = timezone.now()
    asked = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=2, days=3, now=now
    )
    held = Allocation.objects.get(hold=asked.hold_id)
    ada = Caller(scene.ada)
    assert ada.get(f"requests/{asked.pk}/").json()["ended"] == []
    give_back(held.pk, gpus=1, by=scene.ada, now=now + timedelta(minutes=1))
    rest = Allocation.objects.live().get(hold=asked.hold_id)
    later = now + timedelta(minutes=2)
    give_back(rest.pk, gpus=1, by=scene.priya, now=later, reason="A node is broken.")
    first, last = ada.get(f"requests/{asked.pk}/").json()["ended"]
    assert (first["what"], first["ended_by"]) == ("1 × A100", "Ada Okafor")
    assert first["taken_back_because"] == ""
    assert (last["ended_by"], last["taken_back_because"], last["end_reason"]) == (
        "Priya Raman",
        "A node is broken.",
        "returned",
    )
    assert datetime.fromisoformat(last["ended_at"]) == later
