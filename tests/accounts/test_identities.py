"""Identities of a team: applications of Entra ID that act as its pipelines, without a secret."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.utils import timezone

from accounts import authentication
from accounts.authentication import (
    ACTS_FOR_NO_TEAM,
    LAST_USE_KNOWN_TO,
    NOT_SIGNED_IN,
    OTHER_IDS,
)
from accounts.credentials import Credential, still_good
from accounts.directory.models import AccessLoss
from accounts.identities.actions import (
    MAX_IDENTITIES,
    add_identity,
    remove_team_identities,
)
from accounts.memberships import lead_by_owner, members_by_group
from accounts.models import ApiToken, GroupHeld, Identity, Membership, Team, User
from accounts.roles import Role
from accounts.tokens.actions import revoke_token
from audit.actors import PORTAL
from audit.events import Kind
from audit.models import Event
from connectors.entra import Claims
from sandbox.entra.pipelines import PIPELINE
from tests import factories
from tests.calling import Caller
from tests.sandbox.entra.pipelines import pipeline_token
from tests.sandbox.entra.running import Running
from web.refusals import BadInput, Conflict, NoRight, Refused

pytestmark = pytest.mark.django_db
CLIENT, OBJECT = PIPELINE.client_id, PIPELINE.principal_id
GITHUB = {"name": "GitHub", "client_id": CLIENT, "object_id": OBJECT, "scope": "run"}
PAGE = "/teams/vision/identities"
HERE = "teams/vision/identities/"


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


@pytest.fixture
def another_lead() -> User:
    """Who leads another team."""
    person = factories.person("Sol")
    factories.join(factories.team("Speech"), person, lead=True)
    return person


class Pipeline:
    """An application whose token the connector has checked already, as another test shows that it does."""

    claims = Claims(oid=OBJECT, tid="t", app_only=True, client_id=CLIENT)

    def get(self, path: str = "me/") -> Any:
        """The API's answer to the application."""
        return Client().get(
            f"/api/v1/{path}", headers={"Authorization": "Bearer eyJ.e30.x"}
        )

    @property
    def refusal(self) -> tuple[int, str]:
        """How the application is refused."""
        answer = self.get()
        return answer.status_code, answer.json().get("detail", "")


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    caller = Pipeline()
    until = timezone.now() + timedelta(hours=1)

    def verify_bearer(raw: str) -> Claims:
        return Claims(**{**vars(caller.claims), "expires_at": until})

    monkeypatch.setattr(
        authentication, "entra", lambda: SimpleNamespace(verify_bearer=verify_bearer)
    )
    return caller


def added(team: Team, by: User, **fields: Any) -> Identity:
    """The application acts for the team."""
    return add_identity(team=team, by=by, **{**GITHUB, "now": timezone.now(), **fields})


def test_a_lead_adds_one_on_the_page_and_it_acts_for_the_team(
    client: Client, team: Team, lead: User, directory: Running
) -> None:
    client.force_login(lead)
    answer = client.post(PAGE, {**GITHUB, "object_id": f" {OBJECT.upper()} "})
    assert (answer.status_code, answer["Location"]) == (302, "/teams/vision/tokens")
    raw = pipeline_token(directory)
    me = Client().get("/api/v1/me/", headers={"Authorization": f"Bearer {raw}"}).json()
    assert me["name"] == "Vision (pipelines)"
    assert [one["slug"] for one in me["teams"]] == ["vision"]
    assert me["permissions"] == me["roles"] == []
    event = Event.objects.get(kind=Kind.IDENTITY_ADDED)
    assert (event.actor_name, event.team_id) == ("Lena", team.pk)
    assert (event.subject_type, event.subject_id) == ("identity", OBJECT)
    page = client.get("/teams/vision/tokens").content.decode()
    assert OBJECT in page
    assert CLIENT in page


