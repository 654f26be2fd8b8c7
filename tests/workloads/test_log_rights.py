"""Who may go on reading a log that they follow: for as long as token or session, account and team are theirs."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from accounts.authentication import IssuedToken
from accounts.credentials import Credential
from accounts.endpoints import Endpoint
from accounts.models import ApiToken, Membership, RoleHeld, Team, User
from accounts.roles import Role
from accounts.tokens.actions import create_token, revoke_token
from tests import factories
from workloads.runs.logs.rights import Right, still_held

MOST_QUERIES = 6


@pytest.fixture
def team(db: None) -> Team:
    return factories.team("Vision")


@pytest.fixture
def ada(team: Team) -> User:
    return factories.person("Ada Okafor", teams=[team])


def by_token(of: User, team: Team) -> Right:
    """What somebody has who follows with a new token."""
    now = timezone.now()
    token, _ = create_token(user=of, name="t", scope="read", days=1, now=now)
    return Right(Credential(of.pk, token=token.pk), team.pk)


def by_session(of: User, team: Team) -> Right:
    """The same with a new session."""
    session = SessionStore()
    session.set_expiry(timezone.now() + timedelta(hours=8))
    session.create()
    return Right(Credential(of.pk, session=session.session_key or ""), team.pk)


def is_held(right: Right, now: datetime | None = None) -> bool:
    return right in still_held([right], now=now or timezone.now())


def revoked(right: Right) -> None:
    [token] = ApiToken.objects.filter(user=right.credential.user_id)
    revoke_token(token, by=token.user, now=timezone.now())


def signed_out(right: Right) -> None:
    SessionStore(right.credential.session).flush()


def blocked(right: Right) -> None:
    User.objects.filter(pk=right.credential.user_id).update(is_active=False)


def out_of_the_team(right: Right) -> None:
    Membership.objects.filter(user=right.credential.user_id).delete()


@pytest.mark.parametrize(
    ("made", "ended"),
    [
        (by_token, revoked),
        (by_token, blocked),
        (by_token, out_of_the_team),
        (by_session, signed_out),
        (by_session, blocked),
        (by_session, out_of_the_team),
    ],
)
def test_it_ends_with_token_or_session_account_and_team(
    ada: User,
    team: Team,
    made: Callable[[User, Team], Right],
    ended: Callable[[Right], None],
) -> None:
    right, other = made(ada, team), by_token(factories.person("Bo", teams=[team]), team)
    assert is_held(right)
    ended(right)
    assert still_held([right, other], now=timezone.now()) == {other}


@pytest.mark.parametrize("made", [by_token, by_session])
def test_it_ends_when_token_or_session_expires(
    ada: User, team: Team, made: Callable[[User, Team], Right]
) -> None:
    right = made(ada, team)
    assert is_held(right, timezone.now() + timedelta(hours=7))
    assert not is_held(right, timezone.now() + timedelta(hours=25))


def test_an_entra_token_is_good_until_it_expires(ada: User, team: Team) -> None:
    until = timezone.now() + timedelta(minutes=60)
    right = Right(Credential(ada.pk, until=until), team.pk)
    assert is_held(right, until - timedelta(seconds=1))
    assert not is_held(right, until)
    out_of_the_team(right)
    assert not is_held(right)


def test_a_call_goes_on_by_what_it_came_with(ada: User, team: Team) -> None:
    until = timezone.now() + timedelta(minutes=60)
    mine = by_token(ada, team).credential
    endpoint, call = Endpoint(), Request(APIRequestFactory().get("/"))
    endpoint.request, call.user = call, ada
    for auth, credential in (
        (IssuedToken("read", until), Credential(ada.pk, until=until)),
        (ApiToken.objects.get(user=ada), mine),
        (None, Credential(ada.pk)),
    ):
        call.auth = auth
        assert endpoint.credential == credential


def test_who_came_with_nothing_reads_nothing(ada: User, team: Team) -> None:
    assert not is_held(Right(Credential(ada.pk), team.pk))


def test_a_platform_lead_reads_every_teams_while_they_are_one(team: Team) -> None:
    lead = factories.person("Priya", Role.PLATFORM_LEAD)
    right = by_token(lead, team)
    assert is_held(right)
    RoleHeld.objects.filter(user=lead).delete()
    assert not is_held(right)


@pytest.mark.slow
def test_two_hundred_cost_as_many_queries_as_two(team: Team) -> None:
    def queries(many: int) -> int:
        people = [factories.person("", teams=[team]) for _ in range(many)]
        rights = [made(one, team) for one in people for made in (by_token, by_session)]
        with CaptureQueriesContext(connection) as seen:
            assert len(still_held(rights, now=timezone.now())) == len(rights)
        return len(seen)

    few = queries(1)
    assert queries(100) == few <= MOST_QUERIES
