"""Seats that nobody fills: a platform lead sees them at home, on the policy's page and in the rail."""

import pytest
from django.test import Client

from accounts.models import RoleHeld, SeatFill, User
from accounts.roles import Role
from approvals.decisions.empty_seats import empty_seats, vacant
from approvals.models import Step
from approvals.requests.vacancies import vacancies
from tests import factories
from tests.scene import NOW, Scene
from tests.scene import scene as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def scene() -> Scene:
    """Platform leads are there; nobody is engineering leadership."""
    made = make()
    RoleHeld.objects.filter(role=Role.ENGINEERING_LEADERSHIP).delete()
    return made


def shown(client: Client, by: User, path: str) -> str:
    client.force_login(by)
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def counts(client: Client) -> dict[str, int]:
    return {row["label"]: row["count"] for row in client.get("/audit/").context["rail"]}


@pytest.mark.slow
def test_a_lead_sees_the_seat_and_what_waits_for_it(
    client: Client, scene: Scene
) -> None:
    assert "Nobody is known as" not in shown(client, scene.priya, "/")
    first, _ = scene.ask(8), scene.ask(9)
    page = shown(client, scene.priya, "/")
    assert "Nobody is known as engineering leadership" in page
    assert f"(request {first.pk}) and 1 other request wait for this seat" in page
    assert f'href="/requests/{first.pk}/"' in page
    assert "Nobody is known as engineering leadership" in shown(
        client, scene.priya, "/policy/"
    )
    # Two requests wait for one seat.
    assert counts(client)["Policy"] == 1


def test_it_is_gone_as_soon_as_somebody_has_the_seat(
    client: Client, scene: Scene
) -> None:
    scene.ask(8)
    factories.person("Elena the second", Role.ENGINEERING_LEADERSHIP)
    assert "Nobody is known as" not in shown(client, scene.priya, "/")
    assert counts(client)["Policy"] == 0


def test_a_step_that_a_new_policy_does_not_need_waits_for_nobody(
    client: Client, scene: Scene
) -> None:
    asked = scene.ask(8)
    Step.objects.filter(request=asked, seat="engineering_leadership").update(
        dropped_at=NOW
    )
    assert empty_seats() == []
    assert "Nobody is known as" not in shown(client, scene.priya, "/")
    assert counts(client)["Policy"] == 0


def test_only_who_can_fill_seats_is_told(client: Client, scene: Scene) -> None:
    scene.ask(8)
    assert "Nobody is known as engineering leadership" not in shown(
        client, scene.ada, "/policy/"
    )
    assert counts(client)["Policy"] == 0
    assert "Nobody is known as" not in shown(
        client, factories.person("Sam", Role.AUDITOR), "/"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "seat",
    [
        "platform_leads",
        "engineering_leadership",
        "group",
        "person",
        "requester",
        "nobody",
        "unread",
    ],
)
def test_it_is_the_rule_that_requests_are_judged_by(scene: Scene, seat: str) -> None:
    request = scene.ask(4)
    for group in ("aa", "bb"):
        read = f"group:00000000-0000-4000-9000-0000000000{group}"
        SeatFill.objects.create(seat=read, words="a named group", read_at=NOW)
    known = factories.person("Ben", groups=["00000000-0000-4000-9000-0000000000aa"])
    seats = {
        "group": "group:00000000-0000-4000-9000-0000000000aa",
        "person": f"person:{known.oid}",
        "requester": f"person:{request.requester.oid}",
        "nobody": "group:00000000-0000-4000-9000-0000000000bb",
        "unread": "group:00000000-0000-4000-9000-0000000000cc",
    }
    step = Step.objects.get(request=request)
    Step.objects.filter(pk=step.pk).update(seat=seats.get(seat, seat))
    step.refresh_from_db()
    assert vacant().filter(pk=step.pk).exists() == bool(
        vacancies([(step.seat, step.words)], request.requester).empty
    )
    assert bool(empty_seats()) == (
        seat in ("engineering_leadership", "requester", "nobody")
    )
