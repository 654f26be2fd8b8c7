"""Between sign-ins: an app role that the directory gives no longer is lost, with all that it gave."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.directory import freshness
from accounts.models import Contact, RoleHeld, User
from accounts.roles import Permission, Role
from accounts.tasks import follow_due
from accounts.tokens.actions import create_token
from audit.events import Kind
from audit.models import Event
from sandbox.world import group_id, person_id
from tests import factories
from tests.calling import Caller
from tests.sandbox.entra.running import Running
from tests.scene import NOW
from web.refusals import Away

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
PRIYA, ELENA, VISION, LEADS = person_id(4), person_id(6), group_id(1), group_id(4)
LISTING = "servicePrincipals"


def signed_in(oid: str, *roles: Role, **fields: Any) -> User:
    """Somebody of the directory whose token gave these roles at their sign-in, confirmed five minutes ago."""
    return factories.person(
        "Priya Raman", *roles, oid=oid, groups_known_at=NOW - 5 * MINUTE, **fields
    )


def roles_of(user: User) -> set[str]:
    return set(RoleHeld.objects.filter(user=user).values_list("role", flat=True))


def assign(directory: Running, principal: str, value: str) -> None:
    directory.sandbox.directory.assign(principal, value)


def withdraw(directory: Running, principal: str, value: str) -> None:
    directory.sandbox.directory.withdraw(principal, value)


def asked(directory: Running, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of Graph that are called from now on."""
    seen: list[str] = []
    inner = directory.sandbox.callers.need_permission

    def note(request: Any, *permissions: str) -> None:
        seen.append(request.url.path)
        inner(request, *permissions)

    monkeypatch.setattr(
        type(directory.sandbox.callers), "need_permission", lambda _, *args: note(*args)
    )
    return seen


def test_who_is_assigned_keeps_their_role_and_no_event_is_written(
    directory: Running,
) -> None:
    priya = signed_in(PRIYA, Role.PLATFORM_LEAD, groups=[LEADS])
    elena = signed_in(ELENA, Role.ENGINEERING_LEADERSHIP, groups=[group_id(5)])
    before = Event.objects.count()
    follow_due(NOW)
    assert (roles_of(priya), roles_of(elena)) == (
        {"platform_lead"},
        {"engineering_leadership"},
    )
    assert Event.objects.count() == before
    assert not User.objects.exclude(groups_known_at=NOW).exists()


@pytest.mark.slow
def test_who_is_assigned_no_longer_loses_it_in_session_and_token_at_the_next_look(
    client: Client, directory: Running
) -> None:
    elena = signed_in(ELENA, Role.ENGINEERING_LEADERSHIP, groups=[group_id(5)])
    caller = Caller(elena)
    create_token(user=elena, name="nightly", scope="write", days=365, now=NOW)
    client.force_login(elena)
    assert "decide_as_leadership" in caller.get("me/").json()["permissions"]
    withdraw(directory, ELENA, "EngineeringLeadership")
    follow_due(NOW)
    assert roles_of(elena) == {"data_scientist"}
    assert caller.get("me/").json()["permissions"] == []
    assert client.get("/").status_code == 200
    assert 'href="/approvals/"' not in client.get("/").content.decode()
    event = Event.objects.latest("seq")
    assert (event.kind, event.actor_name, event.details["withdrawn"]) == (
        Kind.MEMBERS_SYNCED,
        "Quartermaster",
        ["engineering_leadership"],
    )


def test_a_decision_looks_for_itself(directory: Running) -> None:
    elena = signed_in(ELENA, Role.ENGINEERING_LEADERSHIP)
    withdraw(directory, ELENA, "EngineeringLeadership")
    freshness.renew(elena, now=NOW)
    assert not elena.may(Permission.DECIDE_AS_LEADERSHIP)


def test_other_roles_are_kept(directory: Running) -> None:
    assign(directory, ELENA, "Auditor")
    elena = signed_in(ELENA, Role.ENGINEERING_LEADERSHIP, Role.AUDITOR)
    withdraw(directory, ELENA, "EngineeringLeadership")
    follow_due(NOW)
    assert roles_of(elena) == {"auditor"}


def test_a_role_that_is_assigned_to_a_group_is_kept_by_its_members_and_lost_by_who_leaves(
    directory: Running,
) -> None:
    assign(directory, VISION, "Auditor")
    ada, ben = (
        signed_in(person_id(number), Role.AUDITOR, groups=[VISION]) for number in (1, 2)
    )
    directory.admin("DELETE", f"/v1.0/groups/{VISION}/members/{person_id(2)}/$ref")
    follow_due(NOW)
    assert (roles_of(ada), roles_of(ben)) == ({"auditor"}, {"data_scientist"})
    withdraw(directory, VISION, "Auditor")
    follow_due(NOW + 5 * MINUTE)
    assert roles_of(ada) == {"data_scientist"}


def test_a_role_that_a_group_gives_too_stays(directory: Running) -> None:
    priya = signed_in(PRIYA, Role.PLATFORM_LEAD, groups=[LEADS])
    withdraw(directory, PRIYA, "PlatformLead")
    follow_due(NOW)
    assert roles_of(priya) == {"platform_lead"}


def test_a_role_is_given_by_the_next_sign_in_only(directory: Running) -> None:
    ada = signed_in(person_id(1), Role.DATA_SCIENTIST)
    assign(directory, person_id(1), "PlatformLead")
    follow_due(NOW)
    assert roles_of(ada) == {"data_scientist"}


@pytest.mark.parametrize("status", [403, 503])
def test_while_assignments_cannot_be_read_nothing_is_taken_and_decisions_wait(
    directory: Running, status: int
) -> None:
    elena = signed_in(ELENA, Role.ENGINEERING_LEADERSHIP)
    withdraw(directory, ELENA, "EngineeringLeadership")
    directory.admin("POST", "/sandbox/faults", path=LISTING, status=status)
    follow_due(NOW)
    freshness.renew(elena, now=NOW + MINUTE)
    assert roles_of(elena) == {"engineering_leadership"}
    assert Contact.objects.failing().exists()
    with pytest.raises(Away):
        freshness.check(elena, now=NOW + MINUTE)


def test_an_application_that_the_directory_does_not_know_takes_nothing(
    directory: Running, settings: Any
) -> None:
    elena = signed_in(ELENA, Role.ENGINEERING_LEADERSHIP)
    directory.admin("POST", "/sandbox/faults", path=LISTING, status=404)
    follow_due(NOW)
    assert roles_of(elena) == {"engineering_leadership"}
    assert User.objects.get(pk=elena.pk).groups_known_at == NOW - 5 * MINUTE


def test_one_listing_serves_everybody_of_a_round(
    directory: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, role in (
        (3, Role.TEAM_LEAD),
        (6, Role.ENGINEERING_LEADERSHIP),
        (7, Role.AUDITOR),
    ):
        signed_in(person_id(number), role)
    seen = asked(directory, monkeypatch)
    follow_due(NOW)
    assert len([path for path in seen if LISTING in path]) == 2


def test_where_groups_give_every_role_it_is_not_asked_for(
    directory: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_in(person_id(5), Role.PLATFORM_LEAD, groups=[LEADS])
    signed_in(person_id(1), Role.DATA_SCIENTIST)
    gone = signed_in(person_id(2), Role.PLATFORM_LEAD, groups=[LEADS])
    seen = asked(directory, monkeypatch)
    follow_due(NOW)
    assert roles_of(gone) == {"data_scientist"}
    assert not [path for path in seen if LISTING in path]
