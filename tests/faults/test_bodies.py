"""A body in chunks is read like a whole one, on the API and on pages; what is too large or too slow is refused."""

import asyncio
import json
import re
import uuid
from contextlib import ExitStack

import pytest
import requests
from django.test import Client as Browser
from django.utils import timezone

from accounts.models import User
from approvals.models import Comment, Request
from approvals.requests.actions import submit
from portal.http.bodies import BoundedBodies, Message, Receive, Scope, Send
from portal.web_worker import MAX_HALF_OPEN
from tests.calling import token_of
from tests.faults.running import Portal
from tests.faults.wire import CHUNKED, CLIENTS, chunk, connected, head, like_go, pour
from tests.scene import Scene, scene

pytestmark = pytest.mark.slow

KILOBYTE = 1024
LIMIT = 512 * KILOBYTE


@pytest.fixture
def here(portal: Portal) -> Scene:
    """A team with people around it, and one web process to talk to that gives each part of a request a second."""
    made = scene()
    portal.environment = {**portal.environment, "QM_REQUEST_SECONDS": "1"}
    portal.web(workers=1)
    return made


def waiting(here: Scene) -> Request:
    """A request for five GPUs, which waits for a platform lead."""
    asked = submit(here.wanted(5, days=30), by=here.ada, now=timezone.now())
    assert asked.decided_at is None
    return asked


def headers_of(user: User) -> dict[str, str]:
    """What a program sends with a call that changes something."""
    return {
        "Authorization": f"Bearer {token_of(user)}",
        "Content-Type": "application/json",
        "Idempotency-Key": uuid.uuid4().hex,
        "If-Match": '"1"',
    }


def test_a_chunked_approval_of_fewer_grants_fewer(portal: Portal, here: Scene) -> None:
    for send in CLIENTS.values():
        asked = waiting(here)
        url = f"{portal.url}/api/v1/requests/{asked.pk}/approve/"
        answer = send(
            "POST",
            url,
            headers_of(here.priya),
            b'{"count": 1, "reason": "One is enough."}',
        )
        assert (answer.status, json.loads(answer.body)["approved_count"]) == (200, 1)
        asked.refresh_from_db()
        assert asked.approved_count == 1


def test_an_unknown_field_of_a_chunked_body_is_refused_by_name(
    portal: Portal, here: Scene
) -> None:
    asked = waiting(here)
    url = f"{portal.url}/api/v1/requests/{asked.pk}/approve/"
    for send in CLIENTS.values():
        answer = send(
            "POST", url, headers_of(here.priya), b'{"count": 1, "nonsense": true}'
        )
        assert answer.status == 422
        assert json.loads(answer.body)["errors"][0]["pointer"] == "/nonsense"
        asked.refresh_from_db()
        assert asked.decided_at is None


def test_the_digest_of_an_idempotent_call_is_that_of_the_chunked_body(
    portal: Portal, here: Scene
) -> None:
    asked = waiting(here)
    url, headers = (
        f"{portal.url}/api/v1/requests/{asked.pk}/comments/",
        headers_of(here.ada),
    )
    first = like_go("POST", url, headers, b'{"text": "One."}')
    again = requests.post(url, data=b'{"text": "One."}', headers=headers, timeout=30)
    other = like_go("POST", url, headers, b'{"text": "Two."}')
    assert (first.status, again.status_code, other.status) == (201, 201, 422)
    assert again.headers["Idempotency-Replayed"]
    assert json.loads(other.body)["code"] == "idempotency_mismatch"
    assert [comment.text for comment in Comment.objects.all()] == ["One."]


def test_a_chunked_form_of_a_page_is_read(portal: Portal, here: Scene) -> None:
    asked = waiting(here)
    browser = Browser()
    browser.force_login(here.ada)
    session = requests.Session()
    session.cookies.set("qm_session", browser.cookies["qm_session"].value)
    page = session.get(f"{portal.url}/requests/{asked.pk}/", timeout=30)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    assert token is not None
    headers = {
        "Cookie": "; ".join(
            f"{cookie.name}={cookie.value}" for cookie in session.cookies
        ),
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": portal.url,
    }
    for name, send in CLIENTS.items():
        body = f"csrfmiddlewaretoken={token[1]}&text=Like+{name}".encode()
        assert (
            send(
                "POST", f"{portal.url}/requests/{asked.pk}/comment", headers, body
            ).status
            == 302
        )
    assert [comment.text for comment in Comment.objects.order_by("pk")] == [
        "Like go",
        "Like node",
        "Like curl",
    ]


