"""Between sign-ins: who is blocked or leaves a group loses what it gave, without being asked to sign in again."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from accounts.actions import create_token
from accounts.models import ApiToken, User
from accounts.roles import Role
from accounts.tasks import follow_directory
from audit.events import Kind
from audit.models import Event
from sandbox.world import group_id, person_id
from tests import factories
from tests.sandbox.entra.running import Running

pytestmark = pytest.mark.django_db
NOW = timezone.now()
AGO = NOW - timedelta(minutes=5)


def known(number: int, name: str, groups: list[str], *roles: Role) -> User:
    """Somebody of the directory who signed in five minutes ago."""
    return factories.person(name, *roles, oid=person_id(number), groups=groups, groups_known_at=AGO)


def test_a_blocked_account_loses_session_token_teams_and_roles(client: Client, directory: Running) -> None:
    ada = known(1, "Ada Okafor", [group_id(1)])
    factories.join(factories.team("Vision", by=ada, entra_group=group_id(1)), ada)
    create_token(user=ada, name="nightly", scope="write", days=90, now=NOW)
    client.force_login(ada)
    stranger = Client()
    stranger.force_login(known(8, "Mallory Finch", []))
    directory.sandbox.directory.set_enabled(person_id(1), False)
    follow_directory()
    assert client.get("/").status_code == 302
    assert not ApiToken.objects.usable(timezone.now()).exists()
    ada = User.objects.get(pk=ada.pk)
    assert (ada.roles, ada.team_ids, ada.groups) == (frozenset(), frozenset(), [])
    assert Session.objects.count() == 1
    assert stranger.get("/").status_code == 200
    kinds = set(Event.objects.filter(actor_name="Quartermaster").values_list("kind", flat=True))
    assert {Kind.TOKEN_REVOKED, Kind.MEMBERS_SYNCED} <= kinds


def test_who_left_a_group_leaves_its_team_and_loses_the_role_it_gave(directory: Running) -> None:
    group = group_id(4)
    marcus = known(1, "Once A Lead", [group, group_id(3)], Role.PLATFORM_LEAD)
    factories.join(factories.team("Speech", by=marcus, entra_group=group_id(3)), marcus)
    follow_directory()
    after = User.objects.get(pk=marcus.pk)
    assert after.roles == {Role.DATA_SCIENTIST}
    assert after.team_ids == frozenset()
    assert group_id(1) in after.groups


def test_who_joined_a_group_gets_its_team_and_role_without_signing_in_again(directory: Running) -> None:
    vision = factories.team("Vision", by=factories.person(), entra_group=group_id(1))
    marcus, ada = known(5, "Marcus Weber", []), known(1, "Ada Okafor", [])
    follow_directory()
    assert Role.PLATFORM_LEAD in User.objects.get(pk=marcus.pk).roles
    assert User.objects.get(pk=ada.pk).team_ids == {vision.pk}


def test_nothing_is_taken_from_anybody_while_the_directory_is_away(directory: Running) -> None:
    ada = known(1, "Ada Okafor", [group_id(4)], Role.PLATFORM_LEAD)
    directory.admin("POST", "/sandbox/faults", path="^/v1.0/", status=503)
    follow_directory()
    assert User.objects.get(pk=ada.pk).roles == {Role.PLATFORM_LEAD}


def test_a_second_look_at_what_is_the_same_writes_no_event(directory: Running) -> None:
    known(1, "Ada Okafor", [])
    follow_directory()
    count = Event.objects.count()
    User.objects.update(groups_known_at=AGO)
    follow_directory()
    assert Event.objects.count() == count
