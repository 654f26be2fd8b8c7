"""Ten thousand runs: a list of them costs six queries, reads about a page of rows, and is small enough to send."""

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from insights.failed_runs.gathering import DAYS, failed_runs
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from workloads.models import Run
from workloads.runs.planning.plan import Submission

pytestmark = pytest.mark.slow

RUNS, TEAMS, PAGE = 10_000, 8, 50
MOST_QUERIES, MOST_QUERIES_OF_A_PAGE, MOST_COMPRESSED = 6, 12, 60_000
# Rows that are read for a page of fifty: those of other teams and states lie between them.
MOST_READ = 10 * PAGE
RARE = 400
SCRIPT = "import torch  # and what people paste\n" * 100
ASKED = Submission(
    template="single-node",
    title="Fine-tune BERT",
    values={
        "image": "registry.example.com/vision/train:1",
        "program": ("train.py",),
        "gpus": 2,
    },
    script={"file": "train.py", "text": SCRIPT},
).as_json()


@dataclass(frozen=True)
class Crowd:
    """Who looks: a member of two of the teams, and an auditor, who sees all of them."""

    ada: User
    nora: User
    tenancies: list[Tenancy]


@pytest.fixture
def crowd(db: None) -> Crowd:
    """The runs of eight teams in turns, the newest last; one in twenty failed, and some still wait or run."""
    ada, nora = (
        factories.person("Ada Okafor"),
        factories.person("Nora Lind", Role.AUDITOR),
    )
    cluster = factories.cluster("training")
    teams = [
        factories.team(f"Team of many {number}", by=ada) for number in range(TEAMS)
    ]
    for team in teams[:2]:
        factories.join(team, ada)
    tenancies = [factories.tenancy(team, cluster) for team in teams]
    Run.objects.bulk_create(
        (row(number, tenancies, ada) for number in range(RUNS)), batch_size=500
    )
    with connection.cursor() as cursor:
        # What autovacuum does by and by: the planner knows how many rows there are.
        cursor.execute("ANALYZE workloads_run")
    return Crowd(ada, nora, tenancies)


def row(number: int, tenancies: list[Tenancy], ada: User) -> Run:
    """The run with this number."""
    tenancy, at = (
        tenancies[number % TEAMS],
        timezone.now() - timedelta(minutes=RUNS - number),
    )
    is_live = number >= RUNS - RARE and number % 10 == 0
    state = "waiting" if is_live else "failed" if number % 21 == 0 else "finished"
    name = f"run-{number:05}"
    labels = {"metadata": {"name": name, "namespace": tenancy.namespace}}
    return Run(
        team=tenancy.team,
        tenancy=tenancy,
        requester=ada if number % 3 == 0 else tenancy.team.created_by,
        template="single-node",
        title=f"Fine-tune BERT {number}",
        name=name,
        submission=ASKED,
        manifests=[
            {"apiVersion": "batch/v1", "kind": "Job", **labels, "spec": {}},
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                **labels,
                "data": {"train.py": SCRIPT},
            },
        ],
        gpus=2,
        usd_per_hour=Decimal("7.34"),
        limit_seconds=3_600,
        state=state,
        created_at=at,
        requeue_at=at,
        sent_at=at,
        started_at=None if is_live else at,
        ended_at=None if is_live else at + timedelta(minutes=30),
        ran_seconds=0 if is_live else 1_800,
    )


def late(following: str, before: Run) -> str:
    """The address of the page behind a run: a `next` link with its row replaced, which spares a hundred calls."""
    parts = urlsplit(following)
    asked = dict(parse_qsl(parts.query))
    field, backward, _, _ = json.loads(base64.urlsafe_b64decode(asked["cursor"]))
    place = json.dumps([field, backward, str(before.pk), before.pk])
    return f"{parts.path}?{urlencode(asked | {'cursor': base64.urlsafe_b64encode(place.encode()).decode()})}"


def lists_in(seen: CaptureQueriesContext) -> list[str]:
    """The queries that list runs."""
    return [
        one["sql"]
        for one in seen.captured_queries
        if 'FROM "workloads_run"' in one["sql"] and "ORDER BY" in one["sql"]
    ]


