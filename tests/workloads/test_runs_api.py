"""Runs over the API: created once, refused with a field, followed, listed at one cost, and nobody else's to see."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import ApiToken, Membership
from accounts.roles import Role
from accounts.tokens.actions import create_team_token, revoke_token
from allocations.models import Allocation
from audit.events import Kind
from audit.models import Event
from fleet.models import Flavor
from fleet.versions.reading import versions_of
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller, address
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.test_runs import ASKED, REFUSED, look_after, submit, until
from workloads.models import Feed, Run
from workloads.runs import sending
from workloads.runs.logs import reading, rights
from workloads.runs.planning.plan import Submission

MOST_QUERIES = 6


def body(watched: Watched, asked: Submission = ASKED) -> dict[str, Any]:
    """A submission as a call sends it."""
    said = asked.as_json()
    return {
        **{key: said[key] for key in said if said[key] not in (None, "")},
        "tenancy": watched.tenancy.pk,
    }


@pytest.fixture
def running(watched: Watched) -> Run:
    """A run whose pods write their logs."""
    run = submit(watched)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
    return run


def test_the_same_key_makes_one_run_that_is_told_again(watched: Watched) -> None:
    caller = Caller(watched.ada)
    first = caller.post("runs/", body(watched), key="mine")
    again = caller.post("runs/", body(watched), key="mine")
    assert (first.status_code, again.status_code) == (201, 201), first.content
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (
        again.headers["Location"]
        == first.headers["Location"]
        == f"/api/v1/runs/{first.json()['id']}/"
    )
    assert first.json() == again.json()
    assert Run.objects.count() == 1
    assert first.json()["requester"]["name"] == "Ada Okafor"
    missing = caller.post("runs/", body(watched), key=None)
    assert (missing.status_code, missing.json()["code"]) == (
        400,
        "idempotency_key_missing",
    )
    other = caller.post("runs/", {**body(watched), "title": "Another"}, key="mine")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


def test_the_preview_is_what_is_created_with_the_same_key(watched: Watched) -> None:
    caller = Caller(watched.ada)
    shown = caller.post("runs/preview/", body(watched), key="mine").json()
    assert not Run.objects.exists()
    assert shown["is_possible"]
    made = caller.post("runs/", body(watched), key="mine").json()
    for name in (
        "name",
        "manifests",
        "gpus",
        "usd_per_hour",
        "usd_at_limit",
        "limit_seconds",
    ):
        assert shown[name] == made[name]
    assert made["state"] == "submitted"


def test_each_parameter_at_fault_is_named_within_the_values(watched: Watched) -> None:
    wrong = body(watched) | {"values": {"image": "nowhere/x", "gpus": 99_999}}
    answer = Caller(watched.ada).post("runs/", wrong)
    pointers = {one["pointer"] for one in answer.json()["errors"]}
    assert (answer.status_code, pointers) == (422, {"/values/gpus", "/values/program"})


def test_a_pointer_leads_to_a_name_as_it_was_sent(watched: Watched) -> None:
    wrong = body(watched)
    wrong["values"] = {**wrong["values"], "a.b": 1, "c/d~e": 2}
    answer = Caller(watched.ada).post("runs/", wrong)
    pointers = {one["pointer"] for one in answer.json()["errors"]}
    assert pointers == {"/values/a.b", "/values/c~1d~0e"}


def test_a_token_that_asks_runs_work_and_one_that_reads_previews_it(
    watched: Watched,
) -> None:
    reading = Caller(watched.ada, ApiToken.Scope.READ)
    assert reading.post("runs/preview/", body(watched)).status_code == 200
    assert reading.post("runs/", body(watched)).status_code == 403
    asking = Caller(watched.ada, ApiToken.Scope.ASK)
    made = asking.post("runs/", body(watched))
    assert made.status_code == 201
    assert asking.post(f"runs/{made.json()['id']}/stop/").status_code == 200


def test_the_preview_says_from_when_on_its_gpus_are_not_held(watched: Watched) -> None:
    caller = Caller(watched.ada)
    assert caller.post("runs/preview/", body(watched)).json()["too_few_held"] is None
    end = timezone.now() + timedelta(minutes=10)
    Allocation.objects.update(until=end, kept_until=end, remind_at=None)
    told = caller.post("runs/preview/", body(watched)).json()["too_few_held"]
    assert told["left"] == 0
    assert told["sentence"].startswith("Its GPUs end before it may: from ")
    impossible = {**body(watched)["values"], "gpus": 8}
    refused = caller.post("runs/preview/", body(watched) | {"values": impossible})
    assert refused.json()["too_few_held"] is None


def test_the_preview_says_whether_it_waits_and_where_to_ask_for_more(
    watched: Watched,
) -> None:
    caller = Caller(watched.ada)
    start = caller.post("runs/preview/", body(watched)).json()["start"]
    assert start == {
        "at_once": True,
        "sentence": "It can start at once",
        "detail": "2 of your 2 × A100 are free now.",
    }
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
    Feed.objects.filter(kind="Pod").update(
        silent_since=timezone.now(), message="503: away"
    )
    start = caller.post("runs/preview/", body(watched)).json()["start"]
    assert (start["at_once"], start["sentence"]) == (
        False,
        "It is sent when the cluster answers again",
    )
    assert " has said nothing since " in start["detail"]
    assert start["detail"].endswith(
        "What was known then: 2 of your 2 × A100 are free now."
    )

    sent = body(watched)
    found = caller.post(
        "runs/preview/", {**sent, "values": {**sent["values"], "gpus": 8}}
    ).json()
    assert found["start"] is None
    [problem] = found["problems"]
    assert problem["ask"].startswith("/requests/new/gpus?team=vision")
    assert "gpus=6" in problem["ask"]


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_run_is_a_problem_with_its_field(
    watched: Watched, name: str
) -> None:
    change, field, _ = REFUSED[name]
    sent = body(watched, change(ASKED))
    caller = Caller(watched.ada)
    refused = caller.post("runs/", sent)
    assert refused.status_code in (400, 413, 422), refused.content
    assert refused.headers["Content-Type"] == "application/problem+json"
    found = refused.json()
    if refused.status_code != 413:
        assert field in str(found["errors"][0]["pointer"])
    # What is no value at all is refused before anything is planned, in its own words.
    shown = caller.post("runs/preview/", sent)
    if shown.status_code == 200:
        assert not shown.json()["is_possible"]
        assert found["detail"] == shown.json()["problems"][0]["text"]
        assert {one["field"] for one in shown.json()["problems"]} == {field}
    assert not Run.objects.exists()


def test_a_place_that_is_left_or_not_set_up_is_a_conflict(watched: Watched) -> None:
    Tenancy.objects.filter(pk=watched.tenancy.pk).update(observed_generation=0)
    for path in ("runs/", "runs/preview/"):
        refused = Caller(watched.ada).post(path, body(watched))
        assert (refused.status_code, refused.json()["code"]) == (409, "not_set_up")


@pytest.mark.slow
def test_the_last_lines_of_a_log_and_those_behind_a_place(
    watched: Watched, running: Run
) -> None:
    caller = Caller(watched.ada)
    where = f"runs/{running.pk}/logs/"
    found = caller.get(where).json()
    assert found["pod"].startswith(running.name)
    [first, *others] = found["lines"]
    assert first["text"].startswith("rank 0 on a100-")
    after = caller.get(f"{where}?after={first['place']}&pod={found['pod']}").json()[
        "lines"
    ]
    assert after[: len(others)] == others
    assert len(caller.get(f"{where}?tail=1").json()["lines"]) == 1
    for wrong in ("after=x", "tail=0", "tail=5001", "follow=1", "since=1"):
        assert caller.get(f"{where}?{wrong}").status_code == 400
    for more in ("", "&follow=true"):
        both = caller.get(f"{where}?after={first['place']}&tail=1{more}")
        assert (both.status_code, both.json()["code"]) == (400, "bad_query")
        [error] = both.json()["errors"]
        assert error["pointer"] == "/tail"
        assert error["detail"] == (
            "Lines behind a place begin there: leave out tail, or after."
        )
    gone = caller.get(f"{where}?pod={running.name}-gone0")
    assert (gone.status_code, gone.json()["code"]) == (409, "log_gone")
    for query in ("?pod=nope", "?pod=nope&follow=true", f"?pod={running.name}"):
        never = caller.get(where + query)
        assert (never.status_code, never.json()["code"]) == (404, "no_such_pod")
        assert never.json()["detail"] == (
            f"The run never had such a pod. It has: {found['pod']}."
        )
    page = Client()
    page.force_login(watched.ada)
    never = page.get(f"/runs/{running.pk}/log?pod=nope")
    assert (never.status_code, "never had such a pod" in never.content.decode()) == (
        404,
        True,
    )
    streamed = page.get(f"/runs/{running.pk}/log?pod=nope&follow=1").content.decode()
    assert "event: end\ndata: The run never had such a pod." in streamed
    watched.kubernetes.fail("/log$", status=503)
    away = caller.get(where)
    assert (away.status_code, away.json()["code"]) == (503, "cluster_away")


def test_a_run_without_a_pod_has_no_log_yet(watched: Watched) -> None:
    run = submit(watched)
    early = Caller(watched.ada).get(f"runs/{run.pk}/logs/")
    assert (early.status_code, early.json()["code"]) == (409, "log_not_started")


def test_one_that_ended_before_a_pod_began_never_had_a_log(watched: Watched) -> None:
    run, caller = submit(watched), Caller(watched.ada)
    caller.post(f"runs/{run.pk}/stop/")
    sending.look_after(run.pk, now=timezone.now)
    words = "It ended before a pod of it began: there is no log."
    never = caller.get(f"runs/{run.pk}/logs/").json()
    assert (never["code"], never["detail"]) == ("log_never_begun", words)
    page = Client()
    page.force_login(watched.ada)
    assert words in page.get(f"/runs/{run.pk}").content.decode()
    followed = page.get(f"/runs/{run.pk}/log?follow=1").content.decode()
    assert "event: end" in followed
    assert words in followed


@pytest.mark.slow
def test_a_log_is_followed_as_server_sent_events(
    watched: Watched, running: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LINGER", 0.02)
    headers = Caller(watched.ada).headers
    where = address(f"runs/{running.pk}/logs/?follow=true")

    def has_connection() -> bool:
        return connection.connection is not None

    async def follow(query: str = "", **more: str) -> str:
        answer: Any = await AsyncClient().get(
            f"{where}{query}", headers={**headers, **more}
        )
        assert (answer.status_code, answer["Content-Type"]) == (
            200,
            "text/event-stream",
        )
        assert answer["X-Accel-Buffering"] == "no"
        heard = ""
        async for one in answer.streaming_content:
            heard += one.decode()
            # Whoever follows holds none of the process's connections to the database.
            assert not await sync_to_async(has_connection)()
            if "event: end" in heard:
                break
        return heard

    async def story() -> None:
        try:
            async with asyncio.timeout(60):
                heard = await follow()
                first = heard.split("\n\n")[1].split("\n")
                assert first[1].startswith("data: rank 0 on a100-")
                last = first[0].removeprefix("id: ")
                assert "rank 0" not in await follow(**{"Last-Event-ID": last})
                # As kubectl does: the last lines first. Whoever comes back has had them.
                assert ids(await follow("&tail=2")) == ids(heard)[-2:]
                back = {"Last-Event-ID": last}
                assert ids(await follow("&tail=1", **back)) == ids(heard)[1:]
        finally:
            await sync_to_async(connections.close_all)()

    caller = Caller(watched.ada)
    wait_until(lambda: len(lines(caller, running)) > 2, what="three lines")
    end_pods(watched, running)
    asyncio.run(story())
    assert (
        Caller(watched.ada).get(f"runs/{running.pk}/logs/?follow=true").status_code
        == 204
    )


@pytest.mark.slow
@pytest.mark.parametrize("by", ["token", "session"])
def test_a_followed_log_ends_with_the_token_or_session_that_it_was_opened_with(
    watched: Watched, running: Run, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setattr(reading, "LINGER", 0.02)
    monkeypatch.setattr(rights, "EVERY", 0.05)
    caller, page = Caller(watched.ada), Client()
    page.force_login(watched.ada)
    wait_until(lambda: bool(lines(Caller(watched.ada), running)), what="a line")
    where, headers, cookies, refusal = {
        "token": (
            address(f"runs/{running.pk}/logs/?follow=true"),
            caller.headers,
            {},
            401,
        ),
        "session": (f"/runs/{running.pk}/log?follow=1", {}, page.cookies, 302),
    }[by]

    def end() -> None:
        if by == "session":
            page.session.flush()
        for token in watched.ada.tokens.all() if by == "token" else ():
            revoke_token(token, by=watched.ada, now=timezone.now())

    async def opened() -> Any:
        browser = AsyncClient()
        browser.cookies.update(cookies)
        return await browser.get(where, headers=headers)

    async def story() -> None:
        heard = ""
        try:
            async with asyncio.timeout(60):
                async for one in (await opened()).streaming_content:
                    if "rank 0" in one.decode() and "rank 0" not in heard:
                        await sync_to_async(end, thread_sensitive=False)()
                    heard += one.decode()
                assert "rank 0" in heard
                assert "event: end" not in heard
                assert (await opened()).status_code == refusal
        finally:
            await sync_to_async(connections.close_all)()

    asyncio.run(story())
    end_pods(watched, running)


def ids(heard: str) -> list[str]:
    """The places of the lines that a stream told."""
    return [one.split("\n")[0] for one in heard.split("\n\n") if one.startswith("id: ")]


def lines(caller: Caller, run: Run) -> list[Any]:
    return list(caller.get(f"runs/{run.pk}/logs/").json()["lines"])


def end_pods(watched: Watched, run: Run) -> None:
    """Let the run's program end."""
    [name] = [
        one
        for one in watched.kubernetes.names(("v1", "Pod"))
        if one.startswith(run.name)
    ]
    pod = watched.kubernetes.get(("v1", "Pod"), name, watched.namespace)
    assert pod is not None
    [one] = pod["status"]["containerStatuses"]
    started = one["state"]["running"]["startedAt"]
    at = f"{timezone.now():%Y-%m-%dT%H:%M:%SZ}"
    ended = {
        "exitCode": 0,
        "startedAt": started,
        "finishedAt": at,
        "containerID": one["containerID"],
    }
    status = {
        "phase": "Succeeded",
        "containerStatuses": [{**one, "ready": False, "state": {"terminated": ended}}],
    }
    where = f"/api/v1/namespaces/{watched.namespace}/pods/{name}/status"
    watched.kubernetes.write("PATCH", where, {"status": status})


