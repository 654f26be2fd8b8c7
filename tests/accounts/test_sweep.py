"""Between sign-ins: who is blocked or leaves a group loses what it gave, without being asked to sign in again."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from accounts.directory import reconcile as following
from accounts.directory import sweep as leaving
from accounts.directory.client import graph
from accounts.models import ApiToken, Contact, RoleHeld, User
from accounts.people import in_group
from accounts.roles import Role
from accounts.tasks import MOST_AT_ONCE, follow_directory, follow_due
from accounts.tokens.actions import create_token
from audit.events import Kind
from audit.models import Event
from connectors.errors import PermanentError, TemporaryError
from connectors.graph import Graph, Person
from sandbox.world import ARCHIVES, archive_id, group_id, person_id
from tests import factories
from tests.sandbox.entra.running import Running

pytestmark = pytest.mark.django_db
NOW = timezone.now()
AGO = NOW - timedelta(minutes=5)


def known(
    number: int, name: str, groups: list[str], *roles: Role, **fields: Any
) -> User:
    """Somebody of the directory who signed in five minutes ago."""
    return factories.person(
        name,
        *roles,
        oid=person_id(number),
        groups=groups,
        groups_known_at=AGO,
        **fields,
    )


def test_a_blocked_account_loses_session_token_teams_and_roles(
    client: Client, directory: Running
) -> None:
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
    kinds = set(
        Event.objects.filter(actor_name="Quartermaster").values_list("kind", flat=True)
    )
    assert {Kind.TOKEN_SUSPENDED, Kind.MEMBERS_SYNCED} <= kinds


def test_who_left_a_group_leaves_its_team_and_loses_the_role_it_gave(
    directory: Running,
) -> None:
    group = group_id(4)
    marcus = known(1, "Once A Lead", [group, group_id(3)], Role.PLATFORM_LEAD)
    factories.join(factories.team("Speech", by=marcus, entra_group=group_id(3)), marcus)
    follow_directory()
    after = User.objects.get(pk=marcus.pk)
    assert after.roles == {Role.DATA_SCIENTIST}
    assert after.team_ids == frozenset()
    assert group_id(1) in after.groups


def test_who_joined_a_group_gets_its_team_and_role_without_signing_in_again(
    directory: Running,
) -> None:
    vision = factories.team("Vision", by=factories.person(), entra_group=group_id(1))
    marcus, ada = known(5, "Marcus Weber", []), known(1, "Ada Okafor", [])
    follow_directory()
    assert Role.PLATFORM_LEAD in User.objects.get(pk=marcus.pk).roles
    assert User.objects.get(pk=ada.pk).team_ids == {vision.pk}


def test_nothing_is_taken_from_anybody_while_the_directory_is_away(
    directory: Running,
) -> None:
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


def test_the_managers_are_kept_nearest_first_without_blocked_ones_and_asked_for_once_an_hour(
    directory: Running,
) -> None:
    ada = known(1, "Ada Okafor", [], managers_known_at=None)
    directory.sandbox.directory.set_enabled(person_id(4), False)
    follow_due(NOW)
    ada.refresh_from_db()
    assert ada.managers == [person_id(3), person_id(6)]
    assert ada.manager_names[person_id(3)] == {
        "name": "Chloe Lindqvist",
        "email": "chloe@example.com",
    }
    directory.sandbox.directory.set_enabled(person_id(4), True)
    follow_due(NOW + timedelta(minutes=59))
    ada.refresh_from_db()
    assert len(ada.managers) == 2
    follow_due(NOW + timedelta(minutes=64))
    ada.refresh_from_db()
    assert ada.managers == [person_id(number) for number in (3, 4, 6)]


def test_managers_that_may_not_be_read_are_none_and_stop_nothing(
    directory: Running,
) -> None:
    class NoManagers(Graph):
        def manager_chain(self, oid: str) -> list[Person]:
            raise PermanentError("Graph answered 403", code="forbidden")

    ada = known(1, "Ada Okafor", [], managers=[person_id(3)], managers_known_at=None)
    following.follow(ada, graph=as_another(NoManagers), now=NOW)
    ada.refresh_from_db()
    assert (ada.managers, ada.groups_known_at, group_id(1) in ada.groups) == (
        [],
        NOW,
        True,
    )


def test_a_new_address_in_the_directory_is_kept_and_none_takes_nothing_away(
    directory: Running,
) -> None:
    ada, ben = (
        known(1, "Ada Okafor", []),
        known(2, "Ben Ruiz", [], email="ben@partner.example"),
    )
    people = directory.sandbox.directory.people
    people[person_id(2)] = replace(before := people[person_id(2)], mail="")
    follow_due(NOW)
    people[person_id(2)] = before
    ada.refresh_from_db()
    ben.refresh_from_db()
    assert (ada.email, ben.email) == ("ada@example.com", "ben@partner.example")


def test_who_is_out_of_office_is_kept_until_the_moment_they_named(
    directory: Running,
) -> None:
    ada, ben = known(1, "Ada Okafor", []), known(2, "Ben Ruiz", [])
    until = NOW.replace(microsecond=0) + timedelta(minutes=30)
    directory.admin(
        "POST", "/sandbox/away", person=person_id(1), until=until.isoformat()
    )
    follow_due(NOW)
    ada.refresh_from_db()
    ben.refresh_from_db()
    assert (ada.is_away, ada.away_until, ada.away_known_at) == (True, until, NOW)
    assert (ben.is_away, ben.away_until, ben.away_known_at) == (False, None, NOW)
    assert [
        ada.is_out(moment) for moment in (NOW, until - timedelta(seconds=1), until)
    ] == [
        True,
        True,
        False,
    ]
    directory.admin("POST", "/sandbox/away", person=person_id(1), back=True)
    follow_due(NOW + timedelta(minutes=5))
    ada.refresh_from_db()
    assert (ada.is_away, ada.away_until) == (False, None)


def test_an_absence_that_nobody_confirms_is_not_believed_for_ever(
    directory: Running,
) -> None:
    ada = known(1, "Ada Okafor", [])
    directory.admin("POST", "/sandbox/away", person=person_id(1))
    follow_due(NOW)
    directory.admin("POST", "/sandbox/faults", path="getPresences|mailbox", status=403)
    follow_due(NOW + timedelta(minutes=30))
    ada.refresh_from_db()
    assert (ada.is_away, ada.away_known_at, ada.groups_known_at) == (
        True,
        NOW,
        NOW + timedelta(minutes=30),
    )
    assert [ada.is_out(NOW + timedelta(minutes=minute)) for minute in (59, 60)] == [
        True,
        False,
    ]


def test_presence_that_does_not_answer_stops_no_rights_from_being_followed(
    directory: Running,
) -> None:
    known(5, "Marcus Weber", [])
    directory.admin("POST", "/sandbox/faults", path="getPresences", status=503)
    follow_due(NOW)
    assert Role.PLATFORM_LEAD in User.objects.get().roles
    assert not Contact.objects.failing().exists()


@pytest.mark.slow
def test_nine_hundred_are_looked_at_within_five_minutes_and_deciders_more_often(
    db: None,
) -> None:
    roles = [Role.PLATFORM_LEAD] * 20 + [Role.DATA_SCIENTIST] * 880
    users = User.objects.bulk_create(
        User(
            tid=factories.TENANT,
            name=str(number),
            username=str(number),
            groups_known_at=NOW,
        )
        for number in range(len(roles))
    )
    RoleHeld.objects.bulk_create(
        RoleHeld(user=user, role=role) for user, role in zip(users, roles, strict=True)
    )
    longest = {Role.PLATFORM_LEAD: timedelta(0), Role.DATA_SCIENTIST: timedelta(0)}
    by_user = {user.pk: role for user, role in zip(users, roles, strict=True)}
    rounds = [NOW + number * leaving.EVERY for number in range(1, 31)]
    for now in rounds:
        looked = leaving.due(now, most=MOST_AT_ONCE)
        for user in looked:
            assert user.groups_known_at is not None
            longest[by_user[user.pk]] = max(
                longest[by_user[user.pk]], now - user.groups_known_at
            )
        User.objects.filter(pk__in=[user.pk for user in looked]).update(
            groups_known_at=now
        )
    waiting = User.objects.order_by("groups_known_at").first()
    assert waiting is not None
    assert waiting.groups_known_at is not None
    assert rounds[-1] - waiting.groups_known_at <= timedelta(minutes=5)
    assert longest[Role.DATA_SCIENTIST] <= timedelta(minutes=5)
    assert longest[Role.PLATFORM_LEAD] <= timedelta(minutes=3, seconds=30)


def test_who_was_never_asked_about_comes_first(db: None) -> None:
    known(1, "Ada Okafor", [])
    never = factories.person("Never", groups_known_at=None)
    assert leaving.due(NOW, most=1) == [never]


def test_the_groups_of_somebody_with_too_many_for_a_token_are_all_known(
    directory: Running,
) -> None:
    noor = known(9, "Noor Haddad", [])
    follow_due(NOW)
    noor.read_again()
    assert len(noor.groups) == ARCHIVES + 1
    assert list(in_group(archive_id(7))) == [noor]


def as_another(kind: type[Graph]) -> Graph:
    """The portal's own Graph with some answers changed."""
    made = graph()
    return kind(made._token, made._base, str(made._session.verify))


