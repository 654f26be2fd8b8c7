"""How a request's body arrives: whole, within a limit of size and of time, before anything of it is kept or understood.

A body that comes in chunks has no Content-Length, and what reads it later takes such a request for one without a body.
Every body is therefore read here first, and passed on with the length that it turned out to have.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template import loader

from portal.http.problems import MEDIA_TYPE, TITLES, problem_body
from web.parsing import LARGEST_BODY

logger = structlog.get_logger(__name__)

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

# Bodies of one process that have begun and are not whole; a whole body of the greatest size is in memory for each.
MAX_BODIES_UNDER_WAY = 200
# A client that is still writing reads the refusal only when its bytes are taken; so many more are, and thrown away.
MAX_DISCARDED_BYTES = 2 * 1024 * 1024
DISCARD_SECONDS = 2.0
REFUSALS = {
    408: ("body_too_slow", "The body did not arrive in time."),
    411: (
        "length_missing",
        "Say how long the body is: this server does not take it in chunks.",
    ),
    413: ("body_too_large", f"The body is larger than {LARGEST_BODY // 1024} kB."),
}


class Refusal(Exception):
    """The body is not taken; `status` says why."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class ClientGone(Exception):
    """Whoever sent the body went away before its end."""


class BoundedBodies:
    """An ASGI application that gets only requests whose body is whole and of a known, permitted length.

    Refuses with 413 at once when the announced length is over the limit, else as soon as a chunk passes it, and with
    408 when the body is not whole in time or too many others are under way. Nothing is written to disk, and nobody
    has to be signed in to be refused.
    """

    def __init__(
        self,
        application: Application,
        *,
        limit: int = LARGEST_BODY,
        seconds: float | None = None,
        concurrent: int = MAX_BODIES_UNDER_WAY,
    ) -> None:
        self.application = application
        self.limit = limit
        self.seconds = settings.ENV.request_seconds if seconds is None else seconds
        self.concurrent = concurrent
        # In the order in which they began; a dictionary is the ordered set that Python has.
        self._under_way: dict[asyncio.Timeout, None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then let the application answer; or refuse it."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        try:
            body = await self._read(scope["headers"], receive)
        except ClientGone:
            return
        except Refusal as refusal:
            await _refuse(scope, refusal.status, send)
            await _discard(receive)
            return
        if scope["method"] == "HEAD":
            send = _without_body(send)
        await self.application(_with_length(scope, body), _replay(body, receive), send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes:
        if _declared_length(headers) > self.limit:
            raise Refusal(413)
        try:
            async with asyncio.timeout(self.seconds) as deadline:
                with self._counted(deadline):
                    return await self._read_chunks(receive)
        except TimeoutError:
            raise Refusal(408) from None

    @contextmanager
    def _counted(self, deadline: asyncio.Timeout) -> Iterator[None]:
        """Count the body among those under way; one too many, and the oldest of them is out of time at once."""
        if len(self._under_way) >= self.concurrent:
            oldest = next(iter(self._under_way))
            del self._under_way[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())
        self._under_way[deadline] = None
        try:
            yield
        finally:
            self._under_way.pop(deadline, None)

    async def _read_chunks(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message.get("body", b"")
            if len(body) > self.limit:
                raise Refusal(413)
            if not message.get("more_body", False):
                return bytes(body)


class KnownLengthMiddleware:
    """Refuse what a server without BoundedBodies passes on: a body of unknown length, or of one over the limit."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or ""
        if "HTTP_TRANSFER_ENCODING" in request.META and not length:
            return refusal_of(411, request.path)
        if length.isdecimal() and int(length) > LARGEST_BODY:
            return refusal_of(413, request.path)
        return self.get_response(request)


def refusal_of(status: int, path: str) -> HttpResponse:
    """The answer to a body that is not taken: a problem for programs, a page for people, the connection closed."""
    code, detail = REFUSALS[status]
    if path.startswith("/api/"):
        problem = problem_body(status, code, detail, path=path)
        response = HttpResponse(
            json.dumps(problem), status=status, content_type=MEDIA_TYPE
        )
    else:
        # Without the request: nobody knows yet who sent it, and nothing is asked of the database for it.
        page = loader.render_to_string(
            "errors/problem.html", {"title": TITLES[status], "detail": detail}
        )
        response = HttpResponse(page, status=status)
    response["Cache-Control"] = "no-store"
    return response


async def _refuse(scope: Scope, status: int, send: Send) -> None:
    logger.warning(
        "body refused",
        status=status,
        path=scope["path"],
        client=str(scope.get("client")),
    )
    response = refusal_of(status, scope["path"])
    headers = [
        (name.lower().encode(), value.encode()) for name, value in response.items()
    ]
    headers += [
        (b"content-length", str(len(response.content)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


async def _discard(receive: Receive) -> None:
    """Take a little more of what is under way, so that the client reads the refusal instead of a broken connection."""
    left = MAX_DISCARDED_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _declared_length(headers: Headers) -> int:
    """The announced length; 0 for none and for one that is no number, since what arrives is counted anyway."""
    for name, value in headers:
        if name.lower() == b"content-length":
            # Twenty digits are over any limit; Python refuses to read some thousands of them.
            return int(value[:20]) if value.isdigit() else 0
    return 0


def _with_length(scope: Scope, body: bytes) -> Scope:
    """The same request with its body's true length, which readers further in go by."""
    framing = (b"content-length", b"transfer-encoding")
    has_framing = any(name.lower() in framing for name, _ in scope["headers"])
    if not body and not has_framing:
        return scope
    kept = [
        (name, value) for name, value in scope["headers"] if name.lower() not in framing
    ]
    return {**scope, "headers": [*kept, (b"content-length", str(len(body)).encode())]}


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give the whole body in one message, then whatever the server says next."""
    waiting: list[Message] = [
        {"type": "http.request", "body": body, "more_body": False}
    ]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed


def _without_body(send: Send) -> Send:
    """Send what the answer to GET would have said of itself, and none of what it would have carried."""

    async def sent(message: Message) -> None:
        await send(
            {**message, "body": b""}
            if message["type"] == "http.response.body"
            else message
        )

    return sent
