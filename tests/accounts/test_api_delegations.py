"""Stand-ins and tiers over the API, and a token that asks and never decides."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.authentication import SignedInWithScope
from accounts.models import ApiToken, Delegation, Team, User
from accounts.roles import Role
from tests import factories
from tests.calling import Caller

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def priya(db: None) -> User:
    return factories.person("Priya Raman", Role.PLATFORM_LEAD)


def wanted(to: User, /, **fields: Any) -> dict[str, Any]:
    return {"to": str(to.oid), "until": (timezone.now() + DAY).isoformat(), **fields}


def test_a_stand_in_is_named_listed_for_both_and_ended(priya: User) -> None:
    ada = factories.person("Ada Okafor")
    made = Caller(priya).post("delegations/", wanted(ada, reason="On holiday."))
    assert made.status_code == 201
    body = made.json()
    assert (body["giver"]["name"], body["to"]["name"], body["ended_at"]) == (
        "Priya Raman",
        "Ada Okafor",
        None,
    )
    for person in (priya, ada):
        assert [
            row["id"] for row in Caller(person).get("delegations/").json()["results"]
        ] == [body["id"]]
    stranger = Caller(factories.person("Mallory", Role.PLATFORM_LEAD))
    assert stranger.get("delegations/").json()["results"] == []
    assert stranger.delete(f"delegations/{body['id']}/").status_code == 404
    assert (body["state"], body["accepted_at"]) == ("invited", None)
    path = f"delegations/{body['id']}"
    for answer in ("accept", "decline"):
        assert stranger.post(f"{path}/{answer}/", {}).status_code == 404
        assert Caller(priya).post(f"{path}/{answer}/", {}).status_code == 403
    for _ in "ab":
        accepted = Caller(ada).post(f"{path}/accept/", {})
        assert (accepted.status_code, accepted.json()["state"]) == (200, "accepted")
    late = Caller(ada).post(f"{path}/decline/", {})
    assert (late.status_code, late.json()["code"]) == (409, "accepted_already")
    assert Caller(ada).post(f"{path}/accept/", {"x": 1}).status_code == 422
    assert Caller(ada).delete(f"delegations/{body['id']}/").status_code == 204
    assert Caller(priya).delete(f"delegations/{body['id']}/").status_code == 204
    assert Delegation.objects.get().ended_at is not None


def test_who_declines_ends_it(priya: User) -> None:
    ada = factories.person("Ada Okafor")
    made = Caller(priya).post("delegations/", wanted(ada)).json()
    declined = Caller(ada).post(f"delegations/{made['id']}/decline/", {}).json()
    assert declined["state"] == "declined"
    assert declined["ended_at"] == declined["declined_at"] is not None


def test_a_repeated_call_names_one(priya: User) -> None:
    caller, body = Caller(priya), wanted(factories.person("Ada"))
    first, second = (caller.post("delegations/", body, key="once") for _ in "ab")
    assert (first.status_code, second.status_code, first.json()) == (
        201,
        201,
        second.json(),
    )
    assert Delegation.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"to": "00000000-0000-4000-8000-999999999999"}, 422, "no_such_person"),
        ({"to": "ada"}, 422, "no_such_person"),
        ({"until": "2020-01-01T00:00:00Z"}, 422, "not_taken"),
        ({"until": "2026-11-28T18:00:00"}, 422, "not_taken"),
        ({"until": "2099-01-01T00:00:00Z"}, 422, "too_long"),
        ({"starts_at": "2020-01-01T00:00:00Z"}, 422, "in_the_past"),
        ({"giver": 1}, 422, "not_taken"),
        ({"ended_at": None}, 422, "not_taken"),
    ],
)
def test_what_cannot_be_is_refused(
    priya: User, change: dict[str, Any], status: int, code: str
) -> None:
    answer = Caller(priya).post(
        "delegations/", wanted(factories.person("Ada"), **change)
    )
    expected = (
        {code, "ends_before_it_starts"}
        if change.get("until", "").startswith("2020")
        else {code}
    )
    assert (answer.status_code, answer.json()["code"] in expected) == (status, True)
    assert not Delegation.objects.exists()


def test_who_decides_nothing_lends_nothing(priya: User) -> None:
    answer = Caller(factories.person("Ada")).post("delegations/", wanted(priya))
    assert (answer.status_code, answer.json()["code"]) == (403, "nothing_to_lend")


def test_a_token_that_only_asks_lends_no_seat_and_sets_no_tier(priya: User) -> None:
    team = factories.team("Vision")
    caller = Caller(priya, ApiToken.Scope.ASK)
    answer = caller.post("delegations/", wanted(factories.person("Ada")))
    assert (answer.status_code, answer.json()["detail"]) == (
        403,
        "This token asks; it decides and sets nothing. Create one that may decide.",
    )
    assert caller.get("delegations/").status_code == 200
    for scope in (ApiToken.Scope.ASK, ApiToken.Scope.READ):
        answer = Caller(priya, scope).patch(f"teams/{team.slug}/", {"tier": "trusted"})
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


@pytest.mark.parametrize(
    ("scope", "method", "action", "may"),
    [
        ("read", "GET", "approve", True),
        ("read", "POST", "create", False),
        ("read", "POST", "preview", True),
        ("ask", "POST", "preview", True),
        ("ask", "POST", "create", True),
        ("ask", "POST", "approve", False),
        ("ask", "GET", "approve", True),
        ("write", "POST", "approve", True),
        ("ask", "DELETE", "forgotten", False),
    ],
)
def test_an_endpoint_names_the_changes_that_only_ask(
    priya: User, scope: str, method: str, action: str, may: bool
) -> None:
    class View:
        previews, asking = frozenset({"preview"}), frozenset({"create"})

    request: Any = type(
        "Request", (), {"user": priya, "auth": ApiToken(scope=scope), "method": method}
    )()
    view: Any = View()
    view.action = action
    assert SignedInWithScope().has_permission(request, view) is may


def test_platform_leads_set_a_tier_and_members_do_not(priya: User) -> None:
    team = factories.team("Vision")
    path = f"teams/{team.slug}/"
    answer = Caller(priya).patch(path, {"tier": "restricted"})
    assert (answer.status_code, answer.json()["tier"]) == (200, "restricted")
    for body, status in (
        ({"tier": "gold"}, 422),
        ({"tier": "trusted", "slug": "x"}, 422),
        ({}, 422),
    ):
        assert Caller(priya).patch(path, body).status_code == status
    member = Caller(factories.person("Ada", Role.TEAM_LEAD, teams=[team]))
    assert member.patch(path, {"tier": "trusted"}).status_code == 403
    assert (
        Caller(factories.person("Mallory")).patch(path, {"tier": "trusted"}).status_code
        == 404
    )
    assert Team.objects.get(pk=team.pk).tier == "restricted"
