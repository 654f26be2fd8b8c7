"""Asking over the API: what is taken, what is refused, what is answered."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Idempotency
from allocations.models import LedgerEntry
from approvals.models import Request
from approvals.request_form.offers import Offers
from audit.models import Event
from tests import factories
from tests.calling import Caller
from tests.world import World, world

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> World:
    """Two teams and everybody."""
    return world()


@pytest.fixture
def ada(here: World) -> Caller:
    """A member of the own team."""
    return Caller(here.people["member"])


def ask(here: World, **changed: Any) -> dict[str, Any]:
    """A small ask."""
    until = (timezone.now() + timedelta(days=2)).isoformat()
    usual = {
        "team": "vision",
        "flavor": "training-eastus/a100",
        "gpus": 1,
        "until": until,
        "purpose": "training",
    }
    return usual | changed


def test_a_small_ask_is_stored_and_approved_at_once(here: World, ada: Caller) -> None:
    answer = ada.post("requests/", ask(here))
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["state"], body["stage"], body["approved_count"]) == (
        "approved",
        "setting_up",
        1,
    )
    assert answer["Location"] == f"/api/v1/requests/{body['id']}/"
    assert body["decisions"][0]["by"] is None
    assert body["evaluations"][0]["answer"]["outcome"] == "automatic"
    assert body["allocation"]["gpus"] == 1
    assert body["tenancy"]["ready"]["type"] == "Ready"
    assert ada.get(answer["Location"]).json()["id"] == body["id"]


def test_a_larger_ask_waits_for_people_and_needs_a_reason(
    here: World, ada: Caller
) -> None:
    refused = ada.post("requests/", ask(here, gpus=5))
    assert refused.status_code == 422
    assert refused.json()["errors"] == [
        {
            "pointer": "/reason",
            "code": "reason_needed",
            "detail": "A person decides this. Say in a sentence what it is for.",
        }
    ]
    answer = ada.post(
        "requests/", ask(here, gpus=5, reason="Train the new detector on all of it.")
    )
    assert answer.status_code == 201
    assert answer.json()["state"] == "waiting"
    # With what the team has got and waits for it is large.
    assert [step["seat"] for step in answer.json()["steps"]] == [
        "platform_leads",
        "engineering_leadership",
    ]


BAD = {
    "gpus": [0, -1, 1.5, "1", "8 ", "８", True, None, [1], {}, 2**63, 100_001],
    "until": [
        "2026-12-01",
        "2030-01-01T00:00:00",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
        "soon",
        17,
        None,
        "2026-13-01T00:00:00Z",
        "2026-12-01T25:00:00Z",
        "2020-01-01T00:00:00Z",
        "1999-12-31T23:59:59Z",
    ],
    "purpose": ["training ", "TRAINING", 1, None, "mining"],
    "flavor": [
        "a100",
        "/a100",
        "training-eastus/",
        "nowhere/a100",
        "training-eastus/none",
        7,
    ],
    "reason": ["x" * 2001, "a\x00b", 5, "\ud800"],
}


@pytest.mark.slow
@pytest.mark.parametrize("field", BAD)
def test_what_does_not_fit_is_refused_at_its_field(
    here: World, ada: Caller, field: str
) -> None:
    for value in BAD[field]:
        before = (
            Request.objects.count(),
            LedgerEntry.objects.count(),
            Event.objects.count(),
        )
        answer = ada.post("requests/", ask(here, **{field: value}))
        assert answer.status_code == 422, (value, answer.content)
        assert [error["pointer"] for error in answer.json()["errors"]] == [
            f"/{field}"
        ], value
        assert (Request.objects.count(), LedgerEntry.objects.count()) == before[:2]
        assert Event.objects.count() == before[2]


BODIES = [
    "[]",
    "1",
    '"a"',
    "{",
    "null",
    "[" * 100_000,
    '{"gpus":' * 30 + "1" + "}" * 30,
    '{"gpus": NaN}',
    '{"gpus": Infinity}',
    '{"gpus": -Infinity}',
    b"\xff\xfe",
    '{"gpus": ' + "9" * 5000 + "}",
]


def test_what_is_not_a_json_object_of_a_bearable_size_is_400(ada: Caller) -> None:
    for raw in BODIES:
        answer = ada.post("requests/", raw)
        assert (answer.status_code, answer.json()["code"]) == (400, "parse_error"), raw[
            :50
        ]
        assert answer["Content-Type"] == "application/problem+json"


def test_a_body_over_the_limit_is_413(ada: Caller) -> None:
    answer = ada.post("requests/", '{"a": "' + "x" * 600_000 + '"}')
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_a_number_beyond_every_float_is_refused(here: World, ada: Caller) -> None:
    assert ada.post("requests/", '{"team": "vision", "gpus": 1e309}').status_code == 422


def test_other_media_types_are_refused(here: World, ada: Caller) -> None:
    for media_type in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/xml",
        "",
    ):
        answer = ada.client.post(
            "/api/v1/requests/",
            "{}",
            content_type=media_type,
            headers=ada.headers | {"Idempotency-Key": "k"},
        )
        assert (answer.status_code, answer.json()["code"]) == (
            415,
            "unsupported_media_type",
        ), media_type


def test_fields_that_are_not_for_the_caller_are_refused_by_name(
    here: World, ada: Caller
) -> None:
    fields = (
        "state",
        "usd",
        "requester",
        "approved_by",
        "auto_approved",
        "policy_version",
        "id",
        "created_at",
    )
    answer = ada.post("requests/", ask(here, **dict.fromkeys(fields, 1)))
    assert answer.status_code == 422
    said = {(error["pointer"], error["code"]) for error in answer.json()["errors"]}
    assert said == {(f"/{field}", "unknown_field") for field in fields}


def test_asking_for_another_team_is_like_asking_for_none(
    here: World, ada: Caller
) -> None:
    theirs = ada.post("requests/", ask(here, team="speech"))
    nobodys = ada.post("requests/", ask(here, team="nobody"))
    assert theirs.status_code == nobodys.status_code == 404
    assert Request.objects.filter(requester=here.people["member"]).count() == 0


def test_who_sees_every_team_still_cannot_ask_for_it(here: World) -> None:
    answer = Caller(here.people["auditor"]).post("requests/", ask(here))
    assert (answer.status_code, answer.json()["code"]) == (403, "not_of_the_team")


def test_the_preview_says_what_would_be_stored_and_stores_nothing(
    here: World, ada: Caller
) -> None:
    wanted = ask(here, gpus=5, reason="Train the new detector on all of it.")
    before = Request.objects.count(), Event.objects.count(), Idempotency.objects.count()
    seen = ada.post("requests/preview/", wanted, key=None)
    assert seen.status_code == 200
    assert (
        Request.objects.count(),
        Event.objects.count(),
        Idempotency.objects.count(),
    ) == before
    preview = seen.json()
    assert preview["answer"]["route"] == ["platform_leads", "engineering_leadership"]
    assert preview["nearest_automatic"]["count"] == 2
    assert preview["quota"] == {"before": 1, "after": 6}
    assert float(preview["usd_per_day"]["after"]) > float(
        preview["usd_per_day"]["before"]
    )
    assert {
        "month",
        "limit_usd",
        "left_before",
        "left_after",
        "gpu_hours_limit",
        "gpu_hours_left_before",
        "gpu_hours_left_after",
    } == set(preview["budget"][0])
    stored = ada.post("requests/", wanted).json()["evaluations"][0]["answer"]
    same = ("outcome", "sentence", "route")
    assert {key: stored[key] for key in same} == {
        key: preview["answer"][key] for key in same
    }


def test_the_preview_shows_what_is_impossible_as_an_answer(
    here: World, ada: Caller
) -> None:
    seen = ada.post("requests/preview/", ask(here, gpus=500), key=None)
    assert seen.status_code == 200
    assert seen.json()["answer"]["outcome"] == "impossible"
    assert (
        ada.post("requests/", ask(here, gpus=500)).json()["code"] == "impossible_exists"
    )


def test_a_request_one_has_already_is_not_sent_again(here: World, ada: Caller) -> None:
    path = f"requests/{here.own.waiting.pk}/"
    first = ada.get(path)
    again = ada.get(path, **{"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (
        304,
        b"",
        first["ETag"],
    )
    assert not first["ETag"].startswith("W/")
    Caller(here.own.asker).post(f"{path}withdraw/")
    assert ada.get(path, **{"If-None-Match": first["ETag"]}).status_code == 200


def test_only_who_asked_withdraws_and_only_once(here: World, ada: Caller) -> None:
    path = f"requests/{here.own.waiting.pk}/withdraw/"
    assert ada.post(path).json()["code"] == "not_the_requester"
    asker = Caller(here.own.asker)
    withdrawn = asker.post(path).json()
    assert (withdrawn["state"], withdrawn["withdrawn_because"]) == ("withdrawn", "")
    assert asker.post(path).status_code == 409


def test_it_says_why_a_colleague_withdrew_it(here: World, ada: Caller) -> None:
    here.own.asker.memberships.all().delete()
    ben = factories.person("Ben Ruiz", teams=[here.own.team])
    told = Caller(ben).post(f"requests/{here.own.waiting.pk}/withdraw/").json()
    assert told["withdrawn_because"] == (
        f"Ben Ruiz withdrew it: {here.own.asker.name} is no longer of {here.own.team.name}."
    )


def test_lists_are_filtered_and_ordered_as_asked(here: World, ada: Caller) -> None:
    def ids(query: str) -> list[int]:
        answer = ada.get(f"requests/?{query}")
        assert answer.status_code == 200, answer.content
        return [row["id"] for row in answer.json()["results"]]

    granted, waiting = here.own.granted.pk, here.own.waiting.pk
    assert ids("") == [waiting, granted]
    assert ids("ordering=created_at") == [granted, waiting]
    assert ids("state=waiting") == [waiting]
    assert ids("live=true") == [waiting, granted]
    assert ids("live=false") == ids("live=false&state=waiting") == []
    assert ids("team=vision&q=DETECTOR") == [waiting, granted]
    assert ids("team=speech") == ids("q=nothing+like+it") == []
    assert (
        ids("offering=gpus")
        == ids(f"requester={here.own.asker.oid}")
        == [waiting, granted]
    )
    assert ids("offering=volume") == ids(f"requester={here.other.asker.oid}") == []
    assert ids("updated_since=2099-01-01T00:00:00Z") == []
    assert ids("updated_since=2000-01-01T00:00:00%2B01:00") == [waiting, granted]


def test_what_has_ended_and_what_was_withdrawn_is_listed_as_over(
    here: World, ada: Caller
) -> None:
    asker, granted, waiting = Caller(here.own.asker), here.own.granted, here.own.waiting

    def ids(query: str) -> list[int]:
        return [row["id"] for row in ada.get(f"requests/?{query}").json()["results"]]

    asker.post(f"requests/{waiting.pk}/withdraw/")
    assert (ids("live=true"), ids("live=false")) == ([granted.pk], [waiting.pk])
    held = granted.allocation_id
    assert ada.post(f"allocations/{held}/give-back/", {}).status_code == 200
    assert (ids("live=true"), ids("live=false")) == ([], [waiting.pk, granted.pk])


BAD_QUERIES = [
    "live=maybe",
    "ordering=team__budget__limit",
    "requester__password__startswith=a",
    "state=running",
    "limit=0",
    "limit=101",
    "limit=-1",
    "limit=1e3",
    "limit=８",
    "limit=%20" + "8",
    "limit=true",
    "limit=",
    "limit=5&limit=6",
    "cursor=x",
    "cursor=W10=",
    "cursor=%00",
    "updated_since=2026-01-01T00:00:00",
    "updated_since=9999-12-31T23:59:59Z",
    "page_size=1000000000",
    "offset=1000000000",
    "format=xml",
    "q=a%00b",
    "team=" + "x" * 41,
    "token=qm_1",
    "offering=gpu",
    "requester=ada",
    "cursor=WyItY3JlYXRlZF9hdCIsZmFsc2UsIjIwMjYtMDEtMDFUMDA6MDA6MDAiLDFd",
]


def test_parameters_that_do_not_fit_are_400(ada: Caller) -> None:
    for query in BAD_QUERIES:
        answer = ada.get(f"requests/?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_query"), query
        assert answer.json()["errors"][0]["pointer"] == "/" + query.partition("=")[0]


def test_the_options_say_what_can_be_asked_for(here: World, ada: Caller) -> None:
    rows = ada.get("options/flavors/?team=vision").json()["results"]
    assert [(row["value"], row["disabled"]) for row in rows] == [
        ("training-eastus/a100", False)
    ]
    here.flavor.is_offered = False
    here.flavor.save()
    row = ada.get("options/flavors/?team=vision").json()["results"][0]
    assert row["disabled"]
    assert row["reason"] == "This kind of GPU is not offered now."
    assert ada.get("options/flavors/?team=speech").status_code == 404
    assert ada.get("options/flavors/").status_code == 400


def test_the_options_never_name_gpus_of_another_team(here: World, ada: Caller) -> None:
    own, theirs = (
        factories.flavor(here.cluster, "own"),
        factories.flavor(here.cluster, "theirs"),
    )
    for flavor, team in ((own, here.own.team), (theirs, here.other.team)):
        flavor.dedicated_to = team
        flavor.save()
    expected = {"training-eastus/a100", "training-eastus/own"}
    page = Client()
    page.force_login(here.people["member"])
    found = [
        {
            row["value"]
            for row in ada.get("options/flavors/?team=vision").json()["results"]
        },
        {
            row["value"]
            for row in ada.get("offerings/gpus/options/?team=vision").json()["choices"][
                "flavor"
            ]
        },
        {flavor.key for flavor in Offers.of(here.people["member"]).flavors},
    ]
    assert found == [expected] * 3


def test_the_policy_in_force_is_told(ada: Caller) -> None:
    policy = ada.get("policy/").json()
    assert policy["number"] == 1
    assert policy["document"]["thresholds"]["automatic_gpus"] == 2
    assert datetime.fromisoformat(policy["active_from"]) < datetime.now(UTC)
