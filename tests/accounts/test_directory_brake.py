"""The directory may be wrong: one answer is a doubt, a strange directory takes nothing, a mass waits for a lead."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.directory import actions as restoring
from accounts.directory import freshness
from accounts.directory.client import graph
from accounts.directory.reconcile import CONFIRMED_AFTER, FEWEST, follow, limit
from accounts.models import (
    AccessLoss,
    ApiToken,
    Contact,
    DirectoryBrake,
    Doubt,
    Membership,
    RoleHeld,
    Team,
    User,
)
from accounts.roles import Role
from accounts.tasks import follow_due
from accounts.tokens.actions import create_token
from approvals.decisions import escalation
from audit.events import Kind
from audit.models import Event
from notices.directory import tell_of_brake
from notices.models import Notice
from sandbox.world import group_id, person_id
from tests import factories
from tests.calling import Caller
from tests.pages import parsed
from tests.sandbox.entra.running import Running
from tests.scene import NOW, scene
from web.refusals import Away, Conflict, NoRight

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
ROUND = timedelta(seconds=30)
NAMES = ("Ada", "Ben", "Chloe", "Priya", "Marcus", "Elena", "Sam", "Mallory", "Noor")
LEADS = (4, 5)


@pytest.fixture
def everybody(directory: Running) -> dict[int, User]:
    """The nine people of the sandbox who may sign in, with their roles, teams and a token each."""
    known = directory.sandbox.directory
    found: dict[int, User] = {}
    for number, name in enumerate(NAMES, 1):
        oid = person_id(number)
        roles = {
            "PlatformLead": Role.PLATFORM_LEAD,
            "EngineeringLeadership": Role.ENGINEERING_LEADERSHIP,
        }
        role = next(
            (roles[value] for value in known.roles_of(oid) if value in roles),
            Role.DATA_SCIENTIST,
        )
        role = Role.PLATFORM_LEAD if number in LEADS else role
        groups = known.groups_of(oid)
        user = factories.person(
            name, role, oid=oid, groups=groups, groups_known_at=NOW - 5 * MINUTE
        )
        create_token(user=user, name="ci", scope="write", days=90, now=NOW)
        found[number] = user
    team = factories.team("Vision", by=found[1], entra_group=group_id(1))
    for number in (1, 2, 3):
        factories.join(team, found[number], lead=number == 1)
    return found


def held() -> dict[str, Any]:
    """Everything that the directory can take."""
    return {
        "roles": sorted(RoleHeld.objects.values_list("user", "role")),
        "teams": sorted(Membership.objects.values_list("user", "team", "part")),
        "tokens": ApiToken.objects.usable(NOW).count(),
        "groups": sorted((user.pk, *user.groups) for user in User.objects.all()),
    }


def rounds(count: int, start: datetime = NOW) -> datetime:
    """What the clock does for so many half minutes; returns the moment after it."""
    for number in range(count):
        follow_due(start + number * ROUND)
    return start + count * ROUND


def block(directory: Running, *numbers: int, enabled: bool = False) -> None:
    for number in numbers:
        directory.sandbox.directory.set_enabled(person_id(number), enabled)


def give_manager(
    directory: Running, patch: pytest.MonkeyPatch, number: int, oid: str | None
) -> None:
    """Until the end of the test: who reports to whom is no part of what the directory puts back in order."""
    people = directory.sandbox.directory.people
    patch.setitem(
        people, person_id(number), replace(people[person_id(number)], manager=oid)
    )


@pytest.mark.slow
def test_ten_minutes_of_404_for_everybody_take_nothing_from_anybody(
    directory: Running, everybody: dict[int, User]
) -> None:
    before = held()
    directory.admin("POST", "/sandbox/faults", path=r"^/v1\.0/users/[^/]+$", status=404)
    later = rounds(20)
    assert held() == before
    brake = DirectoryBrake.objects.open().get()
    assert brake.cause == DirectoryBrake.Cause.STRANGE
    assert "knows none of" in brake.reason
    assert Contact.objects.failing().exists()
    directory.admin("DELETE", "/sandbox/faults")
    rounds(20, later)
    assert held() == before
    assert not DirectoryBrake.objects.open().exists()
    assert not Doubt.objects.exists()
    assert not Contact.objects.failing().exists()


@pytest.mark.slow
def test_groups_that_are_not_found_are_not_the_same_as_no_groups(
    directory: Running, everybody: dict[int, User]
) -> None:
    before = held()
    directory.admin("POST", "/sandbox/faults", path="getMemberObjects", status=404)
    rounds(20)
    assert held() == before


def test_a_chain_of_managers_that_is_not_found_is_not_the_same_as_no_managers(
    directory: Running, everybody: dict[int, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = everybody[1]
    User.objects.filter(pk=ada.pk).update(managers_known_at=None)
    follow(User.objects.get(pk=ada.pk), graph=graph(), now=NOW)
    above = [person_id(number) for number in (3, 4, 6)]
    assert User.objects.get(pk=ada.pk).managers == above
    directory.admin(
        "POST",
        "/sandbox/faults",
        path=r"^/v1\.0/users/[^/]+$",
        query="manager",
        status=404,
    )
    for hour in (1, 2, 3):
        follow(User.objects.get(pk=ada.pk), graph=graph(), now=NOW + hour * 61 * MINUTE)
    assert User.objects.get(pk=ada.pk).managers == above
    assert not DirectoryBrake.objects.exists()
    # It is asked for again at the next look, and not an hour later.
    directory.admin("DELETE", "/sandbox/faults")
    give_manager(directory, monkeypatch, 1, person_id(4))
    follow(User.objects.get(pk=ada.pk), graph=graph(), now=NOW + 184 * MINUTE)
    assert User.objects.get(pk=ada.pk).managers == above[1:]


def test_somebody_who_has_no_manager_any_more_has_none(
    directory: Running, everybody: dict[int, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = everybody[1]
    User.objects.filter(pk=ada.pk).update(
        managers=[person_id(3)], managers_known_at=NOW - 61 * MINUTE
    )
    give_manager(directory, monkeypatch, 1, None)
    follow(User.objects.get(pk=ada.pk), graph=graph(), now=NOW)
    assert User.objects.get(pk=ada.pk).managers == []


@pytest.mark.slow
def test_another_tenant_takes_nothing_and_says_which_setting_to_check(
    directory: Running, everybody: dict[int, User], settings: Any
) -> None:
    before = held()
    other = "99999999-9999-4999-8999-999999999999"
    settings.ENV = settings.ENV.model_copy(update={"entra_tenant_id": other})
    block(directory, 1)
    rounds(20)
    assert held() == before
    assert "QM_ENTRA_TENANT_ID" in Contact.objects.failing().get().error
    assert other in DirectoryBrake.objects.open().get().reason


@pytest.mark.slow
def test_an_address_that_knows_nothing_takes_nothing(
    directory: Running, everybody: dict[int, User]
) -> None:
    before = held()
    directory.admin(
        "POST", "/sandbox/faults", path=r"^/v1\.0/(users|organization)", status=404
    )
    rounds(20)
    assert held() == before
    assert (
        "does not answer for the tenant" in DirectoryBrake.objects.open().get().reason
    )


@pytest.mark.slow
def test_one_404_is_asked_again_and_a_second_a_minute_later_is_believed(
    directory: Running, everybody: dict[int, User]
) -> None:
    ada = everybody[1]
    directory.admin(
        "POST", "/sandbox/faults", path=f"/users/{person_id(1)}$", status=404
    )
    follow_due(NOW)
    doubt = Doubt.objects.get()
    assert (doubt.user_id, doubt.since, doubt.times, doubt.reason) == (
        ada.pk,
        NOW,
        1,
        "unknown",
    )
    assert ada.roles_held.exists()
    with pytest.raises(Away, match="not in the directory"):
        freshness.check(ada, now=NOW)
    follow_due(NOW + ROUND)
    assert Doubt.objects.get().times == 1
    follow_due(NOW + CONFIRMED_AFTER)
    assert not ada.roles_held.exists()
    assert not Doubt.objects.exists()
    assert AccessLoss.objects.get().reason == "unknown"


def test_somebody_who_is_found_again_is_in_doubt_no_more(
    directory: Running, everybody: dict[int, User]
) -> None:
    directory.admin(
        "POST", "/sandbox/faults", path=f"/users/{person_id(1)}$", status=404, times=1
    )
    rounds(4)
    assert not Doubt.objects.exists()
    assert not AccessLoss.objects.exists()
    freshness.check(everybody[1], now=NOW + MINUTE)


def test_one_blocked_person_loses_access_at_the_first_look(
    directory: Running, everybody: dict[int, User]
) -> None:
    block(directory, 1)
    follow_due(NOW)
    loss = AccessLoss.objects.get()
    assert (loss.user, loss.reason, loss.roles) == (
        everybody[1],
        "blocked",
        ["data_scientist"],
    )
    assert loss.tokens.count() == 1
    assert not everybody[1].tokens.usable(NOW).exists()
    assert everybody[1].tokens.get().revoked_at is None
    assert not DirectoryBrake.objects.exists()


@pytest.mark.slow
def test_a_mass_of_blocked_accounts_stops_before_the_first_of_them(
    directory: Running, everybody: dict[int, User]
) -> None:
    before = held()
    block(directory, *range(1, 8))
    User.objects.exclude(oid=person_id(1)).update(groups_known_at=NOW - MINUTE)
    rounds(20)
    assert held() == before
    brake = DirectoryBrake.objects.open().get()
    assert (brake.cause, brake.people) == ("mass", 7)
    assert brake.reason.startswith("7 of 9 people would lose access at once")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["groups", "roles"])
def test_a_mass_of_lost_groups_or_withdrawn_roles_stops_likewise(
    directory: Running, everybody: dict[int, User], what: str
) -> None:
    known = directory.sandbox.directory
    vision = Team.objects.get()
    for number in range(4, 10):
        factories.join(vision, everybody[number])
        known.add_member(group_id(1), person_id(number))
        known.assign(person_id(number), "Auditor")
        RoleHeld.objects.get_or_create(user=everybody[number], role=Role.AUDITOR)
    rounds(10)
    before = held()
    for number in range(4, 10):
        if what == "groups":
            known.remove_member(group_id(1), person_id(number))
        else:
            known.withdraw(person_id(number), "Auditor")
    rounds(20, NOW + 10 * MINUTE)
    assert held() == before
    assert DirectoryBrake.objects.open().get().cause == "mass"


def test_five_or_a_twentieth_may_be_lost_at_once() -> None:
    assert [limit(count) for count in (1, 9, 100, 120, 1000)] == [
        FEWEST,
        FEWEST,
        5,
        6,
        50,
    ]


@pytest.mark.slow
def test_a_lead_lets_it_take_effect_and_it_does(
    directory: Running, everybody: dict[int, User]
) -> None:
    block(directory, 1, 2, 3, 7, 8, 9)
    later = rounds(4)
    priya = User.objects.get(pk=everybody[4].pk)
    with pytest.raises(NoRight):
        restoring.release(by=User.objects.get(pk=everybody[6].pk), now=later)
    restoring.release(by=priya, now=later)
    with pytest.raises(Conflict):
        restoring.release(by=priya, now=later)
    rounds(12, later)
    assert not RoleHeld.objects.filter(
        user__in=[everybody[n].pk for n in (1, 2, 3, 7, 8, 9)]
    ).exists()
    assert AccessLoss.objects.filter(released=True).count() == 6
    assert not DirectoryBrake.objects.open().exists()
    assert (
        Event.objects.filter(kind=Kind.DIRECTORY_RELEASED, actor_name="Priya").count()
        == 1
    )


@pytest.mark.slow
def test_what_was_taken_comes_back_with_one_action_tokens_included(
    directory: Running, everybody: dict[int, User]
) -> None:
    before = held()
    block(directory, 1, 2, 5)
    rounds(12)
    assert held() != before
    block(directory, 1, 2, 5, enabled=True)
    with pytest.raises(NoRight):
        restoring.restore(since=NOW, by=everybody[6], now=NOW + 6 * MINUTE)
    priya = User.objects.get(pk=everybody[4].pk)
    assert len(restoring.restore(since=NOW, by=priya, now=NOW + 6 * MINUTE)) == 3
    assert held() == before
    with pytest.raises(Conflict):
        restoring.restore(since=NOW, by=priya, now=NOW + 6 * MINUTE)
    assert (
        Event.objects.filter(kind=Kind.ACCESS_RESTORED, actor_name="Priya").count() == 3
    )
    with pytest.raises(Away):
        freshness.check(everybody[5], now=NOW + 6 * MINUTE)
    rounds(12, NOW + 6 * MINUTE)
    assert held() == before


def test_a_token_that_its_owner_revoked_stays_revoked(
    directory: Running, everybody: dict[int, User]
) -> None:
    block(directory, 1)
    rounds(1)
    ApiToken.objects.filter(user=everybody[1]).update(revoked_at=NOW)
    restoring.restore(since=NOW, by=everybody[4], now=NOW + MINUTE)
    assert not everybody[1].tokens.usable(NOW).exists()


def test_who_comes_back_leads_a_team_only_if_they_still_answer_for_it(
    directory: Running, everybody: dict[int, User]
) -> None:
    block(directory, 1)
    rounds(1)
    Team.objects.update(owner=everybody[2])
    restoring.restore(since=NOW, by=everybody[4], now=NOW + MINUTE)
    assert everybody[1].memberships.get().part == "member"


def test_a_withdrawn_role_comes_back_without_the_one_that_everybody_has(
    directory: Running, everybody: dict[int, User]
) -> None:
    directory.sandbox.directory.withdraw(person_id(6), "EngineeringLeadership")
    rounds(1)
    assert User.objects.get(pk=everybody[6].pk).roles == {Role.DATA_SCIENTIST}
    restoring.restore(since=NOW, by=everybody[4], now=NOW + MINUTE)
    assert User.objects.get(pk=everybody[6].pk).roles == {Role.ENGINEERING_LEADERSHIP}


@pytest.mark.slow
def test_leads_are_told_once_and_see_it_on_home_and_on_its_page(
    client: Client, directory: Running, everybody: dict[int, User]
) -> None:
    block(directory, *range(1, 8))
    User.objects.exclude(oid=person_id(1)).update(groups_known_at=NOW - MINUTE)
    rounds(1)
    assert tell_of_brake(now=NOW)
    assert not tell_of_brake(now=NOW)
    told = Notice.objects.filter(kind="directory_braked")
    assert set(told.values_list("person__name", flat=True)) == {"Priya", "Marcus"}
    assert set(told.values_list("link", flat=True)) == {"/directory"}
    client.force_login(everybody[4])
    assert (
        "The directory takes nothing from anybody" in client.get("/").content.decode()
    )
    page = client.get("/directory").content.decode()
    assert "7 of 9 people would lose access at once" in page
    assert "<bdi>Ada</bdi>: account disabled" in page
    client.force_login(everybody[6])
    assert (
        "let it take effect</button>" not in client.get("/directory").content.decode()
    )
    assert client.post("/directory", {"do": "release"}).status_code == 403
    client.force_login(everybody[1])
    assert client.get("/directory").status_code == 403


@pytest.mark.slow
def test_a_lead_gives_everything_back_on_the_page(
    client: Client, directory: Running, everybody: dict[int, User]
) -> None:
    before = held()
    block(directory, 1, 2)
    rounds(1)
    client.force_login(everybody[4])
    assert (
        "Give back everything since then" in client.get("/directory").content.decode()
    )
    assert (
        client.post("/directory", {"do": "restore", "since": "yesterday"}).status_code
        == 422
    )
    assert (
        client.post(
            "/directory", {"do": "restore", "since": NOW.isoformat()}
        ).status_code
        == 302
    )
    assert held() == before
    assert "given back by Priya" in client.get("/directory").content.decode()


@pytest.mark.slow
def test_a_lead_does_the_same_over_the_api(
    directory: Running, everybody: dict[int, User]
) -> None:
    before = held()
    block(directory, 1, 2)
    rounds(1)
    priya, elena = Caller(everybody[4]), Caller(everybody[6])
    assert priya.get("directory/").json()["brake"] is None
    row = elena.get("directory/losses/").json()["results"][0]
    assert (row["reason"], row["tokens"], row["restored_at"]) == ("blocked", 1, None)
    body = {"since": NOW.isoformat()}
    assert elena.post("directory/restore/", body).status_code == 403
    answer = priya.post("directory/restore/", body)
    assert answer.status_code == 200
    assert {loss["person"]["name"] for loss in answer.json()["restored"]} == {
        "Ada",
        "Ben",
    }
    ApiToken.objects.filter(name="tests").update(revoked_at=NOW)
    assert held()["roles"] == before["roles"]
    priya = Caller(everybody[4])
    assert priya.post("directory/release/", {}).json()["code"] == "not_braked"


def test_nobody_is_passed_over_because_the_directory_has_emptied_their_seat() -> None:
    made = scene()
    request = made.ask(8)
    step = request.steps.get(seat="platform_leads")
    RoleHeld.objects.filter(role=Role.PLATFORM_LEAD).delete()
    brake = DirectoryBrake.objects.create(
        at=NOW, cause="mass", people=9, reason="Too many."
    )
    assert escalation.pass_over(request, step, now=NOW) == []
    DirectoryBrake.objects.filter(pk=brake.pk).delete()
    assert escalation.pass_over(request, step, now=NOW) != []


def test_the_page_says_who_has_which_role_and_where_roles_come_from(
    client: Client, db: None
) -> None:
    client.force_login(factories.person("Priya Raman", Role.PLATFORM_LEAD))
    factories.person("Marcus Weber", Role.PLATFORM_LEAD)
    factories.person("Otto", Role.AUDITOR)
    factories.person("Left Long Ago", Role.AUDITOR, is_active=False)
    page = parsed(client.get("/directory").content.decode())
    leads, leadership, auditors = (one.words for one in page.walk() if one.tag == "dd")
    assert "Marcus Weber" in leads
    assert "Priya Raman" in leads
    assert (leadership, auditors) == ("nobody", "Otto")
    assert "Roles are given and taken in Entra ID" in page.words
