"""The application: webhooks, the inbox, and the switches for its administrator."""

import hmac
import json
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sandbox.notices import cards, pages
from sandbox.notices.inbox import WAYS, Fault, Inbox

HTTP_UNKNOWN = 404


@dataclass
class NoticesSandbox:
    """Webhooks at `/teams/KEY`, `/slack/KEY`, `/webhook/KEY`; what they and the mail server got at `/`, `/messages`."""

    key: str
    admin_secret: str
    inbox: Inbox = field(default_factory=Inbox)
    app: ASGIApp = field(init=False)

    def __post_init__(self) -> None:
        self.app = Starlette(
            routes=[
                Route("/", self.page),
                Route("/messages", self.messages),
                Route("/messages", self.clear, methods=["DELETE"]),
                Route("/messages/{number:int}/html", self.mail),
                Route("/teams/{key}", self.teams, methods=["POST"]),
                Route("/slack/{key}", self.slack, methods=["POST"]),
                Route("/webhook/{key}", self.webhook, methods=["POST"]),
                Route("/sandbox/faults", self.set_fault, methods=["POST"]),
                Route("/sandbox/faults", self.clear_faults, methods=["DELETE"]),
            ]
        )

    async def page(self, request: Request) -> Response:
        """GET /: every message, the newest first."""
        return pages.inbox(reversed(self.inbox.messages))

    async def mail(self, request: Request) -> Response:
        """GET /messages/N/html: one mail as a mail program shows it."""
        wanted = request.path_params["number"]
        found = next(
            (message for message in self.inbox.messages if message["number"] == wanted),
            None,
        )
        return (
            PlainTextResponse("no such message", 404)
            if found is None
            else pages.mail(found)
        )

    async def messages(self, request: Request) -> Response:
        """GET /messages: {messages: […]}, the oldest first."""
        return JSONResponse({"messages": self.inbox.messages})

    async def teams(self, request: Request) -> Response:
        """POST /teams/KEY: an Adaptive Card in its envelope; 202 says nothing about its fate, as with the real one."""
        if (
            refusal := await self._refusal(request, "teams", PlainTextResponse("", 401))
        ) is not None:
            return refusal
        raw = await request.body()
        if len(raw) > cards.LARGEST_CARD:
            return PlainTextResponse("", 413)
        return self._keep(
            "teams",
            request,
            raw,
            PlainTextResponse("", 202),
            PlainTextResponse("", 400),
        )

    async def slack(self, request: Request) -> Response:
        """POST /slack/KEY: a message in Block Kit; answers `ok` or the word that Slack uses."""
        if (
            refusal := await self._refusal(
                request, "slack", PlainTextResponse("no_service", 404)
            )
        ) is not None:
            return refusal
        good, bad = PlainTextResponse("ok"), PlainTextResponse("invalid_blocks", 400)
        return self._keep("slack", request, await request.body(), good, bad)

    async def webhook(self, request: Request) -> Response:
        """POST /webhook/KEY: an event as Standard Webhooks has it; kept with its headers, whoever signed it."""
        refusal = await self._refusal(
            request, "webhook", PlainTextResponse("", HTTP_UNKNOWN)
        )
        if refusal is not None:
            return refusal
        raw = await request.body()
        try:
            body = json.loads(raw)
            title = str(body["type"])
        except (ValueError, KeyError, TypeError):
            return PlainTextResponse("", 400)
        self.inbox.add(
            "webhook",
            id=request.headers.get("webhook-id", ""),
            title=title,
            body=body,
            raw=raw.decode(),
            headers={
                name: value
                for name, value in request.headers.items()
                if name.startswith("webhook-") or name == "content-type"
            },
        )
        return Response(status_code=204)

    async def set_fault(self, request: Request) -> Response:
        """POST /sandbox/faults {way: one of WAYS, status | hang: true, times?, retry_after?, location?}."""
        if not self._is_admin(request):
            return PlainTextResponse("", 401)
        body = await request.json()
        if body.get("way") not in WAYS or not (
            body.get("hang") or isinstance(body.get("status"), int)
        ):
            return JSONResponse({"error": "not a fault"}, 400)
        status = None if body.get("hang") else body["status"]
        retry_after = body.get("retry_after")
        self.inbox.faults.append(
            Fault(
                body["way"],
                status,
                body.get("times"),
                None if retry_after is None else str(retry_after),
                body.get("location"),
            )
        )
        return Response(status_code=204)

    async def clear_faults(self, request: Request) -> Response:
        """DELETE /sandbox/faults."""
        if not self._is_admin(request):
            return PlainTextResponse("", 401)
        self.inbox.faults.clear()
        return Response(status_code=204)

    async def clear(self, request: Request) -> Response:
        """DELETE /messages."""
        if not self._is_admin(request):
            return PlainTextResponse("", 401)
        self.inbox.clear()
        return Response(status_code=204)

    async def _refusal(
        self, request: Request, way: str, unknown: Response
    ) -> Response | None:
        """Return what is answered instead of taking a message: to a wrong key, and while a fault is on."""
        if not hmac.compare_digest(
            request.path_params["key"].encode(), self.key.encode()
        ):
            return unknown
        fault = self.inbox.fault(way)
        if fault is None:
            return None
        if fault.status is None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            return Response(status_code=500)
        given = {"Retry-After": fault.retry_after, "Location": fault.location}
        return PlainTextResponse(
            "", fault.status, {name: value for name, value in given.items() if value}
        )

    def _keep(
        self, way: str, request: Request, raw: bytes, good: Response, bad: Response
    ) -> Response:
        try:
            body: Any = json.loads(raw)
        except ValueError:
            return bad
        title = cards.teams_title(body) if way == "teams" else cards.slack_title(body)
        if title is None:
            return bad
        self.inbox.add(
            way, id=request.headers.get("webhook-id", ""), title=title, body=body
        )
        return good

    def _is_admin(self, request: Request) -> bool:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), self.admin_secret.encode())