def test_the_same_form_that_comes_twice_adds_one(
    client: Client, team: Team, lead: User
) -> None:
    client.force_login(lead)
    for _ in "ab":
        assert client.post(PAGE, {**GITHUB, "token": "one"}).status_code == 302
    assert Identity.objects.count() == 1


def test_the_page_says_which_ids_are_meant_and_of_what_a_token_is(
    client: Client, team: Team, lead: User
) -> None:
    client.force_login(lead)
    assert "None. A pipeline" in client.get("/teams/vision/tokens").content.decode()
    page = client.get(PAGE).content.decode()
    assert "Enterprise applications" in page
    assert f"--resource api://{settings.ENV.entra_client_id}" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"client_id": "my-app"}, "client_id", "not_a_guid"),
        ({"object_id": f"{{{OBJECT}}}"}, "object_id", "not_a_guid"),
        ({"object_id": OBJECT.replace("-", "")}, "object_id", "not_a_guid"),
        ({"object_id": CLIENT}, "object_id", "same_id_twice"),
        ({"scope": "ask"}, "scope", "not_for_a_team"),
        ({"scope": "write"}, "scope", "not_for_a_team"),
        ({"name": " "}, "name", "unreadable_name"),
    ],
)
def test_what_names_no_application_or_would_ask_is_refused_at_its_field(
    client: Client,
    team: Team,
    lead: User,
    fields: dict[str, str],
    field: str,
    code: str,
) -> None:
    with pytest.raises(BadInput) as refused:
        added(team, lead, **fields)
    assert (refused.value.field, refused.value.code) == (field, code)
    client.force_login(lead)
    assert client.post(PAGE, GITHUB | fields).status_code == 422
    answer = Caller(lead).post(HERE, GITHUB | fields)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == f"/{field}"
    assert not Identity.objects.exists()


def test_where_both_ids_are_wrong_both_are_named(
    client: Client, team: Team, lead: User
) -> None:
    wrong = {"client_id": "my-app", "object_id": "theirs"}
    client.force_login(lead)
    form = client.post(PAGE, GITHUB | wrong).context["form"]
    assert sorted(form.errors) == ["client_id", "object_id"]
    answer = Caller(lead).post(HERE, GITHUB | wrong)
    assert [(one["pointer"], one["code"]) for one in answer.json()["errors"]] == [
        ("/client_id", "not_a_guid"),
        ("/object_id", "not_a_guid"),
    ]


def test_the_portals_own_application_acts_for_nobody(team: Team, lead: User) -> None:
    with pytest.raises(BadInput) as refused:
        added(team, lead, client_id=settings.ENV.entra_client_id.upper())
    assert refused.value.code == "is_the_portal"


def test_members_and_other_leads_add_see_and_remove_none(
    client: Client, team: Team, lead: User, member: User, another_lead: User
) -> None:
    identity = added(team, lead)
    for person, status in ((member, 403), (another_lead, 404)):
        client.force_login(person)
        assert client.get(PAGE).status_code == status
        assert client.post(PAGE, GITHUB).status_code == status
        assert (
            client.post(f"/tokens/identities/{identity.pk}/remove").status_code == 404
        )
        caller = Caller(person)
        assert caller.get(HERE).status_code == status
        assert caller.post(HERE, GITHUB).status_code == status
        assert caller.delete(f"identities/{identity.pk}/").status_code == 404
        with pytest.raises(NoRight):
            added(team, person, object_id=str(uuid4()))
    assert Identity.objects.live().count() == 1


def test_a_platform_lead_finds_it_by_its_id_and_removes_it_and_adds_none(
    client: Client, team: Team, lead: User, pipeline: Pipeline
) -> None:
    identity = added(team, lead)
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    found = client.post("/tokens/", {"find": OBJECT}).content.decode()
    assert "of <bdi>Vision</bdi>" in found
    assert client.get(PAGE).status_code == 403
    assert "Add an identity" not in client.get("/teams/vision/tokens").content.decode()
    assert pipeline.get().status_code == 200
    assert client.post(f"/tokens/identities/{identity.pk}/remove").status_code == 302
    assert pipeline.refusal == (401, ACTS_FOR_NO_TEAM)
    assert "1 removed" in client.get("/teams/vision/tokens").content.decode()


