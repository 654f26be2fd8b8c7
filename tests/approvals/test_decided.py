"""Every verdict in a list and in a file: who was given what, by whom and why."""

import csv
import io
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.roles import Role
from approvals.conversation.actions import edit
from approvals.decisions import actions as decisions
from approvals.models import Decision, Request
from approvals.requests.wanted import Wanted
from tests import factories
from tests.approvals.test_statistics import decided
from tests.calling import Caller
from tests.scene import Scene
from web import downloads

pytestmark = pytest.mark.django_db


@pytest.fixture
def auditor() -> Any:
    """Somebody who sees every team and changes nothing."""
    return factories.person("Olga Ruiz", Role.AUDITOR)


def listed(who: Any, **narrowed: str) -> list[dict[str, Any]]:
    """The verdicts that somebody reads over the API."""
    answer = Caller(who).get(f"decisions/?{urlencode(narrowed)}")
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_one_line_says_who_gave_whom_what_and_why(scene: Scene, auditor: Any) -> None:
    asked = decided(scene, hours=2)
    [line] = listed(auditor)
    assert line["by"]["name"] == scene.priya.name
    assert line["seat"] == "platform_leads"
    assert line["verdict"] == "approve"
    assert (line["count"], line["request"]["count"]) == (2, 3)
    assert line["counts"] is True
    judged = asked.evaluations.last()
    assert judged is not None
    assert line["policy"] == judged.policy.number
    about = line["request"]
    assert about["id"] == asked.pk
    assert about["name"] == asked.whole_name
    assert about["requester"]["name"] == scene.ada.name
    assert about["team"]["slug"] == scene.tenancy.team.slug
    assert about["reason"] == asked.reason
    assert about["state"] == "approved"


def test_what_the_policy_gave_has_nobody_and_the_policys_number(
    scene: Scene, auditor: Any
) -> None:
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=1)
    decided(scene, hours=2, verdict="reject")
    rejected, automatic = listed(auditor)
    assert automatic["by"] is None
    assert automatic["policy"] == asked.evaluations.get().policy.number
    assert (rejected["reason"], rejected["reason_code"]) == ("Full.", "capacity")
    assert listed(auditor, automatic="true") == [automatic]
    assert listed(auditor, automatic="false") == [rejected]
    assert listed(auditor, verdict="reject") == [rejected]
    assert listed(auditor, by=str(scene.priya.oid)) == [rejected]
    assert listed(auditor, requester=str(scene.priya.oid)) == []
    assert listed(auditor, team="nobody") == []


def test_it_is_narrowed_to_a_time(scene: Scene, auditor: Any) -> None:
    decided(scene, hours=2)
    at = Decision.objects.get().at
    later = (at + timedelta(seconds=1)).isoformat()
    assert len(listed(auditor, since=at.isoformat(), before=later)) == 1
    assert listed(auditor, before=at.isoformat()) == []
    assert listed(auditor, since=later) == []


def test_a_vote_on_an_earlier_version_does_not_count(
    scene: Scene, auditor: Any
) -> None:
    now = timezone.now()
    asked = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=3, days=2)
    decisions.ask_back(
        asked.pk,
        by=scene.priya,
        expected_version=asked.version,
        question="Why not one?",
        now=now,
    )
    asked.refresh_from_db()
    edit(
        asked.pk,
        Wanted.of_gpus(
            tenancy=scene.tenancy,
            flavor=scene.flavor,
            gpus=4,
            until=asked.until,
            purpose=asked.purpose,
            reason=asked.reason,
        ),
        by=scene.ada,
        expected_version=asked.version,
        now=now,
    )
    [line] = listed(auditor)
    assert (line["verdict"], line["counts"]) == ("ask", False)


def test_only_verdicts_of_ones_own_teams_are_listed(scene: Scene) -> None:
    decided(scene, hours=2)
    assert len(listed(scene.ada)) == 1
    stranger = factories.person("Mallory")
    assert listed(stranger) == []
    client = Client()
    client.force_login(stranger)
    assert len(lines_of(client)) == 0


def test_many_lines_cost_as_many_queries_as_few(scene: Scene, auditor: Any) -> None:
    caller = Caller(auditor)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            assert caller.get("decisions/").status_code == 200
        return len(seen)

    decided(scene, hours=2, verdict="reject")
    queries()
    few = queries()
    for _ in range(3):
        decided(scene, hours=2, verdict="reject")
    assert queries() == few


def test_the_file_has_a_line_for_each_that_no_spreadsheet_runs(
    scene: Scene, auditor: Any
) -> None:
    decided(scene, hours=2)
    Request.objects.update(reason='=HYPERLINK("http://evil")')
    decided(scene, hours=2, verdict="reject")
    client = Client()
    client.force_login(auditor)
    [rejected, approved] = lines_of(client)
    assert approved["decided_by"] == scene.priya.name
    assert (approved["count"], approved["asked_count"]) == ("2", "3")
    assert approved["why_asked"].startswith("'=HYPERLINK")
    assert (rejected["why_decided"], rejected["count"]) == ("Full.", "")


def test_a_long_file_comes_in_pieces_and_somebody_takes_few_a_minute(
    scene: Scene, auditor: Any, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(downloads, "BATCH", 2)
    asked = [decided(scene, hours=2, verdict="reject").pk for _ in range(5)]
    client = Client()
    client.force_login(auditor)
    assert [int(line["request"]) for line in lines_of(client)] == asked[::-1]
    settings.RATES = settings.RATES | {"export": "1/h"}
    cache.clear()
    lines_of(client)
    assert client.get("/approvals/decisions.csv").status_code == 429


@pytest.mark.parametrize("days", ["", "0", "8", "-1", "x", "９０"])
def test_a_span_that_nobody_offers_is_thirty_days(
    scene: Scene, auditor: Any, days: str
) -> None:
    client = Client()
    client.force_login(auditor)
    kept = client.get("/approvals/decisions.csv", {"days": days})
    assert "decisions-30-days-to-" in kept["Content-Disposition"]


def test_the_audit_log_and_the_statistics_lead_to_the_file(
    scene: Scene, auditor: Any
) -> None:
    client = Client()
    client.force_login(auditor)
    for page, days in (("/audit/", 365), ("/approvals/statistics?days=90", 90)):
        link = f"/approvals/decisions.csv?days={days}"
        assert link in client.get(page).content.decode()
        assert client.get(link).status_code == 200


def lines_of(client: Client) -> list[dict[str, str]]:
    """The lines of the file by the names of their columns."""
    kept = client.get("/approvals/decisions.csv")
    assert kept.status_code == 200
    body = b"".join(kept.streaming_content)  # type: ignore[attr-defined]
    return list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"))))
