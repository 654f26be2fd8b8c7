"""The application: every route of Entra ID, of Graph and of the sandbox's switches."""

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from sandbox.entra.authorize import AuthorizeEndpoint, Codes
from sandbox.entra.callers import Callers
from sandbox.entra.daemons import Daemon
from sandbox.entra.directory import Directory
from sandbox.entra.discovery import Metadata
from sandbox.entra.graph_absence import Absences
from sandbox.entra.graph_app_roles import AppRoles
from sandbox.entra.graph_groups import Groups
from sandbox.entra.graph_people import People
from sandbox.entra.keys import SigningKey
from sandbox.entra.pipelines import Pipeline
from sandbox.entra.refusals import GraphRefusal, graph_error
from sandbox.entra.switches import Faults, Switches
from sandbox.entra.token import TokenEndpoint
from sandbox.entra.tokens import Issuer
from sandbox.world import World


def _secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass
class EntraSandbox:
    """One tenant with one application, served as `app` at `base` (https://localhost:PORT).

    A world with Azure has a second one, the `daemon`, by which programs call it with `azure_secret`; the `pipeline` is
    one that calls the portal with the token of its workflow. With `browser_base`, metadata sends browsers there for
    sign-in and sign-out: `browser_app`, plain HTTP.
    """

    world: World
    base: str
    client_secret: str = field(default_factory=_secret)
    admin_secret: str = field(default_factory=_secret)
    azure_secret: str = field(default_factory=_secret)
    key_file: Path | None = None
    browser_base: str | None = None
    page_size: int = 100
    app: ASGIApp = field(init=False)
    browser_app: ASGIApp = field(init=False)
    directory: Directory = field(init=False)

    def __post_init__(self) -> None:
        self.directory = Directory(self.world)
        self.issuer = Issuer(
            self.base, self.directory, SigningKey.ensure(self.key_file)
        )
        self.callers = Callers(self.issuer, self.admin_secret)
        azure = self.world.azure
        self.daemon = Daemon(self.issuer, azure, self.azure_secret) if azure else None
        self.pipeline = Pipeline(self.issuer)
        faults = Faults(_nothing)
        self.metadata = Metadata(self.issuer, self.browser_base or self.base)
        codes = Codes()
        pages = self._pages(codes)
        routes = [
            *pages,
            *self._entra(codes),
            Mount("/v1.0", routes=self._graph()),
            *self._switches(faults),
        ]
        handlers: dict[Any, Any] = {GraphRefusal: _refuse, 404: _unknown}
        faults.app = Starlette(routes=routes, exception_handlers=handlers)
        self.app = faults
        self.browser_app = Starlette(routes=pages)

    @property
    def authority(self) -> str:
        """The address MSAL is given."""
        return f"{self.base}/{self.world.tenant_id}"

    @property
    def dirty(self) -> bool:
        """Whether something changed since the last `snapshot`."""
        return self.directory.dirty

    def snapshot(self) -> dict[str, Any]:
        """Return the state for JSON and count it as saved."""
        self.directory.dirty = False
        return self.directory.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.directory.restore(state)

    def describe(self) -> dict[str, str]:
        """Return what a client needs to know, secrets included."""
        return {
            "authority": self.authority,
            "graph": f"{self.base}/v1.0",
            "sign_in": self.browser_base or self.base,
            "tenant_id": self.world.tenant_id,
            "client_id": self.world.client_id,
            "client_secret": self.client_secret,
            "admin_secret": self.admin_secret,
        }

    def _pages(self, codes: Codes) -> list[BaseRoute]:
        tenant = self.metadata.in_tenant
        authorize = AuthorizeEndpoint(self.issuer, codes)
        return [
            Route(
                "/{tenant}/oauth2/v2.0/authorize",
                tenant(authorize.answer),
                methods=["GET", "POST"],
            ),
            Route("/{tenant}/oauth2/v2.0/logout", tenant(self.metadata.sign_out)),
        ]

    def _entra(self, codes: Codes) -> list[BaseRoute]:
        metadata, tenant = self.metadata, self.metadata.in_tenant
        token = TokenEndpoint(
            self.issuer, codes, self.client_secret, self.pipeline, self.daemon
        )
        return [
            Route("/common/discovery/instance", metadata.instances),
            Route(
                "/{tenant}/v2.0/.well-known/openid-configuration",
                tenant(metadata.configuration),
            ),
            Route("/{tenant}/discovery/v2.0/keys", tenant(metadata.keys)),
            Route(
                "/{tenant}/oauth2/v2.0/token", tenant(token.answer), methods=["POST"]
            ),
        ]

    def _graph(self) -> list[BaseRoute]:
        url = f"{self.base}/v1.0"
        people = People(self.directory, self.callers, url, self.page_size)
        groups = Groups(self.directory, self.callers, url, self.page_size)
        absences = Absences(self.directory, self.callers, url)
        return [
            *self._service_principal(
                AppRoles(self.directory, self.callers, url, self.page_size)
            ),
            Route("/organization", people.organization),
            Route("/users", people.many),
            Route("/users/{id}", people.one, methods=["GET"]),
            Route("/users/{id}", people.change, methods=["PATCH"]),
            Route("/users/{id}/manager", people.manager),
            Route("/users/{id}/presence", absences.presence),
            Route(
                "/users/{id}/mailboxSettings", absences.set_replies, methods=["PATCH"]
            ),
            Route(
                "/users/{id}/mailboxSettings/automaticRepliesSetting", absences.replies
            ),
            Route(
                "/communications/getPresencesByUserId",
                absences.presences,
                methods=["POST"],
            ),
            Route(
                "/users/{id}/getMemberObjects", people.member_objects, methods=["POST"]
            ),
            Route(
                "/users/{id}/checkMemberGroups", people.check_groups, methods=["POST"]
            ),
            Route(
                "/users/{id}/transitiveMemberOf/microsoft.graph.group", people.groups
            ),
            Route("/groups", groups.many),
            Route("/groups/{id}", groups.one),
            Route(
                "/groups/{id}/transitiveMembers/microsoft.graph.user", groups.members
            ),
            Route("/groups/{id}/members/microsoft.graph.user", groups.direct_members),
            Route("/groups/{id}/members/$ref", groups.add, methods=["POST"]),
            Route(
                "/groups/{id}/members/{member}/$ref", groups.remove, methods=["DELETE"]
            ),
        ]

    def _service_principal(self, roles: AppRoles) -> list[BaseRoute]:
        routes: list[BaseRoute] = []
        for here in ("/servicePrincipals(appId='{app}')", "/servicePrincipals/{id}"):
            assigned = f"{here}/appRoleAssignedTo"
            routes += [
                Route(here, roles.one),
                Route(assigned, roles.assigned, methods=["GET"]),
                Route(assigned, roles.assign, methods=["POST"]),
                Route(f"{assigned}/{{assignment}}", roles.withdraw, methods=["DELETE"]),
            ]
        return routes

    def _switches(self, faults: Faults) -> list[BaseRoute]:
        switches = Switches(self.issuer, self.callers, faults)
        return [
            Route("/sandbox/faults", switches.set_fault, methods=["POST"]),
            Route("/sandbox/faults", switches.clear_faults, methods=["DELETE"]),
            Route("/sandbox/tokens", switches.mint, methods=["POST"]),
            Route("/sandbox/next-id-token", switches.bend_next, methods=["POST"]),
            Route("/sandbox/application", switches.set_application, methods=["PATCH"]),
            Route("/sandbox/away", switches.set_away, methods=["POST"]),
        ]


async def _nothing(*_: object) -> None:
    return None


async def _refuse(request: Request, refusal: Exception) -> Response:
    if not isinstance(refusal, GraphRefusal):
        raise refusal
    return refusal.response()


async def _unknown(request: Request, error: Exception) -> Response:
    message = (
        f"Resource not found for the segment '{request.url.path.rpartition('/')[2]}'."
    )
    return JSONResponse(graph_error("BadRequest", message), 404)
