"""The application: reads a request, finds who may what, sends the answer, or what a fault makes of it."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as WebRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from sandbox.azure import errors
from sandbox.azure.accounts import Accounts
from sandbox.azure.callers import Callers
from sandbox.azure.clusters import Clusters
from sandbox.azure.deployments import Deployments
from sandbox.azure.errors import ArmError
from sandbox.azure.faults import Fault, Faults
from sandbox.azure.fleet import Fleet
from sandbox.azure.groups import Groups
from sandbox.azure.models import Models
from sandbox.azure.operations import Operations
from sandbox.azure.pools import Pools
from sandbox.azure.prices import PATH, Prices
from sandbox.azure.quota import Quota
from sandbox.azure.registries import Registries, id_of
from sandbox.azure.reservations import Reservations
from sandbox.azure.roles import Roles
from sandbox.azure.routing import Answer, Call, Route, Router
from sandbox.azure.skus import Skus
from sandbox.azure.state import State
from sandbox.azure.switches import Switches
from sandbox.azure.usage import Usage
from sandbox.azure_world import AzureSpec
from sandbox.entra import EntraSandbox
from sandbox.kubernetes import Cluster
from sandbox.world import ClusterSpec

TRANSPORT = "sandbox.transport"
METHODS = ["DELETE", "GET", "PATCH", "POST", "PUT"]


class _Cut(Response):
    """An answer that ends in the middle: the connection is closed after some bytes of the body."""

    def __init__(self, answer: Response, length: int) -> None:
        super().__init__(answer.body, answer.status_code, dict(answer.headers))
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


class _Dropped(Response):
    """No answer: the connection is closed."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[TRANSPORT].abort()
        # The server learns of it in the loop's next rounds; before that it would answer by itself.
        while (await receive())["type"] != "http.disconnect":
            pass