@pytest.mark.slow
def test_lists_are_filtered_and_cost_the_same_with_five_runs_and_two_hundred(
    watched: Watched,
) -> None:
    grace = factories.person("Grace Hopper", teams=[watched.team])
    other = factories.team("Speech")
    elsewhere = factories.tenancy(other, watched.cluster)
    now = timezone.now()
    for number in range(3):
        factories.run(watched.tenancy, watched.ada, title=f"run {number}")
    factories.run(watched.tenancy, grace, title="hers")
    over = factories.run(watched.tenancy, grace, state="finished", ended_at=now)
    foreign = factories.run(elsewhere, other.created_by)
    caller = Caller(watched.ada)

    def found(query: str) -> set[int]:
        answer = caller.get(f"runs/?limit=100&{query}")
        assert answer.status_code == 200, answer.content
        return {one["id"] for one in answer.json()["results"]}

    ours = set(Run.objects.filter(team=watched.team).values_list("pk", flat=True))
    assert found("") == ours
    assert foreign.pk not in ours
    assert found("mine=true") == set(
        Run.objects.filter(requester=watched.ada).values_list("pk", flat=True)
    )
    assert found("state=finished") == found("live=false") == {over.pk}
    assert found("live=true") == ours - {over.pk}
    assert found(f"name={over.name}") == {over.pk}
    assert found("template=single-node") == found("team=vision") == ours
    assert found("team=speech") == set()
    for wrong in ("state=x", "live=1", "mine=false", "color=red", "why=false"):
        assert caller.get(f"runs/?{wrong}").status_code == 400

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            found("")
        return len(seen)

    few = queries()
    for _ in range(195):
        factories.run(watched.tenancy, watched.ada)
    assert few == queries() <= MOST_QUERIES
    assert len(found("")) == 100