def test_an_unknown_application_is_told_what_to_do(
    team: Team, lead: User, pipeline: Pipeline
) -> None:
    assert pipeline.refusal == (401, ACTS_FOR_NO_TEAM)
    added(team, lead, object_id=str(uuid4()), client_id=str(uuid4()))
    assert pipeline.refusal == (401, ACTS_FOR_NO_TEAM)


@pytest.mark.parametrize("wrong", ["object_id", "client_id"])
def test_both_ids_are_held_against_the_token(
    team: Team, lead: User, pipeline: Pipeline, wrong: str
) -> None:
    added(team, lead, **{wrong: str(uuid4())})
    assert pipeline.refusal == (401, OTHER_IDS)


@pytest.mark.parametrize("client_id", ["", "mine", "' OR 1=1"])
def test_a_token_whose_application_is_no_guid_is_refused(
    team: Team, lead: User, pipeline: Pipeline, client_id: str
) -> None:
    added(team, lead)
    pipeline.claims = Claims(oid=OBJECT, tid="t", app_only=True, client_id=client_id)
    assert pipeline.refusal == (401, OTHER_IDS)


def test_a_person_whose_object_id_a_team_named_is_still_a_person(
    team: Team, lead: User, pipeline: Pipeline
) -> None:
    added(team, lead)
    pipeline.claims = Claims(
        oid=OBJECT, tid="t", scopes=("Requests.Decide",), client_id=CLIENT
    )
    assert pipeline.refusal == (401, NOT_SIGNED_IN)


def test_a_token_that_says_neither_scope_nor_application_stays_refused(
    team: Team, lead: User, directory: Running
) -> None:
    added(team, lead)
    raw = directory.token(
        kind="api", claims={"oid": OBJECT, "azp": CLIENT}, remove=["idtyp"]
    )
    answer = Client().get("/api/v1/me/", headers={"Authorization": f"Bearer {raw}"})
    assert (answer.status_code, answer.json()["detail"]) == (
        401,
        "This token is not one of ours or has expired.",
    )


def test_an_application_acts_for_one_team_and_the_next_is_not_told_which(
    client: Client, team: Team, lead: User, another_lead: User
) -> None:
    added(team, lead)
    client.force_login(another_lead)
    answer = client.post("/teams/speech/identities", GITHUB)
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "Ask a platform lead" in page
    assert "Vision" not in page
    over_the_api = Caller(another_lead).post("teams/speech/identities/", GITHUB)
    assert (over_the_api.status_code, over_the_api.json()["code"]) == (
        409,
        "acts_for_another_team",
    )
    assert "ision" not in over_the_api.content.decode()
    with pytest.raises(Conflict, match="as GitHub"):
        added(team, lead, name="Again")


def test_one_that_was_removed_may_act_for_another_team(
    team: Team, lead: User, another_lead: User, pipeline: Pipeline
) -> None:
    assert Caller(lead).delete(f"identities/{added(team, lead).pk}/").status_code == 204
    added(Team.objects.get(slug="speech"), another_lead)
    assert pipeline.get().json()["name"] == "Speech (pipelines)"


def test_it_stays_when_who_added_it_has_left(
    client: Client, team: Team, lead: User, member: User, pipeline: Pipeline
) -> None:
    added(team, lead)
    GroupHeld.objects.filter(user=lead).delete()
    members_by_group(team)
    lead_by_owner(team)
    assert not Membership.objects.filter(team=team, user=lead).exists()
    assert pipeline.get("teams/vision/").status_code == 200
    Membership.objects.filter(user=member).update(part="lead")
    client.force_login(member)
    page = client.get("/teams/vision/tokens").content.decode()
    assert "is in the team no more and may still change" in page


