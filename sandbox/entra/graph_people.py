"""Graph's users: reading, searching, managers and memberships."""

import re
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sandbox.entra import odata
from sandbox.entra.callers import Callers
from sandbox.entra.directory import Directory
from sandbox.entra.graph_rows import (
    GROUP_FIELDS,
    PERSON_FIELDS,
    body_of,
    group_row,
    person_row,
)
from sandbox.entra.refusals import GraphRefusal, missing
from sandbox.world import Person

PERMISSION = "User.Read.All"
EXPAND = re.compile(r"manager(?:\((?P<options>.*)\))?")
MOST_CHECKED = 20


@dataclass
class People:
    """Handlers below /v1.0/users."""

    directory: Directory
    callers: Callers
    url: str
    page_size: int

    async def many(self, request: Request) -> Response:
        """GET /users with $filter, $search, $select and $top."""
        self.callers.need_permission(request, PERMISSION)
        query = dict(request.query_params)
        rows = [self._row(person) for person in self.directory.people.values()]
        rows = odata.narrow(
            rows, query, request.headers.get("consistencylevel") == "eventual"
        )
        rows = [odata.select(row, query.get("$select"), PERSON_FIELDS) for row in rows]
        return JSONResponse(
            odata.page(rows, query, self._self(request), self.page_size)
        )

    async def organization(self, request: Request) -> Response:
        """GET /organization: the one tenant."""
        self.callers.need_permission(request, PERMISSION, "Organization.Read.All")
        row = {"id": self.directory.world.tenant_id, "displayName": "Contoso"}
        return JSONResponse(
            {"@odata.context": f"{self.url}/$metadata#organization", "value": [row]}
        )

    async def one(self, request: Request) -> Response:
        """GET /users/{id}, with $expand=manager($levels=max|n;$select=…)."""
        self.callers.need_permission(request, PERMISSION)
        person = self._person(request)
        query = request.query_params
        row = odata.select(self._row(person), query.get("$select"), PERSON_FIELDS)
        if expand := query.get("$expand"):
            row |= self._managers(person, expand, request)
        return JSONResponse(
            {"@odata.context": f"{self.url}/$metadata#users/$entity", **row}
        )

    async def manager(self, request: Request) -> Response:
        """GET /users/{id}/manager; 404 when there is none."""
        self.callers.need_permission(request, PERMISSION)
        chain = self.directory.managers_of(self._person(request))
        if not chain:
            raise missing("manager")
        row = odata.select(
            self._row(chain[0]), request.query_params.get("$select"), PERSON_FIELDS
        )
        return JSONResponse({"@odata.type": "#microsoft.graph.user", **row})

    async def groups(self, request: Request) -> Response:
        """GET /users/{id}/transitiveMemberOf/microsoft.graph.group."""
        self.callers.need_permission(request, PERMISSION, "GroupMember.Read.All")
        query = dict(request.query_params)
        ids = self.directory.groups_of(self._person(request).oid)
        rows = [
            odata.select(
                group_row(self.directory.groups[oid]),
                query.get("$select"),
                GROUP_FIELDS,
            )
            for oid in ids
        ]
        return JSONResponse(
            odata.page(rows, query, self._self(request), self.page_size)
        )

    async def member_objects(self, request: Request) -> Response:
        """POST /users/{id}/getMemberObjects."""
        self.callers.need_permission(request, PERMISSION)
        body = await body_of(request)
        if not isinstance(body.get("securityEnabledOnly"), bool):
            raise GraphRefusal(
                400,
                "Request_BadRequest",
                "Parameter 'securityEnabledOnly' is missing or invalid.",
            )
        return JSONResponse(
            {"value": self.directory.groups_of(self._person(request).oid)}
        )

    async def check_groups(self, request: Request) -> Response:
        """POST /users/{id}/checkMemberGroups, at most 20 ids."""
        self.callers.need_permission(request, PERMISSION)
        asked = (await body_of(request)).get("groupIds")
        if not isinstance(asked, list) or len(asked) > MOST_CHECKED:
            raise GraphRefusal(
                400,
                "Request_BadRequest",
                "Invalid value specified for property 'groupIds'.",
            )
        mine = self.directory.groups_of(self._person(request).oid)
        return JSONResponse({"value": [oid for oid in mine if oid in asked]})

    async def change(self, request: Request) -> Response:
        """PATCH /users/{id} with accountEnabled, by the administrator only."""
        self.callers.need_admin(request)
        person = self._person(request)
        body = await body_of(request)
        if set(body) != {"accountEnabled"} or not isinstance(
            body["accountEnabled"], bool
        ):
            raise GraphRefusal(
                400, "Request_BadRequest", "Only 'accountEnabled' can be changed here."
            )
        self.directory.set_enabled(person.oid, body["accountEnabled"])
        return Response(status_code=204)

    def _person(self, request: Request) -> Person:
        key = request.path_params["id"]
        person = self.directory.find_person(key)
        if person is None:
            raise missing(key)
        return person

    def _row(self, person: Person) -> odata.Row:
        return person_row(person, self.directory.enabled[person.oid])

    def _managers(self, person: Person, expand: str, request: Request) -> odata.Row:
        match = EXPAND.fullmatch(expand)
        if match is None:
            raise GraphRefusal(
                400, "BadRequest", f"Could not find a property named '{expand}'."
            )
        options = dict(
            part.split("=", 1)
            for part in (match["options"] or "").split(";")
            if "=" in part
        )
        levels = options.get("$levels", "1")
        if levels != "1" and request.headers.get("consistencylevel") != "eventual":
            raise GraphRefusal(
                400,
                "Request_UnsupportedQuery",
                "$levels needs 'ConsistencyLevel: eventual'.",
            )
        if levels != "max" and not levels.isdigit():
            raise GraphRefusal(
                400, "BadRequest", f"Invalid value '{levels}' for $levels."
            )
        chain = self.directory.managers_of(person)[
            : None if levels == "max" else int(levels)
        ]
        nested: odata.Row = {}
        for manager in reversed(chain):
            row = odata.select(
                self._row(manager), options.get("$select"), PERSON_FIELDS
            )
            nested = {
                "manager": {"@odata.type": "#microsoft.graph.user", **row, **nested}
            }
        return nested

    def _self(self, request: Request) -> str:
        return f"{self.url}{request.url.path.removeprefix('/v1.0')}?{request.url.query}"
