"""Signing in takes over who somebody is, what they may do and where they belong; teams and tokens."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from accounts.actions import (
    check_cost_centre,
    create_team,
    set_tier,
    signed_in,
    signed_out,
    take_over,
)
from accounts.models import ApiToken, Membership, Team, User
from accounts.roles import Role
from accounts.tokens.actions import MOST_TOKENS, create_token, revoke_token
from audit.models import Event
from connectors.entra import Claims
from tests import factories
from tests.factories import group_oid, oid
from tests.scene import DAY, NOW
from web.refusals import BadInput, Conflict, NoRight

pytestmark = pytest.mark.django_db
VISION, NLP = str(group_oid(1)), str(group_oid(2))


def claims(number: int = 1, **fields: Any) -> Claims:
    usual: dict[str, Any] = {
        "oid": str(oid(number)),
        "tid": str(factories.TENANT),
        "name": "Ada Okafor",
        "username": "ada@example.com",
    }
    return Claims(**(usual | fields))


def sign_in(number: int = 1, groups: Iterable[str] = (), **fields: Any) -> User:
    return take_over(claims(number, **fields), groups=groups, now=NOW)


def parts(user: User) -> dict[str, str]:
    rows = Membership.objects.filter(user=user)
    return dict(rows.values_list("team__name", "part"))


def test_the_first_sign_in_makes_the_account() -> None:
    user = sign_in(groups=[VISION.upper(), NLP, NLP])
    assert (str(user.oid), user.name, user.username) == (
        str(oid(1)),
        "Ada Okafor",
        "ada@example.com",
    )
    assert (user.groups, user.groups_known_at) == ([VISION, NLP], NOW)
    assert user.roles == {Role.DATA_SCIENTIST}


@pytest.mark.parametrize(
    ("claim", "address", "kept"),
    [
        ("", "ada@example.com", "ada@example.com"),
        ("old@example.com", "ada@example.com", "ada@example.com"),
        ("ada@partner.example", "", "ada@partner.example"),
    ],
    ids=["a member", "a token of before", "a guest whom the directory has no mail of"],
)
def test_the_address_is_the_directorys_else_the_tokens(
    claim: str, address: str, kept: str
) -> None:
    assert (
        take_over(claims(email=claim), groups=(), now=NOW, address=address).email
        == kept
    )


def test_the_next_sign_in_finds_the_same_account_under_its_new_name() -> None:
    first = sign_in()
    second = sign_in(name="Ada Okafor-Hill", username="ada.hill@example.com")
    assert (second.pk, second.name) == (first.pk, "Ada Okafor-Hill")
    assert sign_in(2, name="Ada Okafor-Hill").pk != first.pk


def test_somebody_without_a_name_goes_by_their_address_or_id() -> None:
    assert sign_in(name="").name == "ada@example.com"
    assert sign_in(name="", username="").name == str(oid(1))


def test_roles_follow_every_sign_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        settings.ENV, "role_groups", {str(group_oid(4)): "platform_lead"}
    )
    assert sign_in(roles=("Auditor",), groups=[str(group_oid(4))]).roles == {
        Role.AUDITOR,
        Role.PLATFORM_LEAD,
    }
    assert sign_in(roles=("Auditor",)).roles == {Role.AUDITOR}
    assert sign_in(groups=["platform-leads"], name="platform_lead").roles == {
        Role.DATA_SCIENTIST
    }


def test_who_signs_in_joins_and_leaves_teams_with_their_groups() -> None:
    team, other = (
        factories.team("Vision", entra_group=VISION),
        factories.team("Nlp", entra_group=NLP),
    )
    assert parts(sign_in(groups=[VISION])) == {"Vision": "member"}
    since = Membership.objects.get(team=team).since
    assert parts(sign_in(groups=[VISION, NLP])) == {"Vision": "member", "Nlp": "member"}
    assert Membership.objects.get(team=team).since == since
    assert parts(sign_in(groups=[NLP])) == {"Nlp": "member"}
    assert sign_in(groups=[]).team_ids == frozenset()
    assert not other.memberships.exists()


def test_a_team_lead_joins_as_one() -> None:
    factories.team("Vision", entra_group=VISION)
    assert parts(sign_in(roles=("TeamLead",), groups=[VISION])) == {"Vision": "lead"}


def test_who_becomes_a_team_lead_leads_the_teams_they_are_in_and_no_longer_afterwards() -> (
    None
):
    team = factories.team("Vision", entra_group=VISION)
    sign_in(groups=[VISION])
    since = Membership.objects.get(team=team).since
    assert parts(sign_in(roles=("TeamLead",), groups=[VISION])) == {"Vision": "lead"}
    assert parts(sign_in(groups=[VISION])) == {"Vision": "member"}
    assert Membership.objects.get(team=team).since == since


def test_who_answers_for_a_team_leads_it_whatever_their_role() -> None:
    ada = sign_in(groups=[VISION])
    factories.team("Vision", entra_group=VISION, created_by=ada)
    assert parts(sign_in(groups=[VISION])) == {"Vision": "lead"}
    Team.objects.update(owner=sign_in(2, name="Ben Ruiz"))
    assert parts(sign_in(groups=[VISION])) == {"Vision": "member"}


def make_team(by: User, **fields: Any) -> Team:
    usual: dict[str, Any] = {
        "name": "Vision",
        "slug": "vision",
        "entra_group": VISION,
        "entra_group_name": "vision-team",
        "cost_centre": "CC-1",
        "project": "detection",
    }
    return create_team(**(usual | fields), by=by)[0]


def test_who_signed_in_before_is_in_the_team_at_once() -> None:
    ada, ben, tom = (
        sign_in(1, [VISION]),
        sign_in(2, [VISION, NLP]),
        sign_in(3, [VISION]),
    )
    stranger = sign_in(4, [NLP])
    User.objects.filter(pk=tom.pk).update(is_active=False)
    team = make_team(ada)
    assert dict(team.memberships.values_list("user__oid", "part")) == {
        ada.oid: "lead",
        ben.oid: "member",
    }
    assert (parts(stranger), ada.team_ids, team.projects.get().slug) == (
        {},
        frozenset({team.pk}),
        "detection",
    )
    event, members = Event.objects.order_by("seq").filter(team_id=team.pk)
    assert (event.kind, event.actor_id) == ("team.created", str(ada.oid))
    assert (members.kind, members.actor_name) == (
        "team.members_changed",
        "Quartermaster",
    )
    assert members.details["joined"] == sorted([ada.name, ben.name])
    assert members.details["leads"] == [ada.name]


def told_of(team: Team) -> dict[str, list[str]]:
    """What the newest event about a team says of its people."""
    event = Event.objects.filter(kind="team.members_changed", team_id=team.pk).latest(
        "seq"
    )
    return {key: value for key, value in event.details.items() if value}


def test_the_log_says_who_comes_into_a_team_leaves_it_and_leads_it() -> None:
    ada = sign_in(1, [VISION])
    team = make_team(ada)
    ben = sign_in(2, [VISION], name="Ben Ruiz")
    assert told_of(team) == {"joined": [ben.name]}
    before = Event.objects.count()
    sign_in(2, [VISION], name="Ben Ruiz")
    assert Event.objects.count() == before, "who stays as they are is no news"
    sign_in(2, [VISION], name="Ben Ruiz", roles=["TeamLead"])
    assert told_of(team) == {"leads": [ben.name]}
    sign_in(2, [VISION], name="Ben Ruiz")
    assert told_of(team) == {"no_longer_leads": [ben.name]}
    sign_in(2, [NLP], name="Ben Ruiz")
    assert told_of(team) == {"left": [ben.name]}


def test_of_a_large_team_the_log_names_the_first_and_counts_the_rest() -> None:
    ada = sign_in(1, [VISION])
    for number in range(2, 24):
        sign_in(number, [VISION])
    joined = told_of(make_team(ada))["joined"]
    assert len(joined) == 21
    assert joined[-1] == "3 more"


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"entra_group": NLP, "slug": "other"}, "name_taken", "name"),
        ({"entra_group": NLP, "slug": "other", "name": "vISION"}, "name_taken", "name"),
        ({"entra_group": NLP, "name": "Other"}, "name_taken", "name"),
        ({"slug": "other", "name": "Other"}, "group_taken", "entra_group"),
    ],
)
def test_a_taken_name_or_group_is_a_conflict(
    change: dict[str, str], code: str, field: str
) -> None:
    ada = sign_in()
    make_team(ada)
    with pytest.raises(Conflict) as refused:
        make_team(ada, **change)
    assert (refused.value.code, refused.value.field, Team.objects.count()) == (
        code,
        field,
        1,
    )


@pytest.mark.parametrize(
    "text", ["", " ", "-1", "1-", "a b", "a\nb", "x" * 21, "é", "a/b", "{{a}}"]
)
def test_a_cost_centre_must_be_fit_for_a_label(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_cost_centre(text)
    assert refused.value.field == "cost_centre"


def test_a_cost_centre_is_taken_without_blanks() -> None:
    assert check_cost_centre(" CC-4100 ") == "CC-4100"
    assert check_cost_centre("x" * 20) == "x" * 20


def test_a_token_is_shown_once_and_only_its_digest_is_kept() -> None:
    ada = sign_in()
    token, secret = create_token(user=ada, name="ci", scope="write", days=30, now=NOW)
    stored = ApiToken.objects.values().get()
    assert secret.startswith(f"qm_{token.prefix}_")
    assert secret not in str(stored)
    assert (stored["created_at"], stored["expires_at"]) == (NOW, NOW + 30 * DAY)
    assert stored["digest"] == ApiToken.hash_of(secret)
    event = Event.objects.latest("seq")
    assert (event.kind, event.subject_id) == ("token.created", token.prefix)
    assert secret not in str(event.body())


@pytest.mark.parametrize("days", [0, -1, 366, 10**9])
def test_a_token_lives_between_a_day_and_a_year(days: int) -> None:
    with pytest.raises(BadInput):
        create_token(user=sign_in(), name="ci", scope="read", days=days, now=NOW)


def test_nobody_has_more_than_twenty_tokens() -> None:
    ada = sign_in()
    tokens = [
        create_token(user=ada, name="ci", scope="read", days=365, now=NOW)[0]
        for _ in range(MOST_TOKENS)
    ]
    with pytest.raises(Conflict):
        create_token(user=ada, name="ci", scope="read", days=365, now=NOW)
    revoke_token(tokens[0], by=ada, now=NOW)
    assert create_token(user=ada, name="ci", scope="read", days=365, now=NOW)


def test_a_token_is_usable_until_it_ends_is_revoked_or_its_owner_goes() -> None:
    ada = sign_in()
    token, _ = create_token(user=ada, name="ci", scope="read", days=365, now=NOW)
    usable = ApiToken.objects.usable
    assert usable(NOW + 365 * DAY - timedelta(seconds=1)).exists()
    assert not usable(NOW + 365 * DAY).exists()
    User.objects.update(is_active=False)
    assert not usable(NOW).exists()
    User.objects.update(is_active=True)
    revoke_token(token, by=ada, now=NOW)
    revoke_token(token, by=ada, now=NOW + DAY)
    assert not usable(NOW).exists()
    assert ApiToken.objects.get().revoked_at == NOW
    assert Event.objects.filter(kind="token.revoked").count() == 1


def test_platform_leads_set_a_teams_tier_and_it_is_noted_once() -> None:
    lead, team = factories.person("Priya", Role.PLATFORM_LEAD), factories.team("Vision")
    assert team.tier == "standard"
    set_tier(team, "trusted", by=lead, now=NOW)
    set_tier(team, "trusted", by=lead, now=NOW)
    assert Team.objects.get(pk=team.pk).tier == "trusted"
    event = Event.objects.get(kind="team.tier_set")
    assert (event.team_id, event.details["before"], event.details["after"]) == (
        team.pk,
        "standard",
        "trusted",
    )


@pytest.mark.parametrize(
    "role",
    [Role.DATA_SCIENTIST, Role.TEAM_LEAD, Role.ENGINEERING_LEADERSHIP, Role.AUDITOR],
)
def test_nobody_else_sets_a_tier(role: Role) -> None:
    by = factories.person("Ada", role)
    team = factories.team("Vision", by=by)
    factories.join(team, by, lead=True)
    with pytest.raises(NoRight):
        set_tier(team, "trusted", by=by, now=NOW)
    assert Team.objects.get(pk=team.pk).tier == "standard"


@pytest.mark.parametrize("tier", ["gold", "", "Trusted", " trusted"])
def test_a_tier_that_is_none_is_refused(tier: str) -> None:
    with pytest.raises(BadInput) as refused:
        set_tier(
            factories.team(),
            tier,
            by=factories.person("Priya", Role.PLATFORM_LEAD),
            now=NOW,
        )
    assert refused.value.field == "tier"


def test_signing_in_and_out_is_noted() -> None:
    ada = sign_in(roles=("Auditor",))
    signed_in(ada)
    signed_out(ada)
    events = list(
        Event.objects.order_by("seq").values_list("kind", "actor_name", "details")
    )
    assert events == [
        ("person.signed_in", "Ada Okafor", {"roles": ["auditor"]}),
        ("person.signed_out", "Ada Okafor", {}),
    ]


def test_there_are_no_passwords() -> None:
    with pytest.raises(TypeError, match="Entra ID"):
        sign_in().set_password("secret")