@pytest.mark.slow
def test_a_list_tells_why_of_each_that_is_not_over_where_that_is_asked_for(
    watched: Watched, running: Run
) -> None:
    now = timezone.now()
    over = factories.run(
        watched.tenancy, watched.ada, state="finished", sent_at=now, ended_at=now
    )
    caller = Caller(watched.ada)

    def listed(query: str) -> tuple[dict[int, Any], int]:
        with CaptureQueriesContext(connection) as seen:
            rows = caller.get(f"runs/?limit=100&{query}").json()["results"]
        return {one["id"]: one["why"] for one in rows}, len(seen)

    assert listed("")[0] == {running.pk: None, over.pk: None}
    told, few = listed("why=true")
    assert told[over.pk] is None
    assert told[running.pk]["code"] == "running"
    one = caller.get(f"runs/{running.pk}/").json()["why"]
    assert told[running.pk]["what"] == one["what"]
    for number in range(20):
        factories.run(watched.tenancy, watched.ada, title=f"run {number}", sent_at=now)
    many, count = listed("why=true")
    assert len(many) == 22
    # Two more where something has changed since it was explained last.
    assert count <= few + 2
    assert listed("why=true")[1] <= few


@pytest.mark.slow
def test_strangers_see_nothing_and_auditors_everything_but_logs(
    watched: Watched, running: Run
) -> None:
    where = f"runs/{running.pk}/"
    stranger = Caller(factories.person("Mallory Finch"))
    auditor = Caller(factories.person("Nora Lind", Role.AUDITOR))
    for path in (where, f"{where}logs/"):
        assert stranger.get(path).status_code == 404
    for path in (f"{where}stop/", f"{where}again/"):
        assert stranger.post(path).status_code == 404
        assert auditor.post(path).status_code == 403
    assert stranger.post("runs/", body(watched)).status_code == 404
    assert stranger.get("runs/").json()["results"] == []
    assert auditor.get(where).status_code == 200
    refused = auditor.get(f"{where}logs/")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_of_the_team")
    assert Caller().get(where).status_code == 401


