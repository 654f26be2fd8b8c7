"""Tokens do what their scope says and what their owner still may, at once and nothing more."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts import authentication
from accounts.models import ApiToken, RoleHeld
from accounts.roles import Role
from accounts.tokens.actions import create_token, revoke_token
from audit.events import Kind
from audit.models import Event
from connectors.entra import Claims
from tests.attacks.browsing import refusals, state_of_everything
from tests.calling import Caller
from tests.world import World
from web.refusals import NoRight


def everything_that_decides_or_sets(
    here: World,
) -> list[tuple[str, str, dict[str, Any]]]:
    """Each call that decides something, and some that set tiers, prices, money and shares."""
    waiting = f"requests/{here.own.waiting.pk}/"
    one = {"request": here.own.waiting.pk, "version": 1, "verdict": "approve"}
    draft = f"policy/drafts/{here.draft.pk}/"
    return [
        ("POST", f"{waiting}approve/", {}),
        ("POST", f"{waiting}reject/", {"reason": "No."}),
        ("POST", f"{waiting}ask/", {"text": "Why?"}),
        ("POST", "decisions/", {"decisions": [one]}),
        ("POST", f"{draft}activate/", {}),
        (
            "POST",
            "delegations/",
            {"to": str(here.people["member"].oid), "until": "2099-01-01T00:00:00Z"},
        ),
        ("POST", "tasks/1/take/", {}),
        ("POST", "tasks/1/done/", {"note": "Done."}),
        ("PATCH", f"teams/{here.own.team.slug}/", {"tier": "trusted"}),
        ("PATCH", "offerings/openai/", {"prices": {}}),
        ("PATCH", f"flavors/{here.flavor.pk}/", {"price_per_gpu_hour": "0.01"}),
        ("PUT", f"teams/{here.own.team.slug}/budgets/2026-12/", {"limit_usd": "1.00"}),
        ("PATCH", f"tenancies/{here.own.tenancy.pk}/shares/", {"weight": 9}),
        (
            "PUT",
            f"tenancies/{here.own.tenancy.pk}/protection/",
            {"is_protected": False},
        ),
        (
            "PUT",
            f"hubs/{here.cluster.name}/",
            {"address": "https://hub.example.com", "token_file": "hub"},
        ),
        ("POST", f"hubs/{here.cluster.name}/key/", {}),
        ("DELETE", f"hubs/{here.cluster.name}/", {}),
        (
            "POST",
            f"teams/{here.own.team.slug}/identities/",
            {
                "name": "CI",
                "client_id": "1f0d5b9e-3c4a-4a57-9d2e-8b6f0c1a2d3e",
                "object_id": "2f0d5b9e-3c4a-4a57-9d2e-8b6f0c1a2d3e",
                "scope": "run",
            },
        ),
        ("DELETE", "identities/1/", {}),
        ("POST", "tasks/1/cannot/", {"reason": "Full."}),
        ("POST", "tasks/1/give/", {"to": None}),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["read", "run", "ask"])
def test_a_token_without_the_scope_decides_nothing(here: World, scope: str) -> None:
    caller = Caller(here.people["platform_lead"], scope)
    before, calls = state_of_everything(), everything_that_decides_or_sets(here)
    for method, path, body in calls:
        answer = caller.send(method, path, body, **{"If-Match": '"1"'})
        assert (answer.status_code, answer.json()["code"]) == (
            403,
            "permission_denied",
        ), path
    assert state_of_everything() == before
    assert len(refusals()) == len(calls)


def named(attribute: str) -> set[tuple[str, str]]:
    """Which endpoints name which of their actions there."""
    from portal.api import nested, router

    found = [
        getattr(pattern.callback, "cls", None) for pattern in [*router.urls, *nested]
    ]
    return {
        (view.__name__, name)
        for view in found
        if view
        for name in getattr(view, attribute, ())
    }


def test_a_token_that_asks_may_ask_and_run_work_and_change_nothing_else() -> None:
    requests = (
        "create",
        "partial_update",
        "add_comment",
        "withdraw",
        "let_go",
        "renew",
        "answer",
    )
    assert named("asking") == {
        *(("RequestEndpoint", name) for name in requests),
        ("AllocationEndpoint", "give_back"),
        ("TenancyEndpoint", "look_again"),
        ("TeamEndpoint", "create"),
        ("DepartureEndpoint", "create"),
        ("DepartureEndpoint", "withdraw"),
        *(
            ("RunEndpoint", name)
            for name in ("create", "again", "resume", "stop", "limit")
        ),
        *(("NotebookEndpoint", name) for name in ("launch", "start", "stop")),
    }


def test_a_token_that_runs_may_run_training_and_change_nothing_else() -> None:
    assert named("running") == {
        ("RunEndpoint", name) for name in ("create", "again", "resume", "stop", "limit")
    }


def test_what_any_token_may_send_stores_nothing() -> None:
    assert named("previews") == {
        ("RequestEndpoint", "preview"),
        ("AllocationEndpoint", "preview_giving_back"),
        ("RequestEndpoint", "preview_renewal"),
        ("EffectEndpoint", "create"),
        ("RunEndpoint", "preview"),
        ("RunEndpoint", "again_preview"),
        ("RunEndpoint", "resume_preview"),
        ("RunEndpoint", "limit_preview"),
        ("TeamEndpoint", "preview"),
        ("TeamEndpoint", "preview_change"),
    }


@pytest.mark.parametrize("scope", ["read", "ask"])
def test_a_token_makes_no_token_that_may_more(here: World, scope: str) -> None:
    caller = Caller(here.people["platform_lead"], scope)
    count = ApiToken.objects.count()
    for wanted in ApiToken.Scope.values:
        answer = caller.post("tokens/", {"name": "more", "scope": wanted, "days": 1})
        assert answer.status_code == 403, wanted
    assert ApiToken.objects.count() == count


def test_a_token_may_at_once_no_more_than_its_owner(here: World) -> None:
    lead = here.people["platform_lead"]
    caller = Caller(lead)
    assert caller.patch("offerings/openai/", {"enabled": False}).status_code == 200
    RoleHeld.objects.filter(user=lead).update(role=Role.DATA_SCIENTIST)
    before = state_of_everything()
    # What is switched off is told to platform leads alone.
    assert caller.patch("offerings/openai/", {"enabled": True}).status_code == 404
    assert caller.patch("offerings/gpus/", {"enabled": False}).status_code == 403
    assert caller.get("approvals/").json()["results"] == []
    assert caller.get(f"requests/{here.own.waiting.pk}/").status_code == 404
    assert caller.get("policy/drafts/").status_code == 403
    assert state_of_everything() == before


def test_who_left_the_team_does_nothing_for_it_with_a_token_made_before(
    here: World,
) -> None:
    asker = here.own.asker
    caller = Caller(asker)
    assert caller.get(f"requests/{here.own.waiting.pk}/").status_code == 200
    asker.memberships.all().delete()
    said = {
        "team": "vision",
        "spec": {"flavor": "training-eastus/a100", "gpus": 1},
        "until": "2026-12-24T00:00:00Z",
    }
    assert caller.post("requests/", said).status_code == 404
    assert caller.get(f"requests/{here.own.waiting.pk}/").status_code == 404
    assert (
        caller.post(
            f"allocations/{here.own.allocation.pk}/give-back/", {"gpus": 1}
        ).status_code
        == 404
    )


def test_a_key_or_token_in_the_address_is_no_sign_in(here: World) -> None:
    caller = Caller(here.people["platform_lead"])
    secret = caller.headers["Authorization"].removeprefix("Bearer ")
    for path in (
        f"/api/v1/requests/?token={secret}",
        f"/api/v1/requests/?access_token={secret}",
        f"/?token={secret}",
    ):
        assert caller.client.get(path).status_code in (302, 401), path


def made_with(caller: Caller, **wanted: Any) -> Any:
    """The answer to a call that makes a token."""
    return caller.post(
        "tokens/", {"name": "child", "scope": "write", "days": 1} | wanted
    )


def with_secret(secret: str) -> Caller:
    """Whoever calls with this token."""
    caller = Caller()
    caller.headers = {"Authorization": f"Bearer {secret}"}
    return caller


def test_a_token_makes_no_token_that_outlives_it(here: World) -> None:
    caller = Caller(here.people["member"])
    parent = ApiToken.objects.get(user=here.people["member"])
    for days in (2, 365):
        answer = made_with(caller, days=days)
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (
            422,
            "outlives_its_maker",
        )
    made = made_with(caller)
    child = ApiToken.objects.get(prefix=made.json()["prefix"])
    assert (made.status_code, made.json()["made_by"]) == (201, parent.prefix)
    assert (child.parent, child.expires_at) == (parent, parent.expires_at)


def test_revoking_a_token_revokes_every_token_that_descends_from_it(
    here: World,
) -> None:
    member = here.people["member"]
    first, other = Caller(member), Caller(member)
    parent = ApiToken.objects.filter(user=member).earliest("pk")
    second = with_secret(made_with(first).json()["secret"])
    third = with_secret(made_with(second).json()["secret"])
    assert third.get("me/").status_code == 200
    assert other.delete(f"tokens/{parent.prefix}/").status_code == 204
    assert [
        caller.get("me/").status_code for caller in (first, second, third, other)
    ] == [401, 401, 401, 200]
    revoked = Event.objects.filter(kind=Kind.TOKEN_REVOKED)
    assert [event.details.get("with_token") for event in revoked] == [
        parent.prefix,
        parent.prefix,
        None,
    ]


def test_a_token_that_was_revoked_while_it_made_another_makes_none(here: World) -> None:
    member, now = here.people["member"], timezone.now()
    parent = create_token(user=member, name="parent", scope="write", days=9, now=now)[0]
    revoke_token(parent, by=member, now=now)
    with pytest.raises(NoRight):
        create_token(
            user=member, name="child", scope="read", days=1, now=now, parent=parent
        )


def test_a_token_makes_none_that_is_wider(here: World) -> None:
    member, now = here.people["member"], timezone.now()
    parent = create_token(user=member, name="parent", scope="ask", days=9, now=now)[0]
    assert create_token(
        user=member, name="child", scope="read", days=1, now=now, parent=parent
    )
    with pytest.raises(NoRight):
        create_token(
            user=member, name="child", scope="write", days=1, now=now, parent=parent
        )


def test_the_database_lets_no_token_outlive_its_maker(here: World) -> None:
    member, now = here.people["member"], timezone.now()
    parent = create_token(user=member, name="parent", scope="write", days=2, now=now)[0]
    child = create_token(
        user=member, name="child", scope="write", days=1, now=now, parent=parent
    )[0]
    row = ApiToken.objects.filter(pk=child.pk)
    for change in (
        {"expires_at": parent.expires_at + timedelta(seconds=1)},
        {"parent": None},
        {"parent_expires_at": None},
        {"parent": child.pk},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            row.update(**change)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scope", "statuses"),
    [
        ("openid", [403, 403, 403]),
        ("access_as_user", [403, 403, 403]),
        ("openid Requests.Read", [200, 403, 403]),
        ("Requests.Ask", [200, 201, 403]),
        ("Requests.Read Requests.Decide", [200, 201, 200]),
    ],
)
def test_an_entra_token_may_do_what_its_scopes_say(
    here: World, monkeypatch: pytest.MonkeyPatch, scope: str, statuses: list[int]
) -> None:
    """The token's signature is another test's: here the connector has checked it already."""
    lead = here.people["platform_lead"]
    claims = Claims(oid=str(lead.oid), tid=str(lead.tid), scopes=tuple(scope.split()))
    monkeypatch.setattr(
        authentication,
        "entra",
        lambda: SimpleNamespace(verify_bearer=lambda raw: claims),
    )
    caller = with_secret("eyJ.e30.x")
    waiting = f"requests/{here.own.waiting.pk}/"
    answers = [
        caller.get(waiting),
        caller.post(f"{waiting}comments/", {"text": "Soon."}),
        caller.patch("offerings/openai/", {"enabled": False}),
    ]
    assert [answer.status_code for answer in answers] == statuses
    assert (
        caller.post("tokens/", {"name": "x", "scope": "read", "days": 1}).status_code
        == 403
    )
