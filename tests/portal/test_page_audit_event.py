"""An event's page and its file: what happened in people's words, for whom it is, and what a spreadsheet makes of it."""

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test import AsyncClient, Client
from pytest_django import Settings

from accounts.roles import Role
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record, refuse
from audit.models import Event, RefusalCount
from portal.pages.audit_words import (
    Changed,
    changes,
    in_one_line,
    in_words,
    label,
    others,
)
from tests import factories
from tests.calling import Caller
from web import downloads
from web.spreadsheets import safe_cell

pytestmark = pytest.mark.django_db
EVIL = '=HYPERLINK("https://example.com";"Look")'


def happen(kind: Kind, **fields: object) -> Event:
    with transaction.atomic():
        return record(kind, actor=fields.pop("actor", PORTAL), **fields)  # type: ignore[arg-type]


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
def auditor(client: Client) -> Client:
    client.force_login(factories.person("Sam", Role.AUDITOR))
    return client


def lines(answer: object) -> list[dict[str, str]]:
    body = b"".join(answer.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    return list(csv.DictReader(io.StringIO(body)))


def test_a_page_says_what_changed_who_did_it_and_where_it_leads(
    auditor: Client,
) -> None:
    vision = factories.team("Vision")
    event = happen(
        Kind.TEAM_CHANGED,
        actor=factories.person("Ada Okafor").as_actor(),
        subject=("team", vision.pk),
        team_id=vision.pk,
        name="Vision",
        before={"cost_centre": "CC-1"},
        after={"cost_centre": "CC-2"},
    )
    page = text(auditor, f"/audit/{event.seq}/")
    assert "Team changed" in page
    assert '<del dir="auto">CC-1</del>' in page
    assert '<ins dir="auto">CC-2</ins>' in page
    assert 'href="/teams/vision/"' in page
    assert event.actor_id in page
    assert event.hash in page
    assert event.previous in page
    assert "Its hash is that of what it holds" in page


def test_events_of_other_teams_look_like_missing_ones(client: Client) -> None:
    vision, speech = factories.team("Vision"), factories.team("Speech")
    own, other = (happen(Kind.TIER_SET, team_id=team.pk) for team in (vision, speech))
    nobodys = happen(Kind.CLUSTER_UNREACHABLE)
    ada = factories.person("Ada", teams=[vision])
    client.force_login(ada)
    assert client.get(f"/audit/{own.seq}/").status_code == 200
    caller = Caller(ada)
    assert caller.get(f"events/{own.seq}/").json()["hash"] == own.hash
    for number in (other.seq, nobodys.seq, 10**6, 10**30):
        assert client.get(f"/audit/{number}/").status_code == 404
        answer = caller.get(f"events/{number}/")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    page = text(client, f"/audit/{own.seq}/")
    assert f'href="/audit/{other.seq}/"' not in page


def test_an_event_that_was_rewritten_says_so_on_its_page(auditor: Client) -> None:
    first, second, third = (
        happen(Kind.BUDGET_SET, number=number) for number in range(3)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "SET session_replication_role = replica"
        )  # past the trigger, as a superuser could
        cursor.execute(
            "UPDATE audit_event SET actor_name = 'Somebody else' WHERE seq = %s",
            [second.seq],
        )
        cursor.execute("DELETE FROM audit_event WHERE seq = %s", [first.seq])
        cursor.execute("SET session_replication_role = DEFAULT")
    assert f"Event {second.seq} was changed after it was written" in text(
        auditor, f"/audit/{second.seq}/"
    )
    assert "Its hash is that of what it holds" in text(auditor, f"/audit/{third.seq}/")


def test_a_refusal_says_at_which_address_and_with_which_answer(auditor: Client) -> None:
    refuse(
        actor=Actor("person", "1", "Mallory"),
        reason="Not yours.",
        where="teams/<slug:slug>/tier",
        method="POST",
        status=403,
        code="not_a_platform_lead",
    )
    page = text(auditor, f"/audit/{Event.objects.get(kind=Kind.REFUSED).seq}/")
    assert "POST /teams/&lt;slug:slug&gt;/tier" in page
    assert "403 not_a_platform_lead" in page
    assert "Not yours." in page


@pytest.mark.slow
def test_every_page_that_an_event_leads_to_is_there(auditor: Client) -> None:
    cluster = factories.cluster("training-eastus")
    flavor = factories.flavor(cluster, "a100")
    vision = factories.team("Vision")
    abouts = [
        ("cluster", cluster.pk),
        ("flavor", flavor.pk),
        ("tenancy", 1),
        ("policy", 1),
    ]
    for about in [
        *abouts,
        ("channel", 999),
        ("policy_draft", 999),
        ("task", 999),
        ("departure", 999),
        ("token", "ff"),
    ]:
        event = happen(Kind.TIER_SET, subject=about, team_id=vision.pk)
        page = auditor.get(f"/audit/{event.seq}/")
        facts = {fact["label"]: fact for fact in page.context["facts"]}
        href = facts["About"]["href"]
        assert bool(href) == (about in abouts)
        assert not href or auditor.get(href).status_code == 200


def test_the_file_holds_what_the_filters_leave_and_is_an_event(
    auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "BATCH", 2)
    vision = factories.team("Vision")
    wanted = [happen(Kind.TIER_SET, team_id=vision.pk, name=EVIL) for _ in range(5)]
    happen(Kind.CLUSTER_UNREACHABLE)
    answer = auditor.post("/audit/export", {"kind": "team.tier_set", "team": "vision"})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith('attachment; filename="audit-')
    rows = lines(answer)
    assert [row["event"] for row in rows] == [
        str(event.seq) for event in reversed(wanted)
    ]
    assert (rows[0]["team"], rows[0]["hash"]) == ("Vision", wanted[-1].hash)
    assert json.loads(rows[0]["details"]) == {"name": EVIL}
    told = Event.objects.get(kind=Kind.AUDIT_EXPORTED)
    assert (told.actor_name, told.team_id) == ("Sam", vision.pk)
    assert told.details == {
        "events": 5,
        "narrowed": {"kind": "team.tier_set", "team": "vision"},
    }


def test_a_member_takes_along_the_events_of_their_teams_alone(client: Client) -> None:
    vision, speech = factories.team("Vision"), factories.team("Speech")
    own, _ = (happen(Kind.TIER_SET, team_id=team.pk) for team in (vision, speech))
    client.force_login(factories.person("Ada", teams=[vision]))
    assert [row["event"] for row in lines(client.post("/audit/export"))] == [
        str(own.seq)
    ]
    assert client.post("/audit/export", {"team": "speech"}).status_code == 422
    assert Event.objects.filter(kind=Kind.AUDIT_EXPORTED).count() == 1
    assert RefusalCount.objects.get().status == 422


def test_what_is_written_while_the_file_is_sent_is_not_in_it(auditor: Client) -> None:
    happen(Kind.TIER_SET)
    answer = auditor.post("/audit/export")
    happen(Kind.TIER_SET)
    assert len(lines(answer)) == 1


def test_a_name_that_is_a_formula_is_text_in_a_spreadsheet(auditor: Client) -> None:
    happen(Kind.TIER_SET, actor=Actor("person", "1", EVIL))
    assert lines(auditor.post("/audit/export"))[0]["who"] == f"'{EVIL}"


@pytest.mark.parametrize(
    "value",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "＝1", "|calc"],
)
def test_what_a_spreadsheet_would_run_begins_with_an_apostrophe(value: str) -> None:
    assert safe_cell(value) == f"'{value}"


