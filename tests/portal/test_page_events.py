"""The event stream: who hears what, until when, and that nothing is left open."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.db import connection, connections, transaction
from django.test import AsyncClient, Client

from accounts.models import Team, User
from accounts.roles import Role
from audit.actors import Actor
from audit.events import Kind
from audit.log import record, refuse
from portal.pages import events
from portal.pages.broadcast import broadcaster
from tests import factories

pytestmark = [pytest.mark.django_db(transaction=True)]
DEADLINE = 8.0


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Run an asynchronous story in a loop of its own."""

    async def whole() -> None:
        try:
            async with asyncio.timeout(30):
                await story()
        finally:
            # The test client's own queries run in a thread that ends with this loop.
            await sync_to_async(connections.close_all)()

    asyncio.run(whole())


@sync_to_async(thread_sensitive=False)
def happen(subject: str, pk: object, team: Team | None) -> None:
    """Something changes, in a transaction of its own."""
    try:
        with transaction.atomic():
            record(
                Kind.BUDGET_SET,
                actor=Actor("portal", "", "Test"),
                subject=(subject, pk),
                team_id=team.pk if team else None,
            )
    finally:
        connection.close()


@sync_to_async(thread_sensitive=False)
def refuse_about(subject: str, pk: object, team: Team) -> None:
    """Somebody is refused something."""
    try:
        refuse(
            actor=Actor("person", "1", "Mallory"),
            reason="Not yours.",
            where="requests/<int:pk>/withdraw",
            about=(subject, pk),
            team_id=team.pk,
        )
    finally:
        connection.close()


async def listen(user: User, **headers: str) -> Any:
    """The answer of the stream to somebody who is signed in."""
    client = AsyncClient()
    await client.aforce_login(user)
    return await client.get("/events", headers=headers)


async def until(lines: AsyncIterator[bytes], wanted: str) -> str:
    """Read until something was said; everything that was said by then."""
    heard = ""
    async with asyncio.timeout(DEADLINE):
        async for line in lines:
            heard += line.decode()
            if wanted in heard:
                return heard
    raise AssertionError(heard)


async def closed(answer: Any) -> None:
    """End a stream as a browser does that goes away."""
    await sync_to_async(answer.close, thread_sensitive=False)()
    await asyncio.sleep(0)


def test_it_tells_members_of_changes_in_their_teams_alone() -> None:
    vision, speech = factories.team("Vision"), factories.team("Speech")
    ada = factories.person("Ada", teams=[vision])

    async def story() -> None:
        answer = await listen(ada)
        assert answer["Content-Type"] == "text/event-stream"
        assert answer["Cache-Control"] == "private, no-store"
        assert answer["X-Accel-Buffering"] == "no"
        lines = answer.streaming_content
        assert await anext(lines) == b"retry: 3000\n\n"
        await happen("request", 1, speech)
        await happen("token", "abcd", None)
        await happen("cluster", 9, None)
        await happen("request", 2, vision)
        heard = await until(lines, f"changed team-{vision.pk}")
        assert "id: 4\ndata: changed request-2\n\n" in heard
        assert "changed cluster-9" in heard
        assert "changed clusters" in heard
        assert "request-1" not in heard
        assert f"team-{speech.pk}" not in heard
        assert "token" not in heard
        await closed(answer)

    run(story)


def test_what_was_refused_changes_nothing_and_wakes_no_page() -> None:
    vision = factories.team("Vision")
    ada = factories.person("Ada", teams=[vision])

    async def story() -> None:
        answer = await listen(ada)
        await anext(answer.streaming_content)
        await refuse_about("request", 1, vision)
        await happen("request", 2, vision)
        heard = await until(answer.streaming_content, f"changed team-{vision.pk}")
        assert "changed request-2" in heard
        assert "request-1" not in heard
        await closed(answer)

    run(story)


def test_who_may_not_see_a_team_hears_only_that_capacity_changed() -> None:
    speech = factories.team("Speech")
    ada = factories.person("Ada", teams=[factories.team("Vision")])

    async def story() -> None:
        answer = await listen(ada)
        await anext(answer.streaming_content)
        await happen("allocation", 77, speech)
        heard = await until(answer.streaming_content, "changed capacity")
        assert heard.count("data:") == 1
        assert "77" not in heard
        await closed(answer)

    run(story)


def test_who_decides_hears_of_the_list_of_requests() -> None:
    speech, priya = (
        factories.team("Speech"),
        factories.person("Priya", Role.PLATFORM_LEAD),
    )

    async def story() -> None:
        answer = await listen(priya)
        await anext(answer.streaming_content)
        await happen("request", 1, speech)
        await until(answer.streaming_content, "changed requests")
        await closed(answer)

    run(story)


