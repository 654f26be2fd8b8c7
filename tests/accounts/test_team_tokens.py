"""Tokens of a team's pipelines: leads make them, they act for nobody, and they stay when people leave."""

import re
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from accounts.memberships import lead_by_owner, members_by_group
from accounts.models import ApiToken, GroupHeld, Membership, Team, User
from accounts.people import present
from accounts.roles import Role
from accounts.tokens.actions import (
    MOST_TOKENS,
    create_team_token,
    rename_pipelines,
    revoke_team_tokens,
)
from audit.actors import PORTAL
from audit.events import Kind
from audit.models import Event
from notices.actions import tell
from notices.kinds import NoticeKind
from notices.message import Message
from notices.models import Notice
from tests import factories
from tests.calling import Caller
from web.refusals import BadInput, Conflict, NoRight

pytestmark = pytest.mark.django_db
NIGHTLY = {"name": "nightly", "scope": "run", "days": "30"}


@pytest.fixture
def team() -> Team:
    return factories.team("Vision")


@pytest.fixture
def lead(team: Team) -> User:
    person = factories.person("Lena", groups=[team.entra_group])
    factories.join(team, person, lead=True)
    return person


@pytest.fixture
def member(team: Team) -> User:
    return factories.person("Ada", teams=[team], groups=[team.entra_group])


def made(team: Team, by: User, **fields: object) -> tuple[ApiToken, str]:
    """A token of the team that runs for 30 days, unless the fields say otherwise."""
    asked = {"name": "nightly", "scope": "run", "days": 30, "now": timezone.now()}
    return create_team_token(team=team, by=by, **(asked | fields))  # type: ignore[arg-type]


def called(secret: str, path: str = "me/") -> object:
    """The API's answer to a call with this secret."""
    return Client().get(
        f"/api/v1/{path}", headers={"Authorization": f"Bearer {secret}"}
    )


def test_a_lead_makes_one_on_the_teams_page_and_it_acts_for_the_team(
    client: Client, team: Team, lead: User
) -> None:
    client.force_login(lead)
    answer = client.post("/teams/vision/tokens", NIGHTLY)
    assert answer.status_code == 201
    secret = re.search(r"qm_[0-9a-f]{8}_[\w-]{43}", answer.content.decode())
    assert secret
    me = called(secret[0]).json()  # type: ignore[attr-defined]
    assert me["name"] == "Vision (pipelines)"
    assert [one["slug"] for one in me["teams"]] == ["vision"]
    assert me["permissions"] == me["roles"] == []
    assert secret[0] not in client.get("/teams/vision/tokens").content.decode()
    event = Event.objects.get(kind=Kind.TOKEN_CREATED)
    assert (event.actor_name, event.team_id) == ("Lena", team.pk)
    assert event.details["of_team"] == "Vision"


def test_members_and_other_leads_make_see_and_revoke_none(
    client: Client, team: Team, lead: User, member: User
) -> None:
    token, _ = made(team, lead)
    stranger = factories.person("Sol")
    factories.join(factories.team("Speech"), stranger, lead=True)
    for person, status in ((member, 403), (stranger, 404)):
        client.force_login(person)
        assert client.get("/teams/vision/tokens").status_code == status
        assert client.post("/teams/vision/tokens", NIGHTLY).status_code == status
        assert client.post(f"/tokens/{token.prefix}/revoke").status_code == 404
        with pytest.raises(NoRight):
            made(team, person)
    token.refresh_from_db()
    assert token.revoked_at is None


def test_a_platform_lead_sees_and_revokes_them_and_makes_none(
    client: Client, team: Team, lead: User
) -> None:
    token, secret = made(team, lead)
    priya = factories.person("Priya", Role.PLATFORM_LEAD)
    client.force_login(priya)
    page = client.get("/teams/vision/tokens").content.decode()
    assert token.prefix in page
    assert "A new token" not in page
    assert client.post("/teams/vision/tokens", NIGHTLY).status_code == 422
    assert client.post(f"/tokens/{token.prefix}/revoke").status_code == 302
    assert called(secret).status_code == 401  # type: ignore[attr-defined]


@pytest.mark.parametrize("scope", ["ask", "write"])
def test_none_may_ask_or_decide(
    client: Client, team: Team, lead: User, scope: str
) -> None:
    with pytest.raises(BadInput) as refused:
        made(team, lead, scope=scope)
    assert refused.value.field == "scope"
    client.force_login(lead)
    sent = client.post("/teams/vision/tokens", NIGHTLY | {"scope": scope})
    assert sent.status_code == 422
    over_the_api = Caller(lead).post(
        "teams/vision/tokens/", {"name": "n", "scope": scope, "days": 3}
    )
    assert over_the_api.status_code == 422
    assert not ApiToken.objects.of_team(team).exists()


