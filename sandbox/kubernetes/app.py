"""The HTTP side of one cluster: reads a request, finds who may what, sends the answer."""

import asyncio
import json
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sandbox.kubernetes import api, switches
from sandbox.kubernetes.calls import Answer, Call, refused, target_of, text_answer
from sandbox.kubernetes.faults import Fault, refusal_of
from sandbox.kubernetes.identity import authenticate
from sandbox.kubernetes.impersonating import impersonated
from sandbox.kubernetes.logs import TEXT_PLAIN, LogStream
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.watching import Watch

if TYPE_CHECKING:
    from sandbox.kubernetes.cluster import Cluster

_METHODS = ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"]
_RESTORED = "the cluster was restored while it held this request"
_BUSY = "Too many requests, please try again later.\n"


class _CutResponse(Response):
    """An answer that ends in the middle: the connection is closed after some bytes of the body."""

    def __init__(self, response: Response, length: int) -> None:
        super().__init__(response.body, response.status_code, dict(response.headers))
        self._length = length

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        part = bytes(self.body[: self._length])
        await send({"type": "http.response.body", "body": part, "more_body": True})


class _CutStream(_CutResponse):
    """The same of an answer that goes on."""

    def __init__(self, response: StreamingResponse, length: int) -> None:
        super().__init__(
            Response(None, response.status_code, dict(response.headers)), length
        )
        self.raw_headers = response.raw_headers
        self._parts = response.body_iterator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        left = self._length
        async for part in self._parts:
            whole = part.encode() if isinstance(part, str) else bytes(part)
            await send(
                {"type": "http.response.body", "body": whole[:left], "more_body": True}
            )
            left -= len(whole)
            if left <= 0:
                return


def build(cluster: "Cluster") -> Starlette:
    """The ASGI application of one cluster."""

    async def endpoint(request: Request) -> Response:
        return await _respond(cluster, request)

    routes = [Route("/{path:path}", endpoint, methods=_METHODS)]
    return Starlette(routes=routes)


async def _respond(cluster: "Cluster", request: Request) -> Response:
    try:
        call = await _read(cluster, request)
        if call.path.startswith("/sandbox/"):
            return _sent(switches.handle(cluster, call))
        restored = cluster.restored
        fault = cluster.faults.take(call.method, call.path)
        if fault and fault.hang:
            await asyncio.sleep(fault.hang)
        if cluster.restored != restored:
            raise Refusal(503, _RESTORED, "ServiceUnavailable", {})
        if fault and fault.status:
            return _sent(_faulty(fault))
        response = _handle(cluster, call)
        if fault is None or fault.drop_after is None:
            return response
        if isinstance(response, StreamingResponse):
            return _CutStream(response, fault.drop_after)
        return _CutResponse(response, fault.drop_after)
    except Refusal as refusal:
        return _sent(refused(refusal))


async def _read(cluster: "Cluster", request: Request) -> Call:
    headers = {
        key.decode("latin-1"): value.decode("latin-1")
        for key, value in request.scope["headers"]
    }
    who = authenticate(
        headers.get("authorization"), {**cluster.tokens, **cluster.account_tokens}
    )
    who = impersonated(who, request.headers, cluster.authorizer)
    body = await request.body() if request.method not in {"GET", "HEAD"} else b""
    path = request.scope["path"]
    query = dict(request.query_params)
    return Call(request.method, path, query, headers, body, who, target_of(path))


def _handle(cluster: "Cluster", call: Call) -> Response:
    result = api.handle(cluster, call)
    cluster.controllers.settle()
    if isinstance(result, Watch):
        cluster.watches.add(result)
        return StreamingResponse(result.events(), media_type="application/json")
    if isinstance(result, LogStream):
        return StreamingResponse(result.chunks(), headers={"content-type": TEXT_PLAIN})
    return _sent(result)


def _faulty(fault: Fault) -> Answer:
    if fault.status == 429 and not fault.body:
        return text_answer(429, _BUSY, {"retry-after": str(fault.retry_after or 1)})
    if fault.body:
        headers = (
            {} if fault.retry_after is None else {"retry-after": str(fault.retry_after)}
        )
        plain = Answer(fault.status, fault.body.encode(), headers=headers)
        return (
            plain
            if _is_json(fault.body)
            else text_answer(fault.status, fault.body, headers)
        )
    return refused(refusal_of(fault))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _sent(answer: Answer) -> Response:
    kind = {"content-type": answer.content_type} if answer.content_type else {}
    headers = {**kind, "cache-control": "no-cache, private", **answer.headers}
    return Response(answer.body, answer.status, headers)
