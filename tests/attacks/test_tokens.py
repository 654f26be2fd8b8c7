"""Tokens do what their scope says and what their owner still may, at once and nothing more."""

from typing import Any

import pytest

from accounts.models import ApiToken, RoleHeld
from accounts.roles import Role
from tests.attacks.browsing import refusals, state_of_everything
from tests.calling import Caller
from tests.world import World


def everything_that_decides_or_sets(here: World) -> list[tuple[str, str, dict[str, Any]]]:
    """Each call that decides something, and some that set tiers, prices, money and shares."""
    waiting = f"requests/{here.own.waiting.pk}/"
    one = {"request": here.own.waiting.pk, "version": 1, "verdict": "approve"}
    draft = f"policy/drafts/{here.draft.pk}/"
    return [
        ("POST", f"{waiting}approve/", {}), ("POST", f"{waiting}reject/", {"reason": "No."}),
        ("POST", f"{waiting}ask/", {"reason": "Why?"}), ("POST", "decisions/", {"decisions": [one]}),
        ("POST", f"{draft}activate/", {}),
        ("POST", "delegations/", {"to": str(here.people["member"].oid), "until": "2099-01-01T00:00:00Z"}),
        ("POST", "tasks/1/take/", {}), ("POST", "tasks/1/done/", {"note": "Done."}),
        ("PATCH", f"teams/{here.own.team.slug}/", {"tier": "trusted"}), ("PATCH", "offerings/openai/", {"prices": {}}),
        ("PATCH", f"flavors/{here.flavor.pk}/", {"price_per_gpu_hour": "0.01"}),
        ("PUT", f"teams/{here.own.team.slug}/budgets/2026-12/", {"limit_usd": "1.00"}),
        ("PATCH", f"tenancies/{here.own.tenancy.pk}/shares/", {"weight": 9}),
        ("PUT", f"tenancies/{here.own.tenancy.pk}/protection/", {"on": False}),
        ("POST", "tasks/1/cannot/", {"note": "Full."}), ("POST", "tasks/1/give/", {"to": None}),
    ]  # fmt: skip


@pytest.mark.parametrize("scope", ["read", "ask"])
def test_a_token_without_the_scope_decides_nothing(here: World, scope: str) -> None:
    caller = Caller(here.people["platform_lead"], scope)
    before, calls = state_of_everything(), everything_that_decides_or_sets(here)
    for method, path, body in calls:
        answer = caller.send(method, path, body, **{"If-Match": '"1"'})
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied"), path
    assert state_of_everything() == before
    assert len(refusals()) == len(calls)


def test_a_token_that_asks_may_ask_and_change_nothing_else() -> None:
    from portal.api import nested, router

    found = [getattr(pattern.callback, "cls", None) for pattern in [*router.urls, *nested]]
    asking = {(view.__name__, name) for view in found if view for name in getattr(view, "asking", ())}
    assert asking == {
        *(("RequestEndpoint", name) for name in (
            "create", "partial_update", "add_comment", "preview", "withdraw", "let_go", "renew", "preview_renewal",
            "answer",
        )),
        ("AllocationEndpoint", "give_back"), ("TenancyEndpoint", "look_again"), ("TeamEndpoint", "create"),
        ("DepartureEndpoint", "create"), ("DepartureEndpoint", "withdraw"), ("EffectEndpoint", "create"),
    }  # fmt: skip


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


def test_who_left_the_team_does_nothing_for_it_with_a_token_made_before(here: World) -> None:
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
    assert caller.post(f"allocations/{here.own.allocation.pk}/give-back/", {"gpus": 1}).status_code == 404


def test_a_key_or_token_in_the_address_is_no_sign_in(here: World) -> None:
    caller = Caller(here.people["platform_lead"])
    secret = caller.headers["Authorization"].removeprefix("Bearer ")
    for path in (
        f"/api/v1/requests/?token={secret}",
        f"/api/v1/requests/?access_token={secret}",
        f"/?token={secret}",
    ):
        assert caller.client.get(path).status_code in (302, 401), path
