"""Who decides is known from the directory: whoever never signed in is told, and decides when they come."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.actions import take_over
from accounts.models import GroupHeld, RoleHeld, SeatFill, User
from accounts.roles import Role
from accounts.tasks import follow_due
from approvals.decisions import seats_from_directory as filling
from approvals.decisions.empty_seats import empty_seats
from approvals.decisions.routing import open_step
from approvals.requests.page import waiting_line
from approvals.requests.timeline import entries
from approvals.states import State
from connectors.entra import Claims
from notices.models import Delivery, Notice
from sandbox.world import group_id, person_id
from tests import factories
from tests.calling import Caller
from tests.directory import directory, entra_server
from tests.sandbox.entra.running import Running
from tests.scene import NOW, Scene
from tests.scene import scene as make
from ui.parts import in_time

__all__ = ["directory", "entra_server"]
pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
PRIYA, MARCUS, ELENA = (person_id(number) for number in (4, 5, 6))


@pytest.fixture
def scene() -> Scene:
    """A team whose platform leads and leadership have never signed in."""
    made = make()
    RoleHeld.objects.exclude(user=made.ada).delete()
    return made


def names(kind: str) -> set[str]:
    rows = Notice.objects.filter(kind=kind, person__isnull=False)
    return set(rows.values_list("person__name", flat=True))


def test_who_never_signed_in_is_mailed_and_is_the_same_person_when_they_sign_in(
    directory: Running, scene: Scene
) -> None:
    assert filling.fill_due(NOW) == 2
    request = scene.ask(8)
    assert names("request_waiting") == {"Priya Raman", "Marcus Weber"}
    priya = User.objects.get(oid=PRIYA)
    assert (priya.signed_in_at, priya.email) == (None, "priya@example.com")
    notice = Notice.objects.get(kind="request_waiting", person=priya)
    assert notice.link == f"/approvals/{request.pk}/"
    assert Delivery.objects.filter(notice=notice, way="email", state="waiting").exists()
    claims = Claims(
        oid=PRIYA, tid=str(priya.tid), name="Priya Raman", roles=("PlatformLead",)
    )
    assert take_over(claims, groups=[group_id(4)], now=NOW).pk == priya.pk


def test_who_becomes_known_after_the_ask_is_told_of_it_once(
    directory: Running, scene: Scene
) -> None:
    scene.ask(8)
    assert names("request_waiting") == set()
    filling.fill_due(NOW)
    filling.fill_due(NOW + MINUTE)
    told = Notice.objects.filter(kind="request_waiting", person__isnull=False)
    assert sorted(told.values_list("person__name", flat=True)) == [
        "Elena Petrova",
        "Marcus Weber",
        "Priya Raman",
    ]


def test_a_seat_that_cannot_be_taken_over_keeps_no_other_from_being_read(
    directory: Running, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.ask(8)
    people = directory.sandbox.directory.people
    # No text of PostgreSQL holds this character.
    monkeypatch.setitem(people, ELENA, replace(people[ELENA], name="Elena\x00"))
    with pytest.raises(ExceptionGroup):
        filling.fill_due(NOW)
    assert names("request_waiting") == {"Priya Raman", "Marcus Weber"}


def test_groups_are_expanded_and_blocked_accounts_are_nobody(
    directory: Running, scene: Scene
) -> None:
    known = directory.sandbox.directory
    known.assign(group_id(2), "EngineeringLeadership")
    known.set_enabled(ELENA, False)
    filling.fill_due(NOW)
    holders = RoleHeld.objects.filter(role=Role.ENGINEERING_LEADERSHIP)
    assert set(holders.values_list("user__name", flat=True)) == {
        "Ada Okafor",
        "Noor Haddad",
    }


def test_people_of_a_group_that_the_policy_names_are_known(
    directory: Running, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        filling, "groups_that_decide", lambda now: frozenset({group_id(7)})
    )
    filling.fill_due(NOW)
    row = SeatFill.objects.get(seat=f"group:{group_id(7)}")
    assert (row.people, row.read_at) == (2, NOW)
    held = GroupHeld.objects.filter(group=group_id(7)).values_list(
        "user__name", flat=True
    )
    assert set(held) == {"Ada Okafor", "Ben Ruiz"}


def test_what_was_read_outlives_an_outage_with_its_age(
    directory: Running, scene: Scene
) -> None:
    filling.fill_due(NOW)
    assert filling.fill_due(NOW + MINUTE) == 0
    directory.admin("POST", "/sandbox/faults", path="servicePrincipals", status=503)
    later = NOW + filling.KNOWN_FOR
    assert filling.fill_due(later) == 0
    row = SeatFill.objects.get(seat="platform_leads")
    assert (row.read_at, row.people) == (NOW, 2)
    assert row.error.startswith("Graph answered 503")
    scene.ask(8, now=later)
    assert names("request_waiting") == {"Priya Raman", "Marcus Weber"}


def test_who_loses_the_seat_in_the_directory_loses_it_here(
    directory: Running, scene: Scene
) -> None:
    filling.fill_due(NOW)
    directory.sandbox.directory.withdraw(ELENA, "EngineeringLeadership")
    follow_due(NOW + MINUTE)
    assert not RoleHeld.objects.filter(role=Role.ENGINEERING_LEADERSHIP).exists()


def test_nobody_uses_the_api_who_never_signed_in(
    directory: Running, scene: Scene
) -> None:
    filling.fill_due(NOW)
    headers = {"Authorization": f"Bearer {directory.token(kind='api', person=PRIYA)}"}
    assert Client().get("/api/v1/me/", headers=headers).status_code == 401


def test_an_empty_seat_is_said_before_the_ask_and_after_it_and_passed_on_at_once(
    scene: Scene,
) -> None:
    elena = factories.person("Elena Petrova", Role.ENGINEERING_LEADERSHIP)
    body = {
        "team": scene.team.slug,
        "flavor": f"{scene.flavor.cluster.name}/{scene.flavor.name}",
        "gpus": 6,
        "until": (timezone.now() + timedelta(days=3)).isoformat(),
        "purpose": "training",
        "reason": "Retrain the detector before the review.",
    }
    said: Any = Caller(scene.ada).post("requests/preview/", body).json()
    assert said["empty_seats"] == ["platform leads"]
    request = scene.ask(6)
    step = open_step(request)
    assert step is not None
    assert step.escalated_at == NOW
    assert names("request_waiting") == {elena.name}
    assert names("seat_empty") == {scene.ada.name}
    text = Notice.objects.get(kind="seat_empty", person=scene.ada).said.sentence
    assert text.startswith("Nobody is known as platform leads")
    line = waiting_line(request, [step], [], viewer=scene.ada, now=NOW)
    assert "Nobody is known as platform leads" in line["advice"]


def test_a_new_installation_says_that_it_has_not_looked_yet_and_passes_nothing_on(
    directory: Running, scene: Scene
) -> None:
    SeatFill.objects.all().delete()
    body = {
        "team": scene.team.slug,
        "flavor": f"{scene.flavor.cluster.name}/{scene.flavor.name}",
        "gpus": 6,
        "until": (timezone.now() + timedelta(days=3)).isoformat(),
        "purpose": "training",
        "reason": "Retrain the detector before the review.",
    }
    said: Any = Caller(scene.ada).post("requests/preview/", body).json()
    assert (said["empty_seats"], said["unread_seats"]) == ([], ["platform leads"])
    request = scene.ask(6)
    step = open_step(request)
    assert step is not None
    assert step.escalated_at is None
    assert names("seat_empty") == set()
    assert empty_seats() == []
    line = waiting_line(request, [step], [], viewer=scene.ada, now=NOW)
    assert "has not read yet who platform leads are" in line["advice"]
    assert "within half a minute" in line["advice"]
    filling.fill_due(NOW)
    assert names("request_waiting") == {"Priya Raman", "Marcus Weber"}
    assert names("seat_empty") == set()


def test_the_first_reading_tells_of_a_seat_that_it_finds_empty(
    directory: Running, scene: Scene
) -> None:
    SeatFill.objects.all().delete()
    directory.sandbox.directory.withdraw(ELENA, "EngineeringLeadership")
    scene.ask(8)
    assert names("seat_empty") == set()
    filling.fill_due(NOW)
    assert names("seat_empty") == {"Ada Okafor", "Priya Raman", "Marcus Weber"}
    filling.fill_due(NOW + filling.KNOWN_FOR)
    assert Notice.objects.filter(kind="seat_empty", person=scene.ada).count() == 1


def test_a_first_reading_that_failed_says_when_it_was_tried(
    directory: Running, scene: Scene
) -> None:
    SeatFill.objects.all().delete()
    directory.admin("POST", "/sandbox/faults", path="servicePrincipals", status=503)
    filling.fill_due(NOW)
    request = scene.ask(6)
    line = waiting_line(
        request, list(request.steps.all()), [], viewer=scene.ada, now=NOW
    )
    assert "Entra ID did not answer at 12:00 UTC" in line["advice"]


def test_platform_leads_are_told_that_nobody_is_known_of_leadership() -> None:
    made = make()
    RoleHeld.objects.filter(role=Role.ENGINEERING_LEADERSHIP).delete()
    made.ask(8)
    assert names("seat_empty") == {made.ada.name, made.priya.name, made.marcus.name}
    assert names("request_waiting") == {made.priya.name, made.marcus.name}


def test_nothing_is_announced_for_after_the_lapse(scene: Scene) -> None:
    request = scene.ask(8)
    request.steps.update(escalate_at=request.lapses + timedelta(hours=1))
    rows = entries(
        request,
        state=State.WAITING,
        evaluation=request.evaluations.latest("id"),
        decisions=[],
        steps=list(request.steps.all()),
        allocations=[],
        now=NOW,
    )
    dated = [row for row in rows if row["phase"] == "future" and row["at"] != ""]
    assert dated == in_time(dated)