def followed_for_an_hour() -> None:
    at = timezone.now()
    for minutes in range(60):
        follow_due(at + timedelta(minutes=minutes))


@pytest.mark.slow
def test_several_whom_the_directory_never_answers_for_keep_nobody_elses_access(
    directory: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {person_id(number) for number in (2, 3, 4, 5)}
    long_ago = timezone.now() - timedelta(hours=9)
    for oid in slow:
        factories.person(oid=oid, groups_known_at=long_ago)
    ada = known(1, "Ada Okafor", [group_id(1)])
    known(6, "Somebody whom it knows", [])
    original = Graph.groups_of

    def groups_of(graph: Graph, oid: str) -> set[str]:
        if oid in slow:
            raise TemporaryError("Graph does not answer within 10 seconds")
        return original(graph, oid)

    monkeypatch.setattr(Graph, "groups_of", groups_of)
    directory.sandbox.directory.set_enabled(person_id(1), False)
    followed_for_an_hour()
    assert User.objects.get(pk=ada.pk).roles == frozenset()


@pytest.mark.slow
def test_managers_that_are_away_keep_nobody_in(
    directory: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = known(1, "Ada Okafor", [group_id(1)], managers_known_at=None)
    known(3, "Chloe Lindqvist", [], managers_known_at=None)

    def away(graph: Graph, oid: str) -> None:
        raise TemporaryError("Graph answered 503 for the manager")

    monkeypatch.setattr(Graph, "manager_chain", away)
    directory.sandbox.directory.set_enabled(person_id(1), False)
    followed_for_an_hour()
    assert User.objects.get(pk=ada.pk).roles == frozenset()