def test_a_team_that_has_left_has_none(
    team: Team, lead: User, pipeline: Pipeline
) -> None:
    added(team, lead)
    with transaction.atomic():
        remove_team_identities(team, actor=PORTAL, now=timezone.now())
    assert pipeline.refusal == (401, ACTS_FOR_NO_TEAM)
    assert Event.objects.get(kind=Kind.IDENTITY_REMOVED).team_id == team.pk


def test_a_team_has_so_many_beside_its_tokens(team: Team, lead: User) -> None:
    for number in range(MAX_IDENTITIES):
        factories.identity(team, lead, name=f"i{number}")
    with pytest.raises(Conflict, match="The team has 20 identities"):
        added(team, lead)


def test_its_last_use_is_written_down_at_most_once_a_minute(
    team: Team, lead: User, pipeline: Pipeline
) -> None:
    identity = added(team, lead)
    assert pipeline.get().status_code == 200
    identity.refresh_from_db()
    first = identity.last_used_at
    assert first is not None
    pipeline.get()
    identity.refresh_from_db()
    assert identity.last_used_at == first
    long_ago = first - LAST_USE_KNOWN_TO - timedelta(seconds=1)
    Identity.objects.update(last_used_at=long_ago)
    pipeline.get()
    identity.refresh_from_db()
    assert identity.last_used_at is not None
    assert identity.last_used_at >= first


def test_one_added_over_the_api_is_listed_and_ends_with_the_token_that_named_it(
    team: Team, lead: User, pipeline: Pipeline
) -> None:
    caller = Caller(lead)
    answer = caller.post(HERE, GITHUB, key="k")
    assert answer.status_code == 201, answer.content
    assert caller.post(HERE, GITHUB, key="k").json() == answer.json()
    token = ApiToken.objects.get(user=lead)
    body = answer.json()
    assert (body["made_by"], body["created_by"]["name"]) == (token.prefix, "Lena")
    assert caller.get(HERE).json()["results"] == [body]
    assert pipeline.get().status_code == 200
    revoke_token(token, by=lead, now=timezone.now())
    assert pipeline.refusal == (401, ACTS_FOR_NO_TEAM)
    assert Event.objects.get(kind=Kind.IDENTITY_REMOVED).actor_name == "Lena"


def test_one_that_a_token_named_acts_no_longer_than_that_token_works(
    team: Team, lead: User, pipeline: Pipeline, client: Client
) -> None:
    Caller(lead)
    token = ApiToken.objects.get(user=lead)
    added(team, lead, parent=token)
    assert pipeline.get().status_code == 200
    before = timezone.now() - timedelta(days=2)
    ApiToken.objects.update(created_at=before, expires_at=before + timedelta(days=1))
    assert pipeline.refusal == (401, ACTS_FOR_NO_TEAM)
    client.force_login(lead)
    shown = client.get(f"/teams/{team.slug}/tokens").text
    assert f"the token {token}, with which it was named, works no more" in shown


def named_by_a_token_that_expired(team: Team, lead: User) -> Identity:
    """An identity whose token has expired, and which nobody has removed."""
    Caller(lead)
    identity = added(team, lead, parent=ApiToken.objects.get(user=lead))
    before = timezone.now() - timedelta(days=2)
    ApiToken.objects.update(created_at=before, expires_at=before + timedelta(days=1))
    return identity


@pytest.mark.parametrize("elsewhere", [False, True])
def test_one_whose_token_is_over_gives_its_application_free(
    team: Team, lead: User, another_lead: User, pipeline: Pipeline, elsewhere: bool
) -> None:
    former = named_by_a_token_that_expired(team, lead)
    next_team = Team.objects.get(slug="speech") if elsewhere else team
    added(next_team, another_lead if elsewhere else lead)
    assert pipeline.get().json()["name"] == f"{next_team.name} (pipelines)"
    former.refresh_from_db()
    assert former.removed_at is not None
    event = Event.objects.get(kind=Kind.IDENTITY_REMOVED)
    assert (event.actor_name, event.team_id) == ("Quartermaster", team.pk)