def test_a_body_announced_as_too_large_is_refused_before_it_is_sent(
    portal: Portal, here: Scene
) -> None:
    for path in (
        "/api/v1/requests/",
        "/sign-in/start",
        "/nowhere",
        "/healthz",
        "/events",
    ):
        with connected(portal.url) as wire:
            wire.write(
                head(
                    "POST",
                    portal.url + path,
                    {"Content-Length": 2**30, "Expect": "100-continue"},
                )
            )
            answer = wire.response()
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert ("problem+json" in answer.headers["content-type"]) == path.startswith(
            "/api/"
        )


def test_a_stranger_pours_no_more_into_the_server_than_the_limit(
    portal: Portal, here: Scene
) -> None:
    with connected(portal.url) as wire:
        wire.write(head("POST", f"{portal.url}/sign-in/start", CHUNKED))
        pour(wire, chunk(b"x" * 64 * KILOBYTE), times=1600)
        # What was on the way was thrown away: buffers of the system's, and what the server takes to be heard.
        assert wire.written < 20 * LIMIT + 8 * 1024 * KILOBYTE
    assert requests.get(f"{portal.url}/healthz", timeout=10).ok


def test_a_chunked_body_is_refused_as_soon_as_it_passes_the_limit(
    portal: Portal, here: Scene
) -> None:
    with connected(portal.url) as wire:
        wire.write(head("POST", f"{portal.url}/api/v1/requests/", CHUNKED))
        wire.write(chunk(b" " * LIMIT) + chunk(b" "))
        answer = wire.response()
    problem = json.loads(answer.body)
    assert (answer.status, problem["status"], problem["code"]) == (
        413,
        413,
        "body_too_large",
    )


def test_a_body_that_does_not_come_to_its_end_is_answered_with_408(
    portal: Portal, here: Scene
) -> None:
    for framing in (CHUNKED, {"Content-Length": "100"}):
        with connected(portal.url) as wire:
            wire.write(
                head("POST", f"{portal.url}/api/v1/requests/", framing)
                + b"5\r\nhello\r\n"
            )
            answer = wire.response()
        assert (answer.status, json.loads(answer.body)["code"]) == (
            408,
            "body_too_slow",
        )


def test_headers_that_do_not_come_to_their_end_are_answered_with_408(
    portal: Portal, here: Scene
) -> None:
    for sent in (b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-"):
        with connected(portal.url) as wire:
            wire.write(sent)
            answer = wire.response()
        assert (answer.status, answer.headers["Connection"]) == (408, "close")


def test_a_connection_that_was_used_before_has_as_long_for_its_next_headers(
    portal: Portal, here: Scene
) -> None:
    with connected(portal.url) as wire:
        wire.write(head("GET", f"{portal.url}/healthz", {}))
        assert wire.response().status == 200
        wire.write(b"GET /heal")
        assert wire.response().status == 408


def test_one_half_request_too_many_closes_the_oldest_and_the_honest_are_served(
    portal: Portal, here: Scene
) -> None:
    with ExitStack() as stack:
        wires = [
            stack.enter_context(connected(portal.url)) for _ in range(MAX_HALF_OPEN)
        ]
        for wire in wires:
            wire.write(b"GET /")
        assert requests.get(f"{portal.url}/healthz", timeout=10).ok
        assert wires[0].response().status == 408


def test_an_answer_to_head_has_the_headers_of_get_and_no_body(
    portal: Portal, here: Scene
) -> None:
    for path in ("/healthz", "/sign-in", "/api/v1/me/", "/nowhere"):
        got = requests.get(portal.url + path, timeout=30, allow_redirects=False)
        asked = requests.head(portal.url + path, timeout=30, allow_redirects=False)
        assert (asked.status_code, asked.content) == (got.status_code, b""), path
        assert asked.headers.get("Content-Type") == got.headers.get("Content-Type")
    assert "body bytes on a no-body response" not in portal.running[0].log


def test_one_body_too_many_under_way_ends_the_oldest() -> None:
    """Without a server: two bodies may be under way, the third makes the first one late."""
    statuses: dict[int, int] = {}

    async def never_to_the_end() -> Message:
        await asyncio.Event().wait()
        return {}

    async def story() -> None:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            raise AssertionError("nothing gets this far")

        async def answered(number: int) -> None:
            async def send(message: Message) -> None:
                statuses.setdefault(number, message.get("status", 0))

            scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
            await bounded(scope, never_to_the_end, send)

        bounded = BoundedBodies(application, seconds=60, concurrent=2)
        first, *others = [asyncio.create_task(answered(number)) for number in range(3)]
        await first
        for task in others:
            task.cancel()

    asyncio.run(story())
    assert statuses == {0: 408}
