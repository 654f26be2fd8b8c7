"""Fields that are not the caller's to set are refused by name, by every address that takes a body; nothing changes."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from manual.models import Task
from tests.approvals.shop import SPECS, asked_of_people
from tests.attacks.browsing import as_, state_of_everything
from tests.calling import Caller
from tests.world import World

PROTECTED = (
    "state",
    "usd",
    "cost",
    "requester",
    "approved_by",
    "approved_count",
    "auto_approved",
    "policy_version",
    "id",
    "created_at",
    "expires_at",
    "version",
    "content_version",
    "by",
    "seat_of",
    "is_staff",
    "__proto__",
)
NUL = "a\x00b"


def task_of(here: World, *, theirs: bool = False) -> Task:
    """An Azure OpenAI endpoint to make, for the own team or for the other."""
    side = here.other if theirs else here.own
    now = timezone.now()
    until = now + timedelta(days=3)
    asked = submit(
        resolve(
            "openai",
            SPECS["openai"],
            team=side.team,
            until=until,
            reason="For the November data.",
        ),
        by=side.asker,
        now=now,
    )
    return asked_of_people(asked, now=now)


def calls(here: World) -> list[tuple[str, str, str, frozenset[str]]]:
    """Who calls which address by which method, and which of the protected names it does take."""
    waiting, until = f"requests/{here.own.waiting.pk}/", frozenset[str]
    task, month = task_of(here).pk, f"{timezone.now():%Y-%m}"
    lead, asker = "lead", "asker"
    return [
        (asker, "POST", "requests/", until()),
        (asker, "POST", "requests/preview/", until()),
        (asker, "PATCH", waiting, until()),
        (asker, "POST", f"{waiting}withdraw/", until()),
        (asker, "POST", f"{waiting}answer/", until()),
        (asker, "POST", f"{waiting}comments/", until()),
        (lead, "POST", f"{waiting}approve/", until()),
        (lead, "POST", f"{waiting}reject/", until()),
        (lead, "POST", f"{waiting}ask/", until()),
        (lead, "POST", "decisions/", until()),
        (lead, "POST", "decisions/effect/", until()),
        (lead, "POST", f"tasks/{task}/take/", until(["version"])),
        (lead, "POST", f"tasks/{task}/give/", until(["version"])),
        (lead, "POST", f"tasks/{task}/done/", until(["version"])),
        (lead, "POST", f"tasks/{task}/cannot/", until(["version"])),
        (lead, "PATCH", "offerings/openai/", until()),
        (lead, "POST", "delegations/", until()),
        (lead, "POST", "tokens/", until()),
        (lead, "PATCH", "teams/vision/", until()),
        (lead, "PUT", f"teams/vision/budgets/{month}/", until()),
        (lead, "PATCH", "notice-settings/", until()),
        (lead, "POST", "channels/", until()),
        (lead, "PATCH", f"channels/{here.channel.pk}/", until()),
        (lead, "POST", f"allocations/{here.own.allocation.pk}/give-back/", until()),
    ]


@pytest.mark.slow
def test_every_address_that_takes_a_body_names_what_is_not_for_the_caller(
    here: World,
) -> None:
    callers = {
        "lead": Caller(here.people["platform_lead"]),
        "asker": Caller(here.own.asker),
    }
    given = calls(here)
    before = state_of_everything()
    for who, method, path, taken in given:
        wrong = [name for name in PROTECTED if name not in taken]
        answer = callers[who].send(
            method, path, dict.fromkeys(wrong, 1), **{"If-Match": '"1"'}
        )
        assert answer.status_code == 422, (method, path, answer.content)
        unknown = {
            error["pointer"]
            for error in answer.json()["errors"]
            if error["code"] == "unknown_field"
        }
        assert unknown == {f"/{name}" for name in wrong}, (method, path)
    assert state_of_everything() == before


@pytest.mark.slow
def test_fields_within_a_spec_and_within_each_decision_are_closed_too(
    here: World,
) -> None:
    asker, lead = Caller(here.own.asker), Caller(here.people["platform_lead"])
    waiting, until = here.own.waiting, (timezone.now() + timedelta(days=2)).isoformat()
    before = state_of_everything()
    for name in PROTECTED[::3]:
        spec = {"flavor": "training-eastus/a100", "gpus": 1, name: 1}
        for answer in (
            asker.post("requests/", {"team": "vision", "until": until, "spec": spec}),
            asker.send(
                "PATCH",
                f"requests/{waiting.pk}/",
                {"spec": {name: 1}},
                key=None,
                **{"If-Match": '"1"'},
            ),
        ):
            assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (
                422,
                f"/spec/{name}",
            )
        if name != "version":
            one = {"request": waiting.pk, "version": 1, "verdict": "approve", name: 1}
            assert lead.post("decisions/", {"decisions": [one]}).status_code == 422, (
                name
            )
    assert state_of_everything() == before


@pytest.mark.slow
def test_a_form_takes_no_field_that_it_does_not_have(here: World) -> None:
    waiting, lead, asker = (
        here.own.waiting,
        as_(here.people["platform_lead"]),
        as_(here.own.asker),
    )
    task = task_of(here)
    begun = lead.post("/policy/drafts/", {"base": "1"})["Location"]
    month = f"{timezone.now():%Y-%m}-01"
    forms: list[tuple[Any, str, dict[str, Any]]] = [
        (
            lead,
            f"/approvals/{waiting.pk}/",
            {"do": "approve", "version": waiting.version},
        ),
        (
            lead,
            "/approvals/together",
            {"do": "approve", "seen": f"{waiting.pk}:{waiting.version}"},
        ),
        (lead, f"/tasks/{task.pk}/", {"do": "take", "version": 1}),
        (lead, "/catalogue/gpus/", {"gate": "approval", "enabled": "on"}),
        (lead, "/policy/drafts/", {"base": "1"}),
        (lead, f"{begun}activate", {"version": 1}),
        (lead, f"{begun}take-over", {"version": 1}),
        (lead, f"{begun}discard", {"version": 1}),
        (lead, "/teams/vision/budget", {"month": month, "limit_usd": "100"}),
        (lead, "/stand-in/", {"to": "x@example.com"}),
        (lead, "/tokens/", {"name": "x", "scope": "read", "days": "1"}),
        (asker, f"/requests/{waiting.pk}/answer", {"text": "Because."}),
        (asker, f"/requests/{waiting.pk}/comment", {"text": "Because."}),
        (
            asker,
            f"/requests/{waiting.pk}/edit",
            {"version": waiting.version, "gpus": "5"},
        ),
        (asker, f"/allocations/{here.own.allocation.pk}/give-back", {"gpus": "1"}),
    ]
    before = state_of_everything()
    for place, (browser, address, said) in enumerate(forms):
        name = (
            PROTECTED[place % len(PROTECTED)]
            if place % len(PROTECTED) != PROTECTED.index("version")
            else "state"
        )
        answer = browser.post(address, said | {name: "1"})
        assert answer.status_code == 422, (address, name, answer.status_code)
    assert state_of_everything() == before


@pytest.mark.parametrize("name", ["state", "requester", "usd"])
def test_a_field_said_twice_or_with_a_zero_byte_does_not_slip_through(
    here: World, name: str
) -> None:
    asker = Caller(here.own.asker)
    raw = f'{{"{name}": 1, "team": "vision", "team": "speech", "{name}": 2}}'
    assert asker.post("requests/", raw).status_code in (400, 422)
    assert asker.post("requests/", {NUL: 1}).status_code == 422
    assert Request.objects.filter(requester=here.own.asker).count() == 2