def test_one_whose_token_was_suspended_keeps_its_application(
    team: Team, lead: User, another_lead: User, pipeline: Pipeline
) -> None:
    Caller(lead)
    added(team, lead, parent=ApiToken.objects.get(user=lead))
    loss = AccessLoss.objects.create(user=lead, reason="blocked", at=timezone.now())
    ApiToken.objects.update(suspended_by=loss)
    assert pipeline.refusal == (401, ACTS_FOR_NO_TEAM)
    with pytest.raises(Conflict) as refused:
        added(Team.objects.get(slug="speech"), another_lead)
    assert refused.value.code == "acts_for_another_team"


def test_one_whose_token_is_over_is_not_counted(team: Team, lead: User) -> None:
    named_by_a_token_that_expired(team, lead)
    for number in range(MAX_IDENTITIES - 1):
        factories.identity(team, lead, name=f"i{number}")
    assert added(team, lead, object_id=str(uuid4())).removed_at is None


def test_a_team_that_leaves_the_platform_gets_none(
    client: Client, team: Team, lead: User
) -> None:
    Team.objects.update(leaves_platform_at=timezone.now() + timedelta(days=7))
    client.force_login(lead)
    answer = client.post(PAGE, GITHUB)
    assert answer.status_code == 409
    assert "Vision leaves the platform" in answer.content.decode()
    over_the_api = Caller(lead).post(HERE, GITHUB)
    assert (over_the_api.status_code, over_the_api.json()["code"]) == (
        409,
        "is_leaving",
    )
    assert not Identity.objects.exists()


def test_a_token_that_was_revoked_while_it_named_one_names_none(
    team: Team, lead: User
) -> None:
    Caller(lead)
    token = ApiToken.objects.get(user=lead)
    revoke_token(token, by=lead, now=timezone.now())
    with pytest.raises(NoRight):
        added(team, lead, parent=token)


def test_an_identity_adds_and_removes_none(
    team: Team, lead: User, pipeline: Pipeline
) -> None:
    identity = added(team, lead)
    caller = Caller()
    caller.headers = {"Authorization": "Bearer eyJ.e30.x"}
    for answer in (
        caller.post(HERE, GITHUB),
        caller.delete(f"identities/{identity.pk}/"),
        caller.post("tokens/", {"name": "x", "scope": "read", "days": 1}),
    ):
        assert answer.status_code == 403


def test_removing_it_again_changes_nothing(team: Team, lead: User) -> None:
    identity, caller = added(team, lead), Caller(lead)
    for _ in "ab":
        assert caller.delete(f"identities/{identity.pk}/").status_code == 204
    assert Event.objects.filter(kind=Kind.IDENTITY_REMOVED).count() == 1


def test_what_goes_on_with_its_token_ends_when_it_is_removed(
    team: Team, lead: User
) -> None:
    identity, now = added(team, lead), timezone.now()
    account = User.objects.get(pipelines_of=team)
    until = now + timedelta(minutes=60)
    mine = Credential(account.pk, until=until, identity=identity.pk)
    assert still_good([mine], now=now) == {mine}
    assert still_good([mine], now=until) == set()
    Identity.objects.update(removed_at=now)
    assert still_good([mine], now=now) == set()


def test_a_disabled_account_of_the_pipelines_lets_none_in(
    team: Team, lead: User, pipeline: Pipeline
) -> None:
    added(team, lead)
    User.objects.filter(pipelines_of=team).update(is_active=False)
    assert pipeline.refusal == (401, ACTS_FOR_NO_TEAM)


def test_every_refusal_leaves_nothing(team: Team, lead: User, member: User) -> None:
    for by, fields in ((member, {}), (lead, {"client_id": "x"})):
        with pytest.raises(Refused):
            added(team, by, **fields)
    assert not Event.objects.filter(kind=Kind.IDENTITY_ADDED).exists()