def test_it_is_stopped_once_and_one_that_is_over_is_a_conflict(
    watched: Watched,
) -> None:
    run, caller = submit(watched), Caller(watched.ada)
    first, again = (
        caller.post(f"runs/{run.pk}/stop/"),
        caller.post(f"runs/{run.pk}/stop/"),
    )
    assert (first.status_code, again.status_code) == (200, 200), first.content
    assert first.json()["stop_asked_at"] == again.json()["stop_asked_at"] is not None
    sending.look_after(run.pk, now=timezone.now)
    late = caller.post(f"runs/{run.pk}/stop/")
    assert (late.status_code, late.json()["state"]) == (200, "stopped")
    now = timezone.now()
    by_itself = factories.run(
        watched.tenancy,
        watched.ada,
        state="finished",
        created_at=now,
        sent_at=now,
        started_at=now,
        ended_at=now,
    )
    over = caller.post(f"runs/{by_itself.pk}/stop/")
    assert (over.status_code, over.json()["code"]) == (409, "run_is_over")
    assert over.json()["detail"] == "The run is over: finished."


def test_it_is_submitted_again_once_for_each_key(watched: Watched) -> None:
    run, caller = submit(watched), Caller(watched.ada)
    first = caller.post(f"runs/{run.pk}/again/", key="again")
    assert first.status_code == 201, first.content
    assert caller.post(f"runs/{run.pk}/again/", key="again").json() == first.json()
    told = first.json()
    assert (told["again_of"], told["submission"]) == (
        run.pk,
        caller.get(f"runs/{run.pk}/").json()["submission"],
    )
    assert told["name"] != run.name
    assert Run.objects.count() == 2