@pytest.mark.parametrize("value", ["Ada", "2 × A100", "", 7, "a=b", "{}"])
def test_other_cells_stay_as_they_are(value: object) -> None:
    assert safe_cell(value) == str(value)


def test_files_have_a_rate_of_their_own(auditor: Client, settings: Settings) -> None:
    settings.RATES = settings.RATES | {"export": "2/h"}
    statuses = [auditor.post("/audit/export").status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert Event.objects.filter(kind=Kind.AUDIT_EXPORTED).count() == 2


@pytest.mark.django_db(transaction=True)
def test_an_asynchronous_server_sends_the_file_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(downloads, "BATCH", 1)
    happen(Kind.TIER_SET)
    happen(Kind.TIER_SET)
    client = AsyncClient()
    client.force_login(factories.person("Sam", Role.AUDITOR))

    async def pieces() -> list[bytes]:
        answer: Any = await client.post("/audit/export")
        assert answer.is_async
        return [piece async for piece in answer.streaming_content]

    assert len(async_to_sync(pieces)()) == 3


def details() -> Iterator[tuple[dict[str, object], list[Changed]]]:
    yield {"before": "new", "after": "trusted"}, [Changed("Value", "new", "trusted")]
    yield {"weight": 2, "weight_before": 1}, [Changed("Weight", "1", "2")]
    yield {"before": {"name": "A"}, "after": {"name": "B"}}, [Changed("Name", "A", "B")]
    yield {"limit_usd": None, "limit_usd_before": "5"}, [Changed("Limit", "$5.00", "")]
    yield {"before": "x"}, []


@pytest.mark.parametrize(("given", "found"), list(details()))
def test_what_changed_is_found_however_it_was_written_down(
    given: dict[str, object], found: list[Changed]
) -> None:
    assert changes(given, {}) == found
    if found:
        assert others(given, {}) == []


def test_details_are_named_as_people_name_them() -> None:
    assert label("limit_usd") == "Limit"
    assert in_words("x", {"a_list": ["a", "b"], "x": True}, {}) == "a list a; b, x yes"
    [fact, odd] = others(
        {
            "until": "2026-11-28T18:00:00+00:00",
            "odd": "2026-99-99T18:00:00",
            "none": None,
            "where": "x",
        },
        {},
    )
    assert fact == {"label": "Until", "at": datetime(2026, 11, 28, 18, tzinfo=UTC)}
    assert odd["text"] == "2026-99-99T18:00:00"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20T12:00",
        "2026-11-20T12:00: it was I",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_what_only_looks_like_a_moment_stands_as_it_was_written(text: str) -> None:
    assert others({"name": text}, {}) == [{"label": "Name", "text": text}]
    assert in_one_line({"name": text}, title="", kinds={}) == f"name {text}"
    [changed] = changes({"name_before": "cron", "name": text}, {})
    assert changed.after == text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("2026-11-20T12:00", "2026-11-20T12:00"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
        ("0001-01-01T00:00:00Z", "00:00"),
        ("9999-12-31T23:59:59Z", "23:59"),
    ],
)
def test_an_event_can_be_opened_whatever_people_name_their_things(
    auditor: Client, name: str, shown: str
) -> None:
    made = Caller(factories.person("Ada")).post(
        "tokens/", {"name": name, "scope": "write", "days": 1}
    )
    assert made.status_code == 201
    event = Event.objects.get(kind=Kind.TOKEN_CREATED, details__name=name)
    assert shown in text(auditor, f"/audit/{event.seq}/")