def plan_of(sql: str) -> list[dict[str, Any]]:
    """Every step of what PostgreSQL really does for a query."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        [[found]] = cursor.fetchall()
    return list(steps_of(found[0]["Plan"]))


def steps_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A step and those below it."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from steps_of(below)


def rows_read(plan: list[dict[str, Any]]) -> int:
    """Runs that were looked at, also those that were then left out."""
    removed = "Rows Removed by Filter"
    return sum(
        round((one["Actual Rows"] + one.get(removed, 0)) * one["Actual Loops"])
        for one in plan
        if one.get("Relation Name") == "workloads_run"
    )


def listed(caller: Caller, path: str) -> dict[str, Any]:
    """A page of the API's list, which took at most six queries, read about a page of rows and no script."""
    with CaptureQueriesContext(connection) as seen:
        answer = caller.get(path)
    assert answer.status_code == 200, answer.content
    assert len(seen) <= MOST_QUERIES, [one["sql"] for one in seen.captured_queries]
    [sql] = lists_in(seen)
    assert "manifests" not in sql
    assert "submission" not in sql
    plan = plan_of(sql)
    assert rows_read(plan) <= MOST_READ, (path, plan)
    assert len(gzip.compress(answer.content)) <= MOST_COMPRESSED
    found: dict[str, Any] = answer.json()
    return found


def test_the_first_page_and_the_last_one_cost_the_same_and_are_read_in_order(
    crowd: Crowd,
) -> None:
    for who, rows in (
        (
            crowd.ada,
            Run.objects.filter(team__in=[one.team_id for one in crowd.tenancies[:2]]),
        ),
        (crowd.nora, Run.objects.all()),
    ):
        caller, ordered = (
            Caller(who),
            list(rows.order_by("-pk").values_list("pk", flat=True)),
        )
        first = listed(caller, f"runs/?limit={PAGE}")
        assert [one["id"] for one in first["results"]] == ordered[:PAGE]
        last = listed(
            caller, late(first["next"], Run.objects.get(pk=ordered[-PAGE - 1]))
        )
        assert [one["id"] for one in last["results"]] == ordered[-PAGE:]
        assert last["next"] is None
        back = listed(
            caller, late(last["previous"], Run.objects.get(pk=ordered[-PAGE]))
        )
        assert [one["id"] for one in back["results"]] == ordered[-2 * PAGE : -PAGE]


FILTERS: dict[str, dict[str, Any]] = {
    "state=failed": {"state": "failed"},
    "state=waiting": {"state": "waiting"},
    "state=gone": {"state": "gone"},
    "live=true": {"ended_at": None},
    "live=false": {"ended_at__isnull": False},
    "template=single-node": {"template": "single-node"},
    "name=run-00003": {"name": "run-00003"},
    "name=nobody": {"name": "nobody"},
    "team=team-of-many-1": {"team__slug": "team-of-many-1"},
    "team=team-of-many-1&state=failed": {
        "team__slug": "team-of-many-1",
        "state": "failed",
    },
}


def test_what_is_filtered_costs_no_more_than_all_of_it(crowd: Crowd) -> None:
    caller = Caller(crowd.nora)
    for query, wanted in FILTERS.items():
        found = listed(caller, f"runs/?limit={PAGE}&{query}")
        rows = Run.objects.filter(**wanted).order_by("-pk")[:PAGE]
        assert [one["id"] for one in found["results"]] == [one.pk for one in rows], (
            query
        )
    mine = listed(Caller(crowd.ada), f"runs/?limit={PAGE}&mine=true")
    assert {one["requester"]["name"] for one in mine["results"]} == {"Ada Okafor"}


def test_a_teams_runs_are_read_in_order_whatever_the_planner_knows_of_teams(
    crowd: Crowd,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute(
            "UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relname = 'accounts_team'"
        )
    listed(Caller(crowd.nora), f"runs/?limit={PAGE}&team=team-of-many-1")


def test_the_page_costs_the_same_first_and_last_and_is_small(crowd: Crowd) -> None:
    browser, team = Client(), crowd.tenancies[0].team
    browser.force_login(crowd.ada)
    oldest = Run.objects.filter(team=team).order_by("pk")[PAGE].pk
    taken = []
    for query in ("", f"?before={oldest}"):
        with CaptureQueriesContext(connection) as seen:
            answer = browser.get(f"/teams/{team.slug}/runs{query}")
        assert answer.status_code == 200
        assert answer.content.count(b"Fine-tune BERT") == PAGE
        assert len(gzip.compress(answer.content)) <= MOST_COMPRESSED
        [sql] = lists_in(seen)
        assert "manifests" not in sql
        assert "submission" not in sql
        assert rows_read(plan_of(sql)) <= MOST_READ
        taken.append(len(seen))
    assert taken[0] == taken[1] <= MOST_QUERIES_OF_A_PAGE


def test_why_runs_failed_lately_is_told_without_reading_those_that_ended_before(
    crowd: Crowd,
) -> None:
    at = timezone.now() + timedelta(days=DAYS) - timedelta(hours=10)
    lately = Run.objects.filter(ended_at__gt=at - timedelta(days=DAYS)).count()
    with CaptureQueriesContext(connection) as seen:
        found = failed_runs(Run.objects.all(), now=at)
    assert 0 < found.runs < found.ended == lately < RUNS / 10
    for one in seen.captured_queries:
        assert rows_read(plan_of(one["sql"])) <= lately, one["sql"]