def test_places_and_templates_are_what_a_submission_takes(watched: Watched) -> None:
    caller = Caller(watched.ada)
    [place] = caller.get("places/").json()["results"]
    slugs = [one["slug"] for one in caller.get("templates/").json()["results"]]
    assert [one["slug"] for one in place["templates"]] == slugs
    sent = body(watched, replace(ASKED, flavor=place["flavors"][0]["flavor"]))
    assert (
        caller.post("runs/", {**sent, "tenancy": place["tenancy"]}).status_code == 201
    )
    assert (
        Caller(factories.person("Mallory Finch")).get("places/").json()["results"] == []
    )


def test_a_place_tells_what_all_nodes_of_a_kind_can_run(watched: Watched) -> None:
    caller = Caller(watched.ada)
    [place] = caller.get("places/").json()["results"]
    assert [(one["driver"], one["cuda"]) for one in place["flavors"]] == [("", "")]
    nodes = [
        {
            "metadata": {
                "labels": {
                    "nvidia.com/cuda.driver-version.full": driver,
                    "nvidia.com/cuda.runtime-version.full": cuda,
                }
            }
        }
        for driver, cuda in [("570.86.15", "12.8")] * 2 + [("550.90.07", "12.4")]
    ]

    Flavor.objects.update(versions=versions_of(nodes))

    [place] = caller.get("places/").json()["results"]
    assert [(one["driver"], one["cuda"]) for one in place["flavors"]] == [
        ("550.90.07", "12.4")
    ]