@pytest.mark.parametrize(
    ("reason", "fields", "line"),
    [
        ("Not yours.", {"__all__": "Not yours."}, "reason Not yours."),
        ("Not yours.", {"": "Not yours."}, "reason Not yours."),
        ("Not yours.", {}, "reason Not yours."),
        ("Too many.", {"gpus": "Too many."}, "fields GPUs Too many."),
        (
            "Look again.",
            {"gpus": "Too many.", "__all__": "It is over."},
            "reason Look again. It is over., fields GPUs Too many.",
        ),
        ("Too old.", None, "reason Too old."),
    ],
)
def test_a_refusal_says_each_sentence_once(
    reason: str, fields: object, line: str
) -> None:
    refused = {"reason": reason, "fields": fields, "status": 403}
    assert in_one_line(refused, title="", kinds={}) == line
    facts = [f"{fact['label'].lower()} {fact['text']}" for fact in others(refused, {})]
    assert ", ".join(facts) == line


def test_a_line_leaves_out_what_is_nested_and_empty() -> None:
    found = {"objects": [{"kind": "ResourceQuota", "who": "", "said": "GPUs to 64"}]}
    line = in_one_line(found, title="Found a change", kinds={})
    assert line == "objects kind ResourceQuota, said GPUs to 64"


def test_a_line_says_what_changed_from_what_and_not_again_what_its_title_says() -> None:
    budget = {
        "month": "2026-11-01",
        "limit_usd_before": "12000.00",
        "limit_usd": "40000",
    }
    assert (
        in_one_line(budget, title="Set the budget", kinds={})
        == "month November 2026, limit $12,000.00 → $40,000.00"
    )
    granted = {
        "what": "2 × A100",
        "gpus": 2,
        "status": 200,
        "until": "2026-12-03T00:00:00Z",
        "reason": "",
    }
    assert (
        in_one_line(granted, title="2 × A100 given to the team", kinds={})
        == "until Thu 3 Dec 2026, 00:00 UTC"
    )
    assert in_one_line({"what": "acr"}, title="Gave access", kinds={}) == "what acr"
    assert (
        in_one_line({"owner_before": "Ada", "owner": None}, title="", kinds={})
        == "owner Ada → none"
    )


