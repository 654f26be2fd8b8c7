"""Lists tell nothing of other teams, take no order, filter or size that was not offered, and never reflect markup."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from approvals.models import Comment, Request
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from catalogue import actions as offering_actions
from tests.approvals.shop import SPECS, asked_of_people
from tests.attacks.browsing import as_, state_of_everything, text_of
from tests.calling import Caller
from tests.world import World

LISTS = (
    "requests",
    "approvals",
    "decisions",
    "allocations",
    "tasks",
    "delegations",
    "tokens",
    "offerings",
    "teams",
    "tenancies",
    "clusters",
    "flavors",
    "events",
)
# Each is a parameter of some list somewhere, or of a framework that somebody hopes for.
HOPED_FOR = (
    "ordering=team__budget__limit",
    "requester__password__startswith=a",
    "team__slug__regex=.*",
    "page_size=1000000000",
    "offset=1000000000",
    "limit=1000000000",
    "limit=-1",
    "limit=%EF%BC%98",
    "page=2",
    "fields=requester",
    "format=csv",
    "q__iregex=(a%2B)%2B$",
    "as=admin",
    "user=1",
)
MARKUP = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E%3Cimg%20src=x%20onerror=alert(1)%3E"
PAGES = (
    "/requests/?team={}&state={}&whose={}&after={}",
    "/approvals/?team={}&size={}&age={}&offering={}",
    "/tasks/?show={}",
    "/approvals/together?pk={}",
    "/approvals/statistics?days={}",
    "/policy/export.yaml?version={}",
    "/teams/?q={}",
    "/requests/new?team={}&gpus={}&reason={}&flavor={}",
    "/requests/new/volume?team={}&name={}&gib={}&reason={}",
    "/requests/new/openai?model={}&region={}",
    "/audit/?kind={}&q={}&team={}&after={}",
    "/settings/deliveries/?state={}",
    "/teams/vision/budget/2026-11?after={}",
    "/palette?q={}",
    "/clusters/?q={}",
    "/policy/drafts/?q={}",
)


def of_both(here: World) -> dict[str, Any]:
    """A task, a comment and a stand-in of the other team."""
    now, side = timezone.now(), here.other
    until = now + timedelta(days=3)
    wanted = resolve(
        "openai",
        SPECS["openai"],
        team=side.team,
        until=until,
        reason="For the November data.",
    )
    asked = submit(wanted, by=side.asker, now=now)
    Comment.objects.create(
        request=side.waiting, by=side.asker, text="Between us.", at=now
    )
    return {"task": asked_of_people(asked, now=now), "request": asked}


def plain(answer: Any) -> dict[str, Any]:
    """A problem without what names the one call."""
    return {
        key: value
        for key, value in answer.json().items()
        if key not in ("instance", "request_id")
    }


def test_no_list_tells_a_stranger_that_another_teams_things_exist(here: World) -> None:
    theirs = of_both(here)
    caller = Caller(here.people["outsider"])
    for name in LISTS:
        said = caller.get(f"{name}/").content.decode()
        for word in ("speech", "Speech", "Asker of", "corpus", "Between us", "Vision"):
            assert word not in said, (name, word)
    for query in ("tasks/?request={}", "tasks/?state=unfinished&request={}"):
        found = [
            caller.get(query.format(number))
            for number in (theirs["request"].pk, 999_999_999)
        ]
        assert found[0].content == found[1].content, query
    for query in ("requests/?team={}", "requests/?team={}&state=waiting"):
        assert (
            caller.get(query.format("speech")).content
            == caller.get(query.format("nobody")).content
        )
    for path in (
        "options/flavors/?team={}",
        "offerings/volume/options/?team={}",
        "offerings/gpus/options/?team={}",
    ):
        first, second = (
            caller.get(path.format("speech")),
            caller.get(path.format("nobody")),
        )
        assert (first.status_code, plain(first)) == (404, plain(second)), path


@pytest.mark.slow
def test_anothers_new_things_are_like_missing_ones(here: World) -> None:
    theirs = of_both(here)
    caller = Caller(here.people["member"])
    missing = 999_999_999
    gets = ("tasks/{}/", "delegations/{}/")
    numbers = (theirs["task"].pk, here.other.stand_in.pk)
    for path, number in zip(gets, numbers, strict=True):
        first, second = (
            caller.get(path.format(number)),
            caller.get(path.format(missing)),
        )
        assert (first.status_code, plain(first)) == (
            second.status_code,
            plain(second),
        ), path
    posts: list[tuple[str, str, int, dict[str, Any]]] = [
        ("POST", "tasks/{}/take/", theirs["task"].pk, {}),
        ("POST", "tasks/{}/done/", theirs["task"].pk, {"note": "x"}),
        ("POST", "tasks/{}/cannot/", theirs["task"].pk, {"reason": "x"}),
        ("DELETE", "delegations/{}/", here.other.stand_in.pk, {}),
        ("PATCH", "requests/{}/", here.other.waiting.pk, {"reason": "Mine now."}),
        ("POST", "requests/{}/let-go/", theirs["request"].pk, {}),
        ("POST", "requests/{}/comments/", here.other.waiting.pk, {"text": "Hello."}),
        ("POST", "allocations/{}/give-back/", here.other.allocation.pk, {"gpus": 1}),
    ]
    before = state_of_everything()
    for method, path, number, body in posts:
        answers = [
            caller.send(method, path.format(each), body, **{"If-Match": '"1"'})
            for each in (number, missing)
        ]
        assert (answers[0].status_code, plain(answers[0])) == (
            404,
            plain(answers[1]),
        ), path
    assert caller.get(f"requests/{here.other.waiting.pk}/comments/").status_code == 404
    effect = [
        caller.post("decisions/effect/", {"requests": [n]}).json()
        for n in (here.other.waiting.pk, missing)
    ]
    assert effect[0] | {"left_out": []} == effect[1] | {"left_out": []}
    one = {"version": 1, "verdict": "approve"}
    bulk = [
        caller.post("decisions/", {"decisions": [one | {"request": number}]}).json()[
            "results"
        ][0]
        | {"request": 0}
        for number in (here.other.waiting.pk, missing)
    ]
    assert bulk[0] == bulk[1]
    assert state_of_everything() == before


@pytest.mark.slow
def test_pages_of_others_new_things_are_like_missing_ones(here: World) -> None:
    theirs, member = of_both(here), as_(here.people["member"])
    waiting, missing = here.other.waiting.pk, 999_999_999
    before = state_of_everything()
    for path, number in (
        ("/requests/{}/", waiting),
        ("/requests/{}/edit", waiting),
        ("/approvals/{}/", waiting),
        ("/tasks/{}/", theirs["task"].pk),
        ("/policy/drafts/{}/", 1),
    ):
        first, second = (
            member.get(path.format(number)),
            member.get(path.format(missing)),
        )
        assert first.status_code == second.status_code in (403, 404), path
    for path, number in (
        ("/requests/{}/comment", waiting),
        ("/requests/{}/let-go", theirs["request"].pk),
        ("/requests/{}/withdraw", waiting),
        ("/stand-in/{}/end", here.other.stand_in.pk),
        ("/settings/deliveries/{}/again", here.delivery.pk),
    ):
        first, second = (
            member.post(path.format(each), {"text": "x"}) for each in (number, missing)
        )
        assert first.status_code == second.status_code in (403, 404), path
    assert "Speech" not in text_of(member.get(f"/approvals/together?pk={waiting}"))
    assert state_of_everything() == before


def test_what_is_switched_off_is_told_to_platform_leads_alone(here: World) -> None:
    lead = here.people["platform_lead"]
    offering_actions.change("openai", by=lead, enabled=False)
    caller = Caller(here.people["member"])
    listed = caller.get("offerings/").json()["results"]
    assert "openai" not in [row["key"] for row in listed]
    assert plain(caller.get("offerings/openai/")) == plain(
        caller.get("offerings/nothing/")
    )
    assert "openai" in [
        row["key"] for row in Caller(lead).get("offerings/").json()["results"]
    ]


@pytest.mark.slow
def test_lists_take_no_order_filter_or_size_that_was_not_offered(here: World) -> None:
    caller = Caller(here.people["platform_lead"])
    for name in (
        *LISTS,
        "channels",
        "deliveries",
        "policy",
        "policy/versions",
        "policy/drafts",
    ):
        for query in (
            HOPED_FOR if name in ("requests", "tasks", "deliveries") else HOPED_FOR[:5]
        ):
            answer = caller.get(f"{name}/?{query}")
            assert (answer.status_code, answer.json()["code"]) == (400, "bad_query"), (
                name,
                query,
            )


@pytest.mark.slow
def test_no_page_reflects_markup_of_its_address_or_breaks_by_it(here: World) -> None:
    offering_actions.change("gpus", by=here.people["platform_lead"], enabled=True)
    browser, broken = as_(here.people["platform_lead"]), []
    browser.raise_request_exception = False
    for page in PAGES:
        for value in (MARKUP, "99999999999999999999"):
            with transaction.atomic():
                answer = browser.get(page.replace("{}", value))
                transaction.set_rollback(True)
            said = text_of(answer)
            if (
                answer.status_code >= 500
                or "<script>alert" in said
                or "<img src=x" in said
            ):
                broken.append((page, value[:20], answer.status_code))
    assert broken == []


def test_a_zero_byte_in_the_address_of_a_page_is_refused(here: World) -> None:
    browser = as_(here.people["member"])
    browser.raise_request_exception = False
    for path in ("/teams/?q=%00", "/audit/?team=a%00b", "/palette?q=%00"):
        with transaction.atomic():
            assert browser.get(path).status_code == 400, path
            transaction.set_rollback(True)


def test_nothing_is_at_the_addresses_that_scanners_try(here: World) -> None:
    nobody, somebody = Client(), as_(here.people["member"])
    for path in (
        "/admin/",
        "/metrics",
        "/debug",
        "/__debug__/",
        "/flower/",
        "/.git/config",
        "/.env",
        "/server-status",
        "/api/v1/users/",
        "/swagger.json",
        "/static/../portal/settings.py",
        "/actuator/env",
    ):
        assert nobody.get(path).status_code in (302, 404), path
        assert somebody.get(path).status_code == 404, path
    assert nobody.get("/", headers={"Host": "evil.example"}).status_code == 400
    forged = {
        "X-Remote-User": "priya",
        "X-Forwarded-User": "priya",
        "Remote-User": "priya",
        "X-Forwarded-Host": "evil.example",
        "X-Original-URL": "/audit/",
        "X-MS-CLIENT-PRINCIPAL-ID": str(here.people["platform_lead"].oid),
    }
    answer = nobody.get("/audit/", headers=forged)
    assert (answer.status_code, answer["Location"].partition("?")[0]) == (
        302,
        "/sign-in",
    )
    assert nobody.get("/api/v1/me/", headers=forged).status_code == 401
    assert "evil.example" not in text_of(somebody.get("/", headers=forged))
    assert Request.objects.count() == 4
