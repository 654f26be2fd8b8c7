"""Lists: every row once, in order, at the same cost however many there are and however far one has read."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals.models import Evaluation, Request
from audit.models import Event
from fleet.models import Flavor
from tests import factories
from tests.calling import Caller
from tests.world import World, world

pytestmark = pytest.mark.django_db
MOST_QUERIES = 6
LISTS = (
    "teams/",
    "teams/vision/members/",
    "teams/vision/budgets/",
    "tenancies/",
    "requests/",
    "approvals/",
    "allocations/",
    "clusters/",
    "flavors/",
    "events/",
    "tokens/",
    "options/flavors/?team=vision",
)


@pytest.fixture
def here() -> World:
    """Two teams and everybody."""
    return world()


def fill(here: World, rows: int) -> None:
    """More of everything."""
    old = Request.objects.get(pk=here.own.waiting.pk)
    now = timezone.now()
    made = Request.objects.bulk_create(
        Request(
            team=old.team,
            tenancy=old.tenancy,
            requester=here.own.asker,
            spec=old.spec,
            offering=old.offering,
            flavor=old.flavor,
            count=1,
            gpus=1,
            until=old.until,
            purpose="training",
            usd=1,
            created_at=now,
            asked_at=now,
            updated_at=now,
            lapses_at=old.lapses_at,
            hold=factories.hold(old.team),
        )
        for _ in range(rows)
    )
    # Nothing waits that the policy never answered.
    answer = Evaluation.objects.filter(request=old).latest("id")
    Evaluation.objects.bulk_create(
        Evaluation(
            request=row,
            policy=answer.policy,
            content_version=row.content_version,
            at=now,
            outcome=answer.outcome,
            answer=answer.answer,
            remedies=answer.remedies,
            inputs=answer.inputs,
            input_hash=answer.input_hash,
        )
        for row in made
    )
    for number in range(rows):
        cluster = factories.cluster()
        factories.flavor(cluster)
        team = factories.team(f"Filler {number}")
        factories.join(team, here.people["member"])
        factories.tenancy(team, cluster)
        factories.join(here.own.team, factories.person())


def pages(caller: Caller, path: str) -> Iterator[list[int]]:
    """The ids of each page, following `next`."""
    link = path
    while link:
        answer = caller.get(link)
        assert answer.status_code == 200, answer.content
        body = answer.json()
        yield [row["id"] for row in body["results"]]
        link = (body["next"] or "").removeprefix("http://testserver")


@pytest.mark.slow
def test_a_list_costs_the_same_with_few_rows_and_many(here: World) -> None:
    caller = Caller(here.people["platform_lead"])
    member = Caller(here.people["member"])
    counts: dict[str, list[int]] = {}
    for rows in (5, 45):
        fill(here, rows) if rows == 5 else Flavor.objects.bulk_create(
            Flavor(
                cluster=here.cluster,
                name=f"more-{n}",
                product="L4",
                memory_gb=24,
                gpus_per_node=1,
                price_per_gpu_hour=1,
            )
            for n in range(rows)
        )
        for path in LISTS:
            for who, each in (("lead", caller), ("member", member)):
                each.get(path)
                with CaptureQueriesContext(
                    connection,
                ) as seen:
                    answer = each.get(
                        path + ("&" if "?" in path else "?") + "limit=100"
                        if "budgets" not in path and "options" not in path
                        else path
                    )
                assert answer.status_code == 200, answer.content
                counts.setdefault(f"{who} {path}", []).append(len(seen))
    for path, (few, many) in counts.items():
        assert few == many <= MOST_QUERIES, (path, few, many)


@pytest.mark.slow
def test_rows_of_the_same_moment_are_paged_without_gap_or_repetition(
    here: World,
) -> None:
    fill(here, 12)
    caller = Caller(here.people["member"])
    for ordering in ("-created_at", "created_at", "-usd", "until"):
        read = list(pages(caller, f"requests/?limit=5&ordering={ordering}"))
        ids = [pk for page in read for pk in page]
        assert [len(page) for page in read] == [5, 5, 4]
        assert len(set(ids)) == 14
        field = ordering.lstrip("-")
        order = (ordering, "-id" if ordering.startswith("-") else "id")
        assert ids == list(
            Request.objects.filter(team=here.own.team)
            .order_by(*order)
            .values_list("pk", flat=True)
        ), field


def test_previous_leads_back_over_the_same_rows(here: World) -> None:
    fill(here, 12)
    caller = Caller(here.people["member"])
    first = caller.get("requests/?limit=5").json()
    second = caller.get(first["next"].removeprefix("http://testserver")).json()
    back = caller.get(second["previous"].removeprefix("http://testserver")).json()
    assert first["previous"] is None
    assert (back["results"], back["previous"]) == (first["results"], None)
    assert (
        caller.get(back["next"].removeprefix("http://testserver")).json()["results"]
        == second["results"]
    )


def test_a_row_that_comes_while_one_reads_moves_nothing(here: World) -> None:
    fill(here, 6)
    caller = Caller(here.people["member"])
    first = caller.get("requests/?limit=4").json()
    factories.request(
        here.own.asker,
        here.own.tenancy,
        here.flavor,
        now=timezone.now() + timedelta(seconds=1),
    )
    second = caller.get(first["next"].removeprefix("http://testserver")).json()
    assert not {row["id"] for row in first["results"]} & {
        row["id"] for row in second["results"]
    }
    assert len(second["results"]) == 4


def test_a_cursor_of_one_order_is_no_cursor_of_another(here: World) -> None:
    fill(here, 6)
    caller = Caller(here.people["member"])
    link = (
        caller.get("requests/?limit=4").json()["next"].removeprefix("http://testserver")
    )
    assert caller.get(f"{link}&ordering=usd").status_code == 400


def test_events_are_read_on_from_a_number_and_only_those_of_ones_teams(
    here: World,
) -> None:
    member, lead = Caller(here.people["member"]), Caller(here.people["auditor"])
    mine = member.get("events/?limit=100").json()
    every = lead.get("events/?limit=100").json()
    assert [row["seq"] for row in every["results"]] == list(
        range(1, every["after"] + 1)
    )
    subjects = {(row["subject_type"], row["subject_id"]) for row in mine["results"]}
    assert ("request", str(here.own.waiting.pk)) in subjects
    assert ("request", str(here.other.waiting.pk)) not in subjects
    assert member.get(f"events/?after={every['after']}").json()["results"] == []
    few = lead.get("events/?limit=2").json()
    assert [
        row["seq"]
        for row in lead.get(few["next"].removeprefix("http://testserver")).json()[
            "results"
        ]
    ] == [3, 4]
    assert (
        lead.get("events/?kind=request.submitted").json()["results"][0]["words"]
        == "asked"
    )


def test_events_are_narrowed_by_team_person_outcome_and_time(here: World) -> None:
    member, lead = Caller(here.people["member"]), Caller(here.people["auditor"])

    def seen(caller: Caller, **asked: str) -> list[dict[str, Any]]:
        found = caller.get(f"events/?{urlencode({'limit': '100', **asked})}").json()
        return list(found["results"])

    every, slug = seen(lead), here.own.team.slug
    keys = {here.own.team.pk, here.other.team.pk}
    assert {Event.objects.get(seq=row["seq"]).team_id for row in every} > keys
    of_team = seen(lead, team=slug)
    assert of_team
    assert {Event.objects.get(seq=row["seq"]).team_id for row in of_team} == {
        here.own.team.pk
    }
    assert seen(member, team=here.other.team.slug) == []
    actor = of_team[0]["actor_id"]
    assert {row["actor_id"] for row in seen(lead, actor_id=actor)} == {actor}
    assert seen(lead, outcome="refused") == [
        row for row in every if row["outcome"] == "refused"
    ]
    middle = every[len(every) // 2]["at"]
    before, after = seen(lead, until=middle), seen(lead, since=middle)
    assert [row["seq"] for row in (*before, *after)] == [row["seq"] for row in every]
    assert lead.get("events/?since=yesterday").status_code == 400


def test_the_chain_is_verified_by_who_may_see_all_of_it(here: World) -> None:
    verdict = Caller(here.people["auditor"]).get("events/verify/").json()
    assert (verdict["broken_at"], verdict["checked"] > 5) == (None, True)
    assert (
        Caller(here.people["team_lead"]).get("events/verify/").json()["code"]
        == "not_an_auditor"
    )


@pytest.mark.parametrize(
    ("after", "words"),
    [("9" * 19, "too long"), ("1.5", "not a whole number"), ("٣", "not a whole")],
)
def test_a_number_in_an_address_is_refused_for_what_is_wrong_with_it(
    here: World, after: str, words: str
) -> None:
    answer = Caller(here.own.asker).get(f"events/?after={after}")
    [error] = answer.json()["errors"]
    assert (answer.status_code, error["pointer"]) == (400, "/after")
    assert words in error["detail"]
