"""What only the sandbox has: faults on demand, tokens to any wish, the application's token version."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sandbox.entra.callers import Callers
from sandbox.entra.directory import Away
from sandbox.entra.errors import Refusal
from sandbox.entra.graph_rows import body_of
from sandbox.entra.refusals import GraphRefusal, graph_error, missing
from sandbox.entra.tokens import Issuer

GRAPH_CODES = {
    401: "InvalidAuthenticationToken",
    403: "Authorization_RequestDenied",
    404: "Request_ResourceNotFound",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
}


@dataclass
class Fault:
    """What happens to paths that match: a status, or silence; `times` counts down, None is for ever."""

    path: re.Pattern[str]
    status: int | None
    times: int | None = None
    retry_after: str | None = None
    query: re.Pattern[str] = field(default_factory=lambda: re.compile(""))

    def matches(self, scope: Scope) -> bool:
        """Whether it is for a call of this path and query."""
        asked = scope.get("query_string", b"").decode()
        return bool(self.path.search(scope["path"]) and self.query.search(asked))


@dataclass
class Faults:
    """ASGI middleware that makes chosen requests fail."""

    app: ASGIApp
    active: list[Fault] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = self._match(scope)
        if fault is None:
            await self.app(scope, receive, send)
        elif fault.status is None:
            await _hang(receive)
        else:
            await _failure(scope["path"], fault.status, fault.retry_after)(
                scope, receive, send
            )

    def _match(self, scope: Scope) -> Fault | None:
        if scope["type"] != "http" or scope["path"].startswith("/sandbox/"):
            return None
        fault = next((fault for fault in self.active if fault.matches(scope)), None)
        if fault is not None and fault.times is not None:
            fault.times -= 1
            if fault.times < 1:
                self.active.remove(fault)
        return fault


async def _hang(receive: Receive) -> None:
    message = await receive()
    while message["type"] != "http.disconnect":
        message = await receive()


def _failure(path: str, status: int, retry_after: str | None) -> Response:
    headers = {"Retry-After": retry_after} if retry_after else {}
    if path.startswith("/v1.0"):
        return JSONResponse(
            graph_error(GRAPH_CODES.get(status, "UnknownError"), "Fault."),
            status,
            headers,
        )
    return JSONResponse(
        Refusal("temporarily_unavailable", 90033).body(), status, headers
    )


@dataclass
class Switches:
    """Handlers below /sandbox, for the administrator only."""

    issuer: Issuer
    callers: Callers
    faults: Faults

    async def set_fault(self, request: Request) -> Response:
        """POST /sandbox/faults {path, status | hang: true, query?, times?, retry_after?}."""
        self.callers.need_admin(request)
        body = await body_of(request)
        try:
            path, query = re.compile(body["path"]), re.compile(body.get("query", ""))
            status = None if body.get("hang") else int(body["status"])
        except (KeyError, TypeError, ValueError, re.error) as error:
            raise GraphRefusal(400, "BadRequest", f"Not a fault: {error!r}") from error
        retry_after = body.get("retry_after")
        self.faults.active.append(
            Fault(
                path,
                status,
                body.get("times"),
                None if retry_after is None else str(retry_after),
                query,
            )
        )
        return Response(status_code=204)

    async def clear_faults(self, request: Request) -> Response:
        """DELETE /sandbox/faults."""
        self.callers.need_admin(request)
        self.faults.active.clear()
        return Response(status_code=204)

    async def mint(self, request: Request) -> Response:
        """POST /sandbox/tokens {kind: id|api|graph, person?, version?, nonce?, scope?} and wishes."""
        self.callers.need_admin(request)
        body = await body_of(request)
        return JSONResponse({"token": self.issuer.bent(self._claims(body), body)})

    async def bend_next(self, request: Request) -> Response:
        """POST /sandbox/next-id-token {claims?, remove?, headers?}: what the next sign-in gets."""
        self.callers.need_admin(request)
        self.issuer.wishes = await body_of(request)
        return Response(status_code=204)

    async def set_application(self, request: Request) -> Response:
        """PATCH /sandbox/application {requestedAccessTokenVersion: 1 | 2}."""
        self.callers.need_admin(request)
        version = (await body_of(request)).get("requestedAccessTokenVersion")
        if version not in (1, 2):
            raise GraphRefusal(
                400, "BadRequest", "requestedAccessTokenVersion is 1 or 2."
            )
        self.issuer.api_version = version
        return Response(status_code=204)

    async def set_away(self, request: Request) -> Response:
        """POST /sandbox/away {person, until?: ISO 8601 with zone}, or {person, back: true}."""
        self.callers.need_admin(request)
        body = await body_of(request)
        person = self.issuer.directory.find_person(str(body.get("person")))
        if person is None:
            raise missing(str(body.get("person")))
        try:
            until = (
                datetime.fromisoformat(body["until"]).astimezone(UTC)
                if body.get("until")
                else None
            )
        except (TypeError, ValueError) as error:
            raise GraphRefusal(
                400, "BadRequest", "until is a moment with its zone."
            ) from error
        self.issuer.directory.set_away(
            person.oid, None if body.get("back") else Away(end=until)
        )
        return Response(status_code=204)

    def _claims(self, body: dict[str, Any]) -> dict[str, Any]:
        person = None
        if key := body.get("person"):
            person = self.issuer.directory.find_person(str(key))
            if person is None:
                raise missing(str(key))
        if body.get("kind") == "api":
            return self.issuer.api_token(
                person, str(body.get("scope", "access_as_user")), body.get("version")
            )
        if body.get("kind") == "graph":
            return self.issuer.graph_token(person)
        if person is None:
            raise GraphRefusal(400, "BadRequest", "An ID token needs a person.")
        return self.issuer.id_token(person, body.get("nonce"))