@dataclass
class AzureSandbox:
    """One subscription, served as `app` at `base` (https://localhost:PORT), with prices at `/api/retail/prices`.

    `entra` says whose tokens hold, `clusters` are its managed clusters. `asked` is what callers did, by permission.
    """

    spec: AzureSpec
    base: str
    entra: EntraSandbox
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    specs: Sequence[ClusterSpec] = ()
    admin_secret: str = ""
    stored: dict[str, Any] | None = None
    asked: set[str] = field(default_factory=set)
    app: ASGIApp = field(init=False)

    def __post_init__(self) -> None:
        self.state = State()
        if self.stored is not None:
            self.state.restore(self.stored)
        self.callers = Callers(self.entra.issuer, self.admin_secret)
        self.faults = Faults()
        self.fleet = Fleet(self.clusters, self.specs)
        self.operations = Operations(self.state)
        self.usage = Usage(self.state, self.fleet, self.spec)
        self.quota = Quota(self.state, self.usage, self.spec)
        self.roles = Roles(self.state, self.entra.directory, self.spec)
        self.switches = Switches(
            self.state, self.callers, self.faults, self.operations, self.quota
        )
        self._router = Router(self._routes())
        self.begin()
        self._prices = Prices(self.base)
        web = WebRoute("/{path:path}", self._respond, methods=METHODS)
        self.app = _with_transport(Starlette(routes=[web]))

    def begin(self) -> None:
        """Take up what the state holds: roles, pools, and how the autoscalers look after those."""
        self.roles.begin()
        self._pools.begin()
        self.fleet.ask(self.usage.permits)

    @property
    def dirty(self) -> bool:
        """Whether something changed since the last `snapshot`."""
        return self.state.dirty

    def snapshot(self) -> dict[str, Any]:
        """Return the state for JSON and count it as saved."""
        return self.state.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.state.restore(state)
        self.begin()

    def describe(self, token_file: str) -> dict[str, str]:
        """Return what a client needs to know, secrets included."""
        daemon = self.entra.daemon
        return {
            "arm": self.base,
            "prices": self.base,
            "authority": self.entra.base,
            "tenant_id": self.entra.world.tenant_id,
            "subscription_id": self.spec.subscription_id,
            "resource_group": self.spec.resource_group,
            "registry": id_of(self.spec, self.spec.registries[-1])
            if self.spec.registries
            else "",
            "client_id": self.spec.client_id,
            "client_secret": daemon.secret if daemon else "",
            "token_file": token_file,
            "admin_secret": self.admin_secret,
        }

    def _routes(self) -> list[Route]:
        state, doing, usage = self.state, self.operations, self.usage
        groups = Groups(state, doing, usage)
        clusters = Clusters(state, self.fleet, self.spec)
        models = Models(state, usage, self.spec)
        accounts = Accounts(state, doing, usage, models)
        self._pools = Pools(state, doing, usage, self.fleet, clusters, self.roles)
        parts = (
            *(
                usage,
                groups,
                Reservations(state, doing, usage, groups),
                Skus(),
                self.quota,
            ),
            *(clusters, self._pools, self.roles, Registries(self.spec)),
            *(accounts, Deployments(state, doing, usage, accounts, models), models),
        )
        return [*doing.routes(), *(route for part in parts for route in part.routes())]

    async def _respond(self, request: Request) -> Response:
        method, path = (
            request.method,
            request.scope["raw_path"].decode("latin-1").partition("?")[0],
        )
        fault = None if path.startswith("/sandbox/") else self.faults.take(method, path)
        if fault is not None and fault.spec.get("hang"):
            await asyncio.sleep(float(fault.spec["hang"]))
        if fault is not None and fault.status:
            return _faulty(fault)
        response = self._done_or_refused(
            request, await request.body(), method, path, fault
        )
        if fault is None:
            return response
        if fault.spec.get("drop"):
            return _Dropped()
        if "cut" in fault.spec:
            return _Cut(response, int(fault.spec["cut"]))
        if "truncate" in fault.spec:
            text = bytes(response.body[: int(fault.spec["truncate"])])
            return Response(text, response.status_code, media_type="application/json")
        return response

    def _done_or_refused(
        self,
        request: Request,
        content: bytes,
        method: str,
        path: str,
        fault: Fault | None,
    ) -> Response:
        if path == PATH:
            return _sent(self._prices.answer(request.query_params))
        try:
            return _sent(self._done(request, content, method, path, fault))
        except ArmError as refusal:
            return _sent(Answer(refusal.status, refusal.body(), refusal.headers))

    def _done(
        self,
        request: Request,
        content: bytes,
        method: str,
        path: str,
        fault: Fault | None,
    ) -> Answer:
        self.operations.settle()
        self.quota.settle()
        # Clients write the name of one parameter in capitals now and then.
        query = {
            "api-version" if key.lower() == "api-version" else key: value
            for key, value in request.query_params.items()
        }
        headers = {key.lower(): value for key, value in request.headers.items()}
        caller = self.callers.find(headers.get("authorization", ""))
        call = Call(method, path, query, content, self.base, caller, headers, {}, fault)
        if path.startswith("/sandbox/"):
            return self.switches.answer(call)
        route, parts = self._router.find(method, path)
        call = Call(
            method, path, query, content, self.base, caller, headers, parts, fault
        )
        self._check(call, route)
        answer = route.handler(call)
        self.operations.settle()
        return answer

    def _check(self, call: Call, route: Route) -> None:
        """Let the call pass when its subscription is ours, its version known, and its caller allowed."""
        named = [*call.path.split("/"), "", "", "", ""]
        if (
            named[1].lower() == "subscriptions"
            and named[2].lower() != self.spec.subscription_id
        ):
            raise errors.no_such_subscription(named[2])
        self._router.check_version(route, call.query)
        if not call.caller.is_admin:
            if not self.roles.allows(call.caller.oid, route.action, call.path):
                scope = call.path.rstrip("/")
                raise errors.not_allowed(
                    call.caller.client, call.caller.oid, route.action, scope
                )
            self.asked.add(route.action)
        is_here = named[4].lower() == self.spec.resource_group.lower()
        if named[3].lower() == "resourcegroups" and not is_here:
            raise errors.no_such_resource_group(named[4])


def _faulty(fault: Fault) -> Response:
    if "body" in fault.spec:
        return Response(str(fault.spec["body"]), fault.status, fault.headers)
    return _sent(Answer(fault.status, fault.error, fault.headers))


def _sent(answer: Answer) -> Response:
    if answer.body is None:
        return Response(None, answer.status, dict(answer.headers))
    text = json.dumps(answer.body, separators=(",", ":"))
    return Response(
        text, answer.status, dict(answer.headers), "application/json; charset=utf-8"
    )


def _with_transport(app: ASGIApp) -> ASGIApp:
    """An application that can close its connections: the one who sends is uvicorn's, who has them."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        scope[TRANSPORT] = getattr(getattr(send, "__self__", None), "transport", None)
        await app(scope, receive, send)

    return served
