"""How requests come to the views under ASGI: in one thread, and asynchronous views in the loop."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import AsyncToSync
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path
from pytest_django import Settings

from portal.http.handler import OneThreadHandler
from tests.recordings.calling import Reply, call


async def lines() -> Any:
    """Two lines, each from the loop."""
    for line in ("one\n", "two\n"):
        await asyncio.sleep(0)
        yield line


async def stream(request: HttpRequest) -> StreamingHttpResponse:
    """An asynchronous view, as that of the events is."""
    return StreamingHttpResponse(lines())


def plain(request: HttpRequest) -> HttpResponse:
    """A synchronous view, as nearly all are."""
    return HttpResponse(request.body)


def broken(request: HttpRequest) -> HttpResponse:
    """A view that fails."""
    raise RuntimeError("broken")


urlpatterns = [
    path("sign-in/stream", stream),
    path("sign-in/plain", plain),
    path("sign-in/broken", broken),
]
handler500 = "portal.http.problems.failed_page"


@pytest.fixture
def server(settings: Settings) -> OneThreadHandler:
    """The portal's handler and middleware before the views above, which ask for nobody to be signed in."""
    settings.ROOT_URLCONF = __name__
    return OneThreadHandler()


def ask(server: Any, where: str, body: bytes = b"") -> Reply:
    """The answer to somebody who is not signed in."""
    headers = {"host": "testserver", "content-length": str(len(body))}
    return call(server, "GET", where, {}, headers, body)


def test_a_request_does_not_go_back_to_the_loop_before_its_view(
    server: OneThreadHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    went_back = []
    go_back: Any = AsyncToSync.__call__

    def noted(self: Any, *given: Any, **named: Any) -> Any:
        went_back.append(self.awaitable)
        return go_back(self, *given, **named)

    monkeypatch.setattr(AsyncToSync, "__call__", noted)
    answer = ask(server, "/sign-in/plain", b"said")
    assert (answer.status, answer.body) == (200, b"said")
    assert went_back == []


def test_an_asynchronous_view_streams_from_the_loop(server: OneThreadHandler) -> None:
    answer = ask(server, "/sign-in/stream")
    assert (answer.status, answer.body) == (200, b"one\ntwo\n")


def test_a_view_that_fails_is_answered_with_the_page_for_it(
    server: OneThreadHandler, settings: Settings
) -> None:
    settings.DEBUG_PROPAGATE_EXCEPTIONS = False
    answer = ask(server, "/sign-in/broken")
    assert answer.status == 500
    assert b"broken" not in answer.body