def test_a_token_of_the_team_runs_training_and_asks_for_nothing(
    watched: Watched,
) -> None:
    Membership.objects.filter(team=watched.team, user=watched.ada).update(part="lead")
    _, secret = create_team_token(
        team=watched.team,
        name="nightly",
        scope="run",
        days=30,
        by=watched.ada,
        now=timezone.now(),
    )
    pipeline, ada = Caller(), Caller(watched.ada)
    pipeline.headers = {"Authorization": f"Bearer {secret}"}
    made = pipeline.post("runs/", body(watched), key="tonight")
    assert made.status_code == 201, made.content
    again = pipeline.post("runs/", body(watched), key="tonight")
    assert again.json()["id"] == made.json()["id"]
    assert made.json()["requester"]["name"] == f"{watched.team.name} (pipelines)"
    run = Run.objects.get()
    look_after(run)
    job = watched.kubernetes.get(("batch/v1", "Job"), run.name, watched.namespace)
    assert job is not None
    event = Event.objects.get(kind=Kind.RUN_SUBMITTED)
    assert event.actor_kind == "pipelines"
    assert "nightly" in event.details["called_with"]
    for path, sent in (
        ("requests/", {}),
        (f"places/{watched.tenancy.pk}/notebooks/", {}),
        ("tokens/", {"name": "more", "scope": "read", "days": 1}),
    ):
        answer = pipeline.post(path, sent)
        assert (answer.status_code, answer.json()["code"]) == (
            403,
            "permission_denied",
        ), path
    assert ada.post(f"runs/{run.pk}/stop/").status_code == 200
    assert Event.objects.get(kind=Kind.RUN_STOPPED).actor_name == watched.ada.name