def test_money_is_told_to_the_cent() -> None:
    freed = {"freed_usd": "1231.490000000000", "gpus": "2", "price": "3.6700"}
    assert (
        in_one_line(freed, title="", kinds={}) == "freed $1,231.49, GPUs 2, price $3.67"
    )


@pytest.mark.parametrize(
    ("details", "line"),
    [
        ({"gpus": {"a100-80gb": 2}}, "GPUs 2 × A100"),
        (
            {"flavor": "a100-80gb", "seat": "platform_leads"},
            "flavor A100, seat platform leads",
        ),
        ({"flavor": "gone", "seat": None}, "flavor gone"),
        ({"roles": ["platform_lead", "auditor"]}, "roles platform lead and auditor"),
        (
            {"answer": "people", "rules_not_met": ["gpus", "gpu_hours"]},
            "answer people decide, rules not met GPUs and GPU hours",
        ),
        (
            {"usd_per_hour": "7.3400", "reference": "request-6"},
            "cost an hour $7.34, hold of request 6",
        ),
        (
            {"reference": "request-6b", "month": "soon"},
            "hold of request-6b, month soon",
        ),
        (
            {"followed_by": [{"month": "2026-12-01", "limit_usd_before": "12000.00"}]},
            "then also December 2026, limit before $12,000.00",
        ),
        (
            {"count": 2, "asked": 2, "until": "soon", "asked_until": "soon"},
            "until soon",
        ),
        ({"count": 2, "asked": 6, "usd": "a lot"}, "count 2, asked 6, cost a lot"),
    ],
)
def test_a_line_says_things_as_pages_say_them(
    details: dict[str, object], line: str
) -> None:
    assert in_one_line(details, title="", kinds={"a100-80gb": "A100"}) == line


def test_what_is_kept_stands_one_click_away_as_it_is(auditor: Client) -> None:
    kept = {"limit_usd_before": "12000.00", "limit_usd": "40000.00"}
    event = happen(Kind.BUDGET_SET, **kept)
    page = unescape(text(auditor, f"/audit/{event.seq}/"))
    assert '<ins dir="auto">$40,000.00</ins>' in page
    [block] = re.findall(r'<pre class="code"[^>]*>(.*?)</pre>', page, re.DOTALL)
    assert json.loads(block) == kept


def test_a_hub_is_called_by_the_title_of_its_cluster(auditor: Client) -> None:
    cluster = factories.cluster("training-eastus")
    happen(Kind.HUB_UNREACHABLE, subject=("hub", cluster.name))
    assert f"JupyterHub of {cluster.title}" in text(auditor, "/audit/")
