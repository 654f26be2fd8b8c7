"""Deciding what is one's own, what one has no seat for, what has changed, or twice: by every door, always in vain."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import ApiToken, Delegation, RoleHeld, User
from accounts.roles import Role
from accounts.stand_ins.actions import accept, delegate
from approvals.decisions import actions as decisions
from approvals.models import Decision, Request
from tests import factories
from tests.attacks.browsing import as_, refusals, state_of_everything
from tests.calling import Caller
from tests.scene import Scene
from web.refusals import Refused

DAY = timedelta(days=1)
DOORS = ("page", "together", "api", "bulk")


def ask(scene: Scene, gpus: int = 3, *, by: User | None = None) -> Request:
    """Somebody asked a moment ago."""
    return factories.request(
        by or scene.ada, scene.tenancy, scene.flavor, gpus=gpus, days=2
    )


def attempt(
    door: str,
    by: User,
    request: Request,
    *,
    version: int | None = None,
    verdict: str = "approve",
) -> str:
    """Try to decide; the code of the refusal, a status for pages, "" when it was decided."""
    seen = Request.objects.get(pk=request.pk).version if version is None else version
    if door == "page":
        answer: Any = as_(by).post(
            f"/approvals/{request.pk}/",
            {"do": verdict, "version": seen, "reason": "Because."},
        )
        return "" if answer.status_code == 302 else str(answer.status_code)
    if door == "together":
        sent = {"do": verdict, "seen": [f"{request.pk}:{seen}"], "reason": "Because."}
        answer = as_(by).post("/approvals/together", sent)
        return str(answer.context["results"][0][1].code)
    caller, body = Caller(by), {"reason": "Because."}
    if door == "api":
        answer = caller.post(
            f"requests/{request.pk}/{verdict}/", body, **{"If-Match": f'"{seen}"'}
        )
        return "" if answer.status_code == 200 else str(answer.json()["code"])
    one = {"request": request.pk, "version": seen, "verdict": verdict, **body}
    return str(
        caller.post("decisions/", {"decisions": [one]}).json()["results"][0]["code"]
    )


def lend(giver: User, to: User, **fields: Any) -> Delegation:
    """A seat lent for two days from now on and accepted, unless told otherwise."""
    now = timezone.now()
    usual: dict[str, Any] = {
        "starts_at": now,
        "until": now + 2 * DAY,
        "why": "Away.",
        "now": now,
    }
    said: dict[str, Any] = usual | fields
    made = delegate(giver=giver, to=to, **said)
    accept(made, by=to, now=now)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("door", "verdict"), list(zip(DOORS, ["approve", "reject"] * 2, strict=True))
)
def test_nobody_decides_their_own_request_by_any_door(
    scene: Scene, door: str, verdict: str
) -> None:
    own = ask(scene, by=scene.priya)
    before = state_of_everything()
    assert attempt(door, scene.priya, own, verdict=verdict) in ("403", "self_approval")
    assert state_of_everything() == before
    assert [name for name, _ in refusals()] == ["Priya Raman"]


@pytest.mark.slow
@pytest.mark.parametrize("door", ["page", "api"])
def test_a_seat_lent_in_either_direction_decides_no_own_request(
    scene: Scene, door: str
) -> None:
    lend(scene.marcus, scene.priya)
    own = ask(scene, by=scene.priya)
    assert attempt(door, scene.priya, own) in ("403", "self_approval")
    # Who sits in the requester's seat sits in nobody's for that request.
    lend(scene.priya, scene.ada)
    assert attempt(door, scene.ada, own) in (
        "403",
        "404",
        "not_an_approver",
        "not_found",
    )
    assert not Decision.objects.filter(request=own).exists()


def test_the_beneficiarys_tokens_decide_nothing_whatever_their_scope(
    scene: Scene,
) -> None:
    asked = ask(scene)
    for scope in ApiToken.Scope.values:
        answer = Caller(scene.ada, scope).post(
            f"requests/{asked.pk}/approve/", **{"If-Match": '"1"'}
        )
        assert answer.status_code == 403, scope
    assert not Decision.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "door"),
    [
        ("auditor", "page"),
        ("auditor", "bulk"),
        ("team_lead", "api"),
        ("leadership", "together"),
        ("stranger", "page"),
        ("stranger", "bulk"),
    ],
)
def test_a_role_without_the_seat_decides_nothing(
    scene: Scene, who: str, door: str
) -> None:
    asked = ask(scene)
    people = {
        "auditor": factories.person("Sam", Role.AUDITOR),
        "team_lead": factories.person("Chloe", Role.TEAM_LEAD, teams=[scene.team]),
        "leadership": scene.elena,
        "stranger": scene.mallory,
    }
    before = state_of_everything()
    assert attempt(door, people[who], asked) in (
        "403",
        "404",
        "not_an_approver",
        "not_found",
    )
    assert state_of_everything() == before
    assert len(refusals()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("why", "door"),
    [
        ("over", "api"),
        ("ended", "page"),
        ("not_begun", "bulk"),
        ("giver_lost_the_role", "api"),
        ("giver_lost_the_role", "page"),
        ("giver_blocked", "together"),
    ],
)
def test_a_seat_that_is_lent_no_more_or_not_the_givers_any_more_decides_nothing(
    scene: Scene, why: str, door: str
) -> None:
    asked, now = ask(scene), timezone.now()
    ben = factories.person("Ben", teams=[scene.team])
    lent = lend(scene.priya, ben)
    rows = Delegation.objects.filter(pk=lent.pk)
    if why == "over":
        rows.update(starts_at=now - 2 * DAY, until=now - timedelta(seconds=1))
    elif why == "ended":
        rows.update(ended_at=now)
    elif why == "not_begun":
        rows.update(starts_at=now + DAY)
    elif why == "giver_lost_the_role":
        RoleHeld.objects.filter(user=scene.priya).update(role=Role.DATA_SCIENTIST)
    else:
        User.objects.filter(pk=scene.priya.pk).update(is_active=False)
    assert attempt(door, ben, asked) in ("403", "404", "not_an_approver")
    assert not Decision.objects.filter(request=asked).exists()


def test_the_same_stand_in_decides_while_the_seat_is_lent(scene: Scene) -> None:
    asked, ben = ask(scene), factories.person("Ben")
    lend(scene.priya, ben)
    assert attempt("api", ben, asked) == ""
    assert Decision.objects.get(request=asked, verdict="approve").seat_of == scene.priya


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_a_version_that_one_has_not_seen_is_not_decided_by_any_door(
    scene: Scene, door: str
) -> None:
    asked = ask(scene)
    body = {"spec": {"gpus": 9}}
    edited = Caller(scene.ada).send(
        "PATCH", f"requests/{asked.pk}/", body, key=None, **{"If-Match": '"1"'}
    )
    assert edited.status_code == 200, edited.content
    before = state_of_everything()
    for wrong in (1, 3):
        assert attempt(door, scene.priya, asked, version=wrong) in ("412", "stale")
    assert state_of_everything() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"), list(zip(DOORS, [*DOORS[1:], DOORS[0]], strict=True))
)
def test_the_same_person_votes_once_whatever_the_doors(
    scene: Scene, first: str, second: str
) -> None:
    asked = ask(scene, 8)
    assert attempt(first, scene.priya, asked) == ""
    # Even with the right to the next step.
    RoleHeld.objects.create(user=scene.priya, role=Role.ENGINEERING_LEADERSHIP)
    assert attempt(second, User.objects.get(pk=scene.priya.pk), asked) in (
        "409",
        "voted_already",
    )
    assert Decision.objects.filter(request=asked).count() == 1


def test_a_stand_in_and_the_giver_are_one_voice(scene: Scene) -> None:
    asked, ben = ask(scene, 8), factories.person("Ben")
    RoleHeld.objects.create(user=scene.priya, role=Role.ENGINEERING_LEADERSHIP)
    giver = User.objects.get(pk=scene.priya.pk)
    lend(giver, ben)
    assert attempt("api", ben, asked) == ""
    assert attempt("api", giver, asked) == "voted_already"


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_what_is_decided_is_not_decided_again(scene: Scene, door: str) -> None:
    asked = ask(scene)
    decisions.reject(
        asked.pk,
        by=scene.marcus,
        expected_version=1,
        reason="Full.",
        now=timezone.now(),
    )
    before = state_of_everything()
    assert attempt(door, scene.priya, asked) in ("409", "already_decided")
    assert state_of_everything() == before


def test_a_refused_decision_leaves_an_event_by_every_door(scene: Scene) -> None:
    own = ask(scene, by=scene.priya)
    for count, door in enumerate(DOORS, 1):
        attempt(door, scene.priya, own)
        assert len(refusals()) == count, door


@pytest.mark.slow
def test_a_decision_that_waits_for_the_directory_leaves_an_event_too(
    scene: Scene,
) -> None:
    asked = ask(scene)
    User.objects.filter(pk=scene.priya.pk).update(
        groups_known_at=timezone.now() - timedelta(hours=1)
    )
    for count, door in enumerate(DOORS, 1):
        assert attempt(door, scene.priya, asked) in ("503", "directory_away")
        assert len(refusals()) == count, door
    assert not Decision.objects.exists()


def test_a_refusal_that_leads_to_another_page_leaves_an_event_too(scene: Scene) -> None:
    asked, auditor = ask(scene), factories.person("Sam", Role.AUDITOR)
    before = state_of_everything()
    answer = as_(auditor).post(f"/requests/{asked.pk}/let-go")
    assert answer.status_code == 302
    assert [name for name, _ in refusals()] == ["Sam"]
    assert state_of_everything() == before


@pytest.mark.slow
@pytest.mark.parametrize("method", ["get", "head"])
def test_a_link_that_is_only_looked_at_changes_nothing(
    scene: Scene, method: str
) -> None:
    asked = ask(scene)
    browser = as_(scene.priya)
    begun = browser.post("/policy/drafts/", {"base": "1"})
    addresses = [
        f"/approvals/{asked.pk}/",
        f"/approvals/{asked.pk}/?do=approve&version=1&reason=x",
        f"/approvals/together?pk={asked.pk}&do=approve&seen={asked.pk}:1",
        begun["Location"],
        f"{begun['Location']}?version=1&why=x",
        f"/requests/{asked.pk}/",
        f"/requests/{asked.pk}/?do=approve",
    ]
    only_post = [
        f"{begun['Location']}{act}?version=1"
        for act in ("activate", "discard", "take-over")
    ] + [
        f"/requests/{asked.pk}/{act}"
        for act in ("withdraw", "answer", "comment", "let-go")
    ]
    before = state_of_everything()
    for address in addresses:
        answer = getattr(browser, method)(address)
        assert answer.status_code == 200, address
        if method == "get":
            assert "csrfmiddlewaretoken" in answer.content.decode(), address
    for address in only_post:
        assert getattr(browser, method)(address).status_code == 302, address
    assert state_of_everything() == before


@pytest.mark.slow
def test_a_form_from_another_site_decides_nothing(scene: Scene) -> None:
    asked = ask(scene)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(scene.priya)
    body = {"do": "approve", "version": 1}
    before = state_of_everything()
    for headers in (
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Referer": "https://evil.example/"},
    ):
        for address in (f"/approvals/{asked.pk}/", "/approvals/together"):
            assert browser.post(address, body, headers=headers).status_code == 403, (
                address,
                headers,
            )
    raw = '{"do": "approve", "version": 1}'
    assert (
        browser.post(
            f"/approvals/{asked.pk}/", raw, content_type="text/plain"
        ).status_code
        == 403
    )
    assert state_of_everything() == before


def test_a_platform_lead_cannot_edit_what_they_then_decide(scene: Scene) -> None:
    asked = ask(scene)
    answer = Caller(scene.priya).send(
        "PATCH",
        f"requests/{asked.pk}/",
        {"spec": {"gpus": 9}},
        key=None,
        **{"If-Match": '"1"'},
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "not_the_requester")
    assert (
        as_(scene.priya).post(f"/requests/{asked.pk}/edit", {"version": 1}).status_code
        == 404
    )


def test_who_lost_the_role_after_the_page_opened_is_refused_at_the_vote(
    scene: Scene,
) -> None:
    asked = ask(scene)
    loaded = User.objects.get(pk=scene.priya.pk)
    assert loaded.roles
    RoleHeld.objects.filter(user=scene.priya).update(role=Role.AUDITOR)
    with pytest.raises(Refused) as refused:
        decisions.approve(asked.pk, by=loaded, expected_version=1, now=timezone.now())
    assert refused.value.code == "not_an_approver"
