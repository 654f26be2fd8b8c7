"""The event stream that tells open pages what has changed: names only, the page then asks for what it may see."""

import asyncio
import re
from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.utils import timezone

from accounts.models import User
from accounts.roles import Permission
from portal.pages.broadcast import Listener, Sight, broadcaster

PING = 15.0
LOOK_AGAIN = 60.0
MOST_STREAMS = 5
# How often a page beyond that many looks by itself.
POLL_MILLISECONDS = 15_000
EVENT_ID = re.compile(r"[0-9]{1,18}")


async def events(request: HttpRequest) -> HttpResponseBase:
    """`changed <subject>-<id>` for what this person may see, until the session ends; a browser asks again by itself."""
    if request.method != "GET":
        return HttpResponse(status=405, headers={"Allow": "GET"})
    if not isinstance(request, ASGIRequest):
        # A synchronous server cannot hold a stream open; this answer tells browsers not to ask again.
        return HttpResponse(status=204)
    key = request.session.session_key or ""
    sight = await _sight(key)
    if sight is None:
        return HttpResponse("Sign in first.\n", status=401, content_type="text/plain")
    if broadcaster.streams_of(sight.user_id) >= MOST_STREAMS:
        return _poll_later()
    after = request.headers.get("Last-Event-ID", "")
    listener = await broadcaster.join(
        sight, after=int(after) if EVENT_ID.fullmatch(after) else None
    )
    response = StreamingHttpResponse(
        Stream(listener, key), content_type="text/event-stream"
    )
    response["Cache-Control"] = "private, no-store"
    response["X-Accel-Buffering"] = "no"
    return response


def _poll_later() -> HttpResponse:
    """A stream that ends at once; the page looks at everything whenever it opens, and opens it again in a while.

    A refusal would close it for good, and the page would stand still without a word.
    """
    response = HttpResponse(
        f"retry: {POLL_MILLISECONDS}\n\n", content_type="text/event-stream"
    )
    response["Cache-Control"] = "private, no-store"
    return response


class Stream:
    """What an answer sends; Django closes it, in another thread, when the browser has gone."""

    def __init__(self, listener: Listener, key: str) -> None:
        self._listener, self._key, self._loop = (
            listener,
            key,
            asyncio.get_running_loop(),
        )

    def __aiter__(self) -> AsyncIterator[str]:
        return _lines(self._listener, self._key)

    def close(self) -> None:
        """Stop listening at once, however the stream came to its end."""
        self._loop.call_soon_threadsafe(broadcaster.leave, self._listener)


async def _lines(listener: Listener, key: str) -> AsyncIterator[str]:
    """What the browser reads; ends when the session does."""
    clock = asyncio.get_running_loop()
    look_at = clock.time() + LOOK_AGAIN
    try:
        yield "retry: 3000\n\n"
        while True:
            try:
                yield await asyncio.wait_for(
                    listener.next(), min(PING, max(look_at - clock.time(), 0.01))
                )
            except TimeoutError:
                yield ": still here\n\n"
            if clock.time() >= look_at:
                sight = await _sight(key)
                if sight is None:
                    return
                listener.sight, look_at = sight, clock.time() + LOOK_AGAIN
    finally:
        broadcaster.leave(listener)


@sync_to_async(thread_sensitive=False)
def _sight(key: str) -> Sight | None:
    """What the person of a session may see now; None when the session is over or the account is off."""
    try:
        session = Session.objects.filter(
            session_key=key, expire_date__gt=timezone.now()
        ).first()
        user_id = session.get_decoded().get("_auth_user_id") if session else None
        rows = User.objects.prefetch_related("roles_held").filter(is_active=True)
        user = rows.filter(pk=user_id).first() if user_id else None
        if user is None:
            return None
        sees_all = user.may(Permission.SEE_ALL_TEAMS)
        return Sight(user_id=user.pk, teams=None if sees_all else user.team_ids)
    finally:
        # This thread belongs to no request, so nobody else would give its connection back.
        connections.close_all()
