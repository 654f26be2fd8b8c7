"""Graph's service principal of the one application: its app roles, and who is assigned them."""

import hashlib
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sandbox.entra import odata
from sandbox.entra.callers import Callers
from sandbox.entra.directory import Directory
from sandbox.entra.graph_rows import body_of
from sandbox.entra.keys import encode
from sandbox.entra.refusals import GraphRefusal, missing
from sandbox.entra.tokens import SERVICE_PRINCIPAL
from sandbox.world import role_id

PERMISSION = "Application.Read.All"
NAME = "Quartermaster"
SINCE = "2026-01-05T08:00:00Z"
FIELDS = ("id", "appId", "displayName", "servicePrincipalType", "appRoles")


@dataclass
class AppRoles:
    """Handlers below /v1.0/servicePrincipals(appId='…') and /v1.0/servicePrincipals/{id}."""

    directory: Directory
    callers: Callers
    url: str
    page_size: int

    async def one(self, request: Request) -> Response:
        """GET the service principal, with $select."""
        self.callers.need_permission(request, PERMISSION)
        self._known(request)
        world = self.directory.world
        row = {
            "id": SERVICE_PRINCIPAL,
            "appId": world.client_id,
            "displayName": NAME,
            "servicePrincipalType": "Application",
            "appRoles": [
                _role(number, value) for number, value in enumerate(world.app_roles, 1)
            ],
        }
        row = odata.select(row, request.query_params.get("$select"), FIELDS)
        return JSONResponse(
            {"@odata.context": f"{self.url}/$metadata#servicePrincipals/$entity", **row}
        )

    async def assigned(self, request: Request) -> Response:
        """GET …/appRoleAssignedTo: which people and groups are assigned which of its app roles, page by page."""
        self.callers.need_permission(request, PERMISSION)
        self._known(request)
        here = f"{self.url}{request.url.path.removeprefix('/v1.0')}?{request.url.query}"
        page = odata.page(
            self._rows(), dict(request.query_params), here, self.page_size
        )
        return JSONResponse(
            {"@odata.context": f"{self.url}/$metadata#appRoleAssignments", **page}
        )

    async def assign(self, request: Request) -> Response:
        """POST …/appRoleAssignedTo {principalId, resourceId, appRoleId}, by the administrator only."""
        self.callers.need_admin(request)
        self._known(request)
        body = await body_of(request)
        principal, value = (
            str(body.get("principalId")),
            self._value(body.get("appRoleId")),
        )
        if (
            principal not in self.directory.people
            and principal not in self.directory.groups
        ):
            raise missing(principal)
        if value is None or not self.directory.assign(principal, value):
            message = (
                "Permission being assigned already exists on the object"
                if value
                else "Invalid appRoleId."
            )
            raise GraphRefusal(400, "Request_BadRequest", message)
        return JSONResponse(self._row(principal, value), 201)

    async def withdraw(self, request: Request) -> Response:
        """DELETE …/appRoleAssignedTo/{assignment}, by the administrator only."""
        self.callers.need_admin(request)
        self._known(request)
        key = request.path_params["assignment"]
        for row in self._rows():
            if row["id"] == key:
                self.directory.withdraw(
                    row["principalId"], str(self._value(row["appRoleId"]))
                )
                return Response(status_code=204)
        raise missing(key)

    def _known(self, request: Request) -> None:
        asked = request.path_params
        known = (
            asked.get("app") == self.directory.world.client_id
            or asked.get("id") == SERVICE_PRINCIPAL
        )
        if not known:
            raise missing(str(asked.get("app") or asked.get("id")))

    def _value(self, key: Any) -> str | None:
        values = {
            role_id(number): value
            for number, value in enumerate(self.directory.world.app_roles, 1)
        }
        return values.get(str(key))

    def _rows(self) -> list[odata.Row]:
        return [
            self._row(oid, value)
            for oid, values in self.directory.assigned.items()
            for value in values
        ]

    def _row(self, oid: str, value: str) -> odata.Row:
        people, groups = self.directory.people, self.directory.groups
        return {
            "id": encode(hashlib.sha256(f"{oid}/{value}".encode()).digest()),
            "deletedDateTime": None,
            "appRoleId": role_id(self.directory.world.app_roles.index(value) + 1),
            "createdDateTime": SINCE,
            "principalDisplayName": people[oid].name
            if oid in people
            else groups[oid].name,
            "principalId": oid,
            "principalType": "User" if oid in people else "Group",
            "resourceDisplayName": NAME,
            "resourceId": SERVICE_PRINCIPAL,
        }


def _role(number: int, value: str) -> odata.Row:
    return {
        "allowedMemberTypes": ["User"],
        "description": value,
        "displayName": value,
        "id": role_id(number),
        "isEnabled": True,
        "origin": "Application",
        "value": value,
    }
