"""Deciding over the API: as it was seen, once, and by who has the right."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from approvals.models import Decision, Request
from audit.models import Event
from tests import factories
from tests.calling import Caller
from tests.world import World, world

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> World:
    """Two teams and everybody."""
    return world()


@pytest.fixture
def priya(here: World) -> Caller:
    """A platform lead."""
    return Caller(here.people["platform_lead"])


def seen(caller: Caller, request: Request) -> dict[str, str]:
    """The header that says what the caller saw."""
    return {"If-Match": caller.get(f"requests/{request.pk}/")["ETag"]}


def test_a_lead_approves_what_they_saw(here: World, priya: Caller) -> None:
    path = f"requests/{here.own.waiting.pk}/"
    answer = priya.post(
        f"{path}approve/",
        {"count": 3, "reason": "Three will do."},
        **seen(priya, here.own.waiting),
    )
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert (body["state"], body["approved_count"]) == ("approved", 3)
    assert body["decisions"][-1]["by"]["name"] == "Priya Raman"
    assert body["decisions"][-1]["seat"] == "platform_leads"


def test_a_lead_approves_a_shorter_time_than_was_asked(
    here: World, priya: Caller
) -> None:
    asked = factories.request(
        here.own.asker, here.own.tenancy, here.flavor, gpus=1, days=20
    )
    path, until = f"requests/{asked.pk}/", asked.until - timedelta(days=10)
    late = priya.post(
        f"{path}approve/",
        {"until": (asked.until + timedelta(days=1)).isoformat()},
        **seen(priya, asked),
    )
    assert (late.status_code, late.json()["code"]) == (422, "end_out_of_range")
    assert late.json()["errors"][0]["pointer"] == "/until"
    answer = priya.post(
        f"{path}approve/", {"until": until.isoformat()}, **seen(priya, asked)
    )
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert (body["state"], body["approved_count"]) == ("approved", 1)
    assert [
        datetime.fromisoformat(at)
        for at in (
            body["until"],
            body["approved_until"],
            body["decisions"][-1]["until"],
            body["allocation"]["until"],
        )
    ] == [asked.until, until, until, until]


def test_an_end_is_not_chosen_for_several_requests_at_once(
    here: World, priya: Caller
) -> None:
    one = {"request": here.own.waiting.pk, "version": 1, "verdict": "approve"}
    ends = {**one, "until": here.own.waiting.until.isoformat()}
    answer = priya.post("decisions/", {"decisions": [ends]})
    assert answer.status_code == 422
    assert Request.objects.get(pk=here.own.waiting.pk).state == "waiting"


def test_the_queue_holds_what_waits_for_the_caller_and_nothing_of_their_own(
    here: World, priya: Caller
) -> None:
    waiting = {here.own.waiting.pk, here.other.waiting.pk}
    assert {row["id"] for row in priya.get("approvals/").json()["results"]} == waiting
    own = factories.request(
        here.people["platform_lead"], here.own.tenancy, here.flavor, gpus=5
    )
    assert {row["id"] for row in priya.get("approvals/").json()["results"]} == waiting
    assert (
        priya.get(f"requests/{own.pk}/").json()["why_not_decide"]
        == "Nobody decides their own request."
    )
    for name in ("member", "team_lead", "auditor", "outsider"):
        assert Caller(here.people[name]).get("approvals/").json()["results"] == []


def test_it_says_why_what_may_be_granted_could_not_be(
    here: World, priya: Caller
) -> None:
    path = f"requests/{here.own.waiting.pk}/"
    assert priya.get(path).json()["why_not_granted"] == ""
    Request.objects.filter(pk=here.own.waiting.pk).update(
        not_granted_at=timezone.now(), not_granted_because="Stop a notebook first."
    )
    assert priya.get(path).json()["why_not_granted"] == "Stop a notebook first."


def test_the_queue_is_narrowed_as_its_page_narrows_it(
    here: World, priya: Caller
) -> None:
    def ids(query: str) -> set[int]:
        answer = priya.get(f"approvals/?{query}")
        assert answer.status_code == 200, answer.content
        return {row["id"] for row in answer.json()["results"]}

    own, other = here.own.waiting, here.other.waiting
    large = factories.request(here.own.asker, here.own.tenancy, here.flavor, gpus=8)
    Request.objects.filter(pk=other.pk).update(
        created_at=timezone.now() - timedelta(days=2)
    )
    assert ids("team=speech") == ids("age=day") == {other.pk}
    assert ids("size=large") == ids("size=large&team=vision") == {large.pk}
    assert ids("size=small") == {own.pk, other.pk}
    assert ids("offering=gpus") == {own.pk, other.pk, large.pk}
    assert ids("offering=training") == ids("age=week") == set()
    assert (
        priya.get("approvals/?size=huge").status_code
        == priya.get("approvals/?age=1").status_code
        == 400
    )


def test_a_decision_says_which_version_was_seen(here: World, priya: Caller) -> None:
    path = f"requests/{here.own.waiting.pk}/approve/"
    for given in ({}, {"If-Match": ""}, {"If-Match": "*"}):
        answer = priya.post(path, **given)
        assert (answer.status_code, answer.json()["code"]) == (428, "version_missing")
    for stale in ('"999.abc"', 'W/"1.abc"', "1", '"x"', '"1", "2"'):
        answer = priya.post(path, **{"If-Match": stale})
        assert (answer.status_code, answer.json()["code"]) == (412, "stale"), stale
    assert not Decision.objects.filter(request=here.own.waiting).exists()


@pytest.mark.slow
def test_what_changed_since_is_not_decided(here: World, priya: Caller) -> None:
    before = seen(priya, here.own.waiting)
    path = f"requests/{here.own.waiting.pk}/"
    asked = priya.post(f"{path}ask/", {"text": "Why four?"}, **before)
    assert asked.json()["turn"] == "requester"
    assert (
        Caller(here.own.asker)
        .post(f"{path}answer/", {"text": "Two runs of two."})
        .json()["turn"]
        == "approver"
    )
    assert priya.post(f"{path}approve/", **before).status_code == 412
    assert (
        priya.post(f"{path}approve/", **seen(priya, here.own.waiting)).status_code
        == 200
    )


def test_nobody_decides_their_own_request_with_any_token(here: World) -> None:
    lead = here.people["platform_lead"]
    own = factories.request(lead, here.own.tenancy, here.flavor, gpus=5)
    for caller in (Caller(lead), Caller(lead)):
        answer = caller.post(f"requests/{own.pk}/approve/", **seen(caller, own))
        assert (answer.status_code, answer.json()["code"]) == (403, "self_approval")
    assert not Decision.objects.filter(request=own).exists()


@pytest.mark.slow
def test_who_holds_no_seat_is_refused_and_it_is_remembered(here: World) -> None:
    for name in ("member", "team_lead", "auditor", "leadership"):
        caller = Caller(here.people[name])
        for verb, body in (
            ("approve", {}),
            ("reject", {"reason": "No."}),
            ("ask", {"text": "Why?"}),
        ):
            answer = caller.post(
                f"requests/{here.own.waiting.pk}/{verb}/",
                body,
                **seen(caller, here.own.waiting),
            )
            assert (answer.status_code, answer.json()["code"]) == (
                403,
                "not_an_approver",
            ), (name, verb)
            event = Event.objects.latest("seq")
            assert (event.outcome, event.actor_name) == (
                "refused",
                here.people[name].name,
            )
    assert not Decision.objects.filter(request=here.own.waiting).exists()


def test_a_rejection_needs_a_reason(here: World, priya: Caller) -> None:
    path = f"requests/{here.own.waiting.pk}/reject/"
    for body in ({}, {"reason": ""}, {"reason": "  "}):
        answer = priya.post(path, body, **seen(priya, here.own.waiting))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/reason"
    answer = priya.post(
        path, {"reason": "Use the T4s."}, **seen(priya, here.own.waiting)
    )
    assert answer.json()["state"] == "rejected"
    answer = priya.post(path, {"reason": "Again."}, **seen(priya, here.own.waiting))
    assert (answer.status_code, answer.json()["code"]) == (409, "already_decided")


def test_more_than_was_asked_for_is_never_approved(here: World, priya: Caller) -> None:
    path = f"requests/{here.own.waiting.pk}/approve/"
    for count in (0, 5, 100_001, True, "4"):
        assert (
            priya.post(
                path, {"count": count}, **seen(priya, here.own.waiting)
            ).status_code
            == 422
        )
    assert Request.objects.get(pk=here.own.waiting.pk).state == "waiting"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_many_votes_at_once_leave_one_decision(here: World, priya: Caller) -> None:
    header = seen(priya, here.own.waiting)
    path = f"requests/{here.own.waiting.pk}/approve/"

    def vote(_: int) -> int:
        try:
            return int(priya.post(path, **header).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        codes = sorted(pool.map(vote, range(16)))
    assert codes == [200] + [409] * 15
    assert Decision.objects.filter(request=here.own.waiting).count() == 1