def test_it_stays_when_the_directory_is_followed_and_when_who_made_it_has_left(
    client: Client, team: Team, lead: User, member: User
) -> None:
    _, secret = made(team, lead)
    GroupHeld.objects.filter(user=lead).delete()
    members_by_group(team)
    lead_by_owner(team)
    assert not Membership.objects.filter(team=team, user=lead).exists()
    assert called(secret, "teams/vision/").status_code == 200  # type: ignore[attr-defined]
    Membership.objects.filter(user=member).update(part="lead")
    client.force_login(member)
    page = client.get("/teams/vision/tokens").content.decode()
    assert "is in the team no more and may still know it" in page


def test_the_pipelines_are_no_person(team: Team, lead: User, member: User) -> None:
    made(team, lead)
    account = User.objects.get(pipelines_of=team)
    assert account not in present()
    shown = Caller(member).get("teams/vision/members/").json()
    assert {one["person"]["name"] for one in shown["results"]} == {"Lena", "Ada"}
    board = Client()
    board.force_login(member)
    assert "(pipelines)" not in board.get("/teams/vision/").content.decode()
    tell(
        NoticeKind.TEST,
        to=[account, member],
        subject=("team", team.pk),
        link="/",
        message=Message(title="Hello", sentence="It works."),
        now=timezone.now(),
    )
    assert list(Notice.objects.values_list("person__name", flat=True)) == ["Ada"]


def test_nobody_signs_in_as_the_pipelines_and_a_team_has_one_account(
    team: Team, lead: User
) -> None:
    made(team, lead)
    made(team, lead, name="weekly")
    account = User.objects.get(pipelines_of=team)
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.filter(pk=account.pk).update(signed_in_at=timezone.now())


def test_a_renamed_team_renames_its_pipelines(team: Team, lead: User) -> None:
    made(team, lead)
    Team.objects.filter(pk=team.pk).update(name="Seeing")
    team.refresh_from_db()
    rename_pipelines(team)
    assert User.objects.get(pipelines_of=team).name == "Seeing (pipelines)"


def test_a_team_that_has_left_has_none_that_work(team: Team, lead: User) -> None:
    secrets = [made(team, lead, name=name)[1] for name in ("nightly", "weekly")]
    mine = Caller(lead)
    with transaction.atomic():
        revoke_team_tokens(team, actor=PORTAL, now=timezone.now())
    assert {called(one).status_code for one in secrets} == {401}  # type: ignore[attr-defined]
    assert mine.get("me/").status_code == 200
    assert Event.objects.filter(kind=Kind.TOKEN_REVOKED, team_id=team.pk).count() == 2


def test_a_team_that_leaves_the_platform_gets_none(team: Team, lead: User) -> None:
    Team.objects.update(leaves_platform_at=timezone.now() + timedelta(days=7))
    with pytest.raises(Conflict, match="Vision leaves the platform") as refused:
        made(team, lead)
    assert refused.value.code == "is_leaving"
    assert not User.objects.filter(pipelines_of=team).exists()


def test_a_team_has_so_many_and_says_whose_they_are(team: Team, lead: User) -> None:
    for number in range(MOST_TOKENS):
        made(team, lead, name=f"t{number}")
    with pytest.raises(Conflict, match="The team has"):
        made(team, lead)


def test_one_made_over_the_api_ends_with_the_token_that_made_it(
    team: Team, lead: User
) -> None:
    caller = Caller(lead)
    answer = caller.post(
        "teams/vision/tokens/", {"name": "ci", "scope": "read", "days": 1}, key="k"
    )
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert body["created_by"]["name"] == "Lena"
    again = caller.post(
        "teams/vision/tokens/", {"name": "ci", "scope": "read", "days": 1}, key="k"
    )
    assert again.json()["secret"] is None
    listed = caller.get("teams/vision/tokens/").json()["results"]
    assert [one["prefix"] for one in listed] == [body["prefix"]]
    maker = ApiToken.objects.get(user=lead)
    token = ApiToken.objects.get(prefix=body["prefix"])
    assert token.parent == maker
    assert token.expires_at <= maker.expires_at
    assert caller.delete(f"tokens/{body['prefix']}/").status_code == 204
    assert called(body["secret"]).status_code == 401  # type: ignore[attr-defined]


def test_a_token_that_expired_is_among_the_ended(
    client: Client, team: Team, lead: User
) -> None:
    made(team, lead, days=1, now=timezone.now() - timedelta(days=2))
    client.force_login(lead)
    assert "expired" in client.get("/teams/vision/tokens").content.decode()


def test_a_secret_from_a_team_token_is_in_no_event(team: Team, lead: User) -> None:
    _, secret = made(team, lead)
    assert secret not in str(list(Event.objects.values()))
