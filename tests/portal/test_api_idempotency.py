"""A call that is repeated does its work once, however it is repeated."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Idempotency
from allocations.models import Allocation, Hold, LedgerEntry
from approvals.models import Request
from tests.calling import Caller
from tests.world import World, world

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> World:
    """Two teams and everybody."""
    return world()


@pytest.fixture
def body() -> dict[str, Any]:
    """A small ask."""
    until = (timezone.now() + timedelta(days=2)).isoformat()
    return {
        "team": "vision",
        "flavor": "training-eastus/a100",
        "gpus": 1,
        "until": until,
        "purpose": "training",
    }


def test_the_same_call_again_gives_the_same_answer(
    here: World, body: dict[str, Any]
) -> None:
    ada = Caller(here.people["member"])
    before = Request.objects.count()
    first = ada.post("requests/", body, key="one")
    again = ada.post("requests/", dict(reversed(body.items())), key="one")
    assert (again.status_code, again.json(), again["Location"]) == (
        201,
        first.json(),
        first["Location"],
    )
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert Request.objects.count() == before + 1


def test_a_namespace_that_is_there_by_now_is_answered_for_once_more(
    here: World, body: dict[str, Any]
) -> None:
    ada, until = Caller(here.people["member"]), body["until"]
    spec = {"cluster": "training-eastus", "project": "streets", "environment": "test"}
    wanted = {"team": "vision", "offering": "namespace", "spec": spec, "until": until}
    first, again = (ada.post("requests/", wanted, key="one") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201), again.content
    assert again.json() == first.json()


@pytest.mark.slow
def test_a_renewal_that_was_granted_is_answered_for_once_more(
    here: World, body: dict[str, Any]
) -> None:
    ada = Caller(here.people["member"])
    made = ada.post("requests/", body).json()["id"]
    until = (timezone.now() + timedelta(days=3)).isoformat()
    first, again = (
        ada.post(f"requests/{made}/renew/", {"until": until}, key="longer")
        for _ in range(2)
    )
    assert (first.status_code, first.json()["state"]) == (201, "approved"), (
        first.content
    )
    assert (again.status_code, again.json()) == (201, first.json()), again.content


def test_the_same_key_with_another_body_is_refused(
    here: World, body: dict[str, Any]
) -> None:
    ada = Caller(here.people["member"])
    ada.post("requests/", body, key="one")
    answer = ada.post("requests/", body | {"gpus": 2}, key="one")
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_mismatch")


@pytest.mark.slow
def test_a_key_is_one_persons_and_one_routes(here: World, body: dict[str, Any]) -> None:
    before = Request.objects.count()
    for user in (here.people["member"], here.own.asker):
        assert Caller(user).post("requests/", body, key="one").status_code == 201
    assert Request.objects.count() == before + 2
    asker = Caller(here.own.asker)
    other = asker.post(f"requests/{here.own.waiting.pk}/withdraw/", key="one")
    assert other.status_code == 200


def test_a_key_given_for_one_object_does_nothing_to_another(here: World) -> None:
    lead = Caller(here.people["platform_lead"])
    headers = {"If-Match": '"1"'}
    assert (
        lead.post(
            f"requests/{here.own.waiting.pk}/approve/", key="one", **headers
        ).status_code
        == 200
    )
    answer = lead.post(
        f"requests/{here.other.waiting.pk}/approve/", key="one", **headers
    )
    assert answer.json()["code"] == "idempotency_mismatch"
    assert Request.objects.get(pk=here.other.waiting.pk).state == "waiting"


def test_a_call_that_changes_something_needs_a_usable_key(
    here: World, body: dict[str, Any]
) -> None:
    ada = Caller(here.people["member"])
    before = Request.objects.count()
    for key in (None, " ", "x" * 256, "a b", "ä"):
        answer = ada.post("requests/", body, key=key)
        assert (answer.status_code, answer.json()["code"]) == (
            400,
            "idempotency_key_missing",
        ), key
    assert ada.post("requests/", body, key="x" * 255).status_code == 201
    assert Request.objects.count() == before + 1


def test_a_refused_call_leaves_its_key_free(here: World, body: dict[str, Any]) -> None:
    ada = Caller(here.people["member"])
    assert ada.post("requests/", body | {"gpus": 500}, key="one").status_code == 422
    assert not Idempotency.objects.exists()
    assert ada.post("requests/", body, key="one").status_code == 201


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_same_call_many_times_at_once_leaves_one_row(
    here: World, body: dict[str, Any]
) -> None:
    ada = Caller(here.people["member"])
    before = (
        Request.objects.count(),
        Allocation.objects.count(),
        LedgerEntry.objects.count(),
    )

    def send(_: int) -> tuple[int, int]:
        try:
            answer = ada.post("requests/", body, key="one")
            return answer.status_code, answer.json()["id"]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(send, range(16)))
    assert len(answers) == 1
    assert next(iter(answers))[0] == 201
    assert Request.objects.count() == before[0] + 1
    assert Allocation.objects.count() == before[1] + 1
    made = LedgerEntry.objects.filter(hold__in=Hold.objects.order_by("-pk")[:1])
    assert LedgerEntry.objects.count() == before[2] + made.count()
    months = made.values("budget__month").distinct()
    assert 0 < made.count() == months.count()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_giving_back_twice_with_one_key_gives_back_once(here: World) -> None:
    asker = Caller(here.own.asker)
    path = f"allocations/{here.own.allocation.pk}/give-back/"
    first = asker.post(path, {}, key="back")
    assert (first.status_code, first.json()) == (200, {"rest": None})
    assert asker.post(path, {}, key="back").json() == first.json()
    assert asker.post(path, {}, key="other").status_code == 409