def test_who_sees_all_teams_hears_of_all() -> None:
    speech, sam = factories.team("Speech"), factories.person("Sam", Role.AUDITOR)

    async def story() -> None:
        answer = await listen(sam)
        await anext(answer.streaming_content)
        await happen("request", 1, speech)
        await until(answer.streaming_content, "changed request-1")
        await closed(answer)

    run(story)


def test_what_was_missed_is_told_after_coming_back() -> None:
    vision = factories.team("Vision")
    ada = factories.person("Ada", teams=[vision])

    async def story() -> None:
        for number in (1, 2, 3):
            await happen("request", number, vision)
        answer = await listen(ada, **{"Last-Event-ID": "1"})
        heard = await until(answer.streaming_content, "changed request-3")
        assert "changed request-2" in heard
        assert "changed request-1\n" not in heard
        await closed(answer)

    run(story)


@pytest.mark.parametrize("said", ["9" * 6000, "-1", "x", "²"])
def test_a_last_id_that_is_none_is_left_aside(said: str) -> None:
    ada = factories.person("Ada")

    async def story() -> None:
        answer = await listen(ada, **{"Last-Event-ID": said})
        assert answer.status_code == 200
        await closed(answer)

    run(story)


def test_it_says_that_it_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PING", 0.05)
    ada = factories.person("Ada")

    async def story() -> None:
        answer = await listen(ada)
        await until(answer.streaming_content, ": still here")
        await closed(answer)

    run(story)


@pytest.mark.parametrize("end", ["session", "account"])
def test_it_ends_with_the_session_or_the_account(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(events, "LOOK_AGAIN", 0.1)
    ada = factories.person("Ada")

    async def story() -> None:
        answer = await listen(ada)
        await anext(answer.streaming_content)
        if end == "session":
            await Session.objects.all().adelete()
        else:
            await User.objects.filter(pk=ada.pk).aupdate(is_active=False)
        async with asyncio.timeout(DEADLINE):
            async for _ in answer.streaming_content:
                pass
        answer.close()

    run(story)
    assert broadcaster.streams_of(ada.pk) == 0


def test_somebody_who_left_the_team_hears_no_more_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "LOOK_AGAIN", 0.1)
    vision = factories.team("Vision")
    ada = factories.person("Ada", teams=[vision])

    async def story() -> None:
        answer = await listen(ada)
        await anext(answer.streaming_content)
        await ada.memberships.all().adelete()
        # A stream looks again after a line was read: the third is sent by one that has.
        for _ in range(3):
            await until(answer.streaming_content, ": still here")
        await happen("request", 1, vision)
        await happen("cluster", 1, None)
        assert "request-1" not in await until(
            answer.streaming_content, "changed cluster-1"
        )
        await closed(answer)

    run(story)


def test_five_pages_of_a_person_may_listen_and_room_is_made_when_one_closes() -> None:
    ada = factories.person("Ada")

    async def story() -> None:
        open_ones = [await listen(ada) for _ in range(events.MOST_STREAMS)]
        for answer in open_ones:
            await anext(answer.streaming_content)
        sixth = await listen(ada)
        assert (sixth.status_code, sixth["Content-Type"]) == (200, "text/event-stream")
        assert sixth.content == b"retry: 15000\n\n"
        assert broadcaster.streams_of(ada.pk) == events.MOST_STREAMS
        await closed(open_ones.pop())
        again = await listen(ada)
        assert again.status_code == 200
        await anext(again.streaming_content)
        for answer in [*open_ones, again]:
            await closed(answer)

    run(story)
    assert broadcaster.streams_of(ada.pk) == 0


def test_nobody_listens_without_signing_in() -> None:
    async def story() -> None:
        answer = await AsyncClient().get("/events")
        assert answer.status_code == 401

    run(story)


def test_a_synchronous_server_tells_browsers_not_to_ask_again(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    assert client.get("/events").status_code == 204


def test_only_get_is_answered() -> None:
    ada = factories.person("Ada")

    async def story() -> None:
        client = AsyncClient()
        await client.aforce_login(ada)
        assert (await client.post("/events")).status_code == 405

    run(story)


def test_looking_costs_nothing_while_nobody_listens() -> None:
    ada = factories.person("Ada")

    async def story() -> None:
        answer = await listen(ada)
        await anext(answer.streaming_content)
        assert broadcaster.is_looking
        await closed(answer)
        assert not broadcaster.is_looking

    run(story)
