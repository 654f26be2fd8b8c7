"""Graph's groups: reading, searching, members, and membership changes."""

from dataclasses import dataclass
from uuid import UUID

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
from sandbox.world import Group

PERMISSION = "GroupMember.Read.All"


@dataclass
class Groups:
    """Handlers below /v1.0/groups."""

    directory: Directory
    callers: Callers
    url: str
    page_size: int

    async def many(self, request: Request) -> Response:
        """GET /groups with $filter, $search, $select and $top."""
        self.callers.need_permission(request, PERMISSION)
        query = dict(request.query_params)
        rows = [group_row(group) for group in self.directory.groups.values()]
        rows = odata.narrow(
            rows, query, request.headers.get("consistencylevel") == "eventual"
        )
        rows = [odata.select(row, query.get("$select"), GROUP_FIELDS) for row in rows]
        return JSONResponse(
            odata.page(rows, query, self._self(request), self.page_size)
        )

    async def one(self, request: Request) -> Response:
        """GET /groups/{id}."""
        self.callers.need_permission(request, PERMISSION)
        row = odata.select(
            group_row(self._group(request)),
            request.query_params.get("$select"),
            GROUP_FIELDS,
        )
        return JSONResponse(
            {"@odata.context": f"{self.url}/$metadata#groups/$entity", **row}
        )

    async def members(self, request: Request) -> Response:
        """GET /groups/{id}/transitiveMembers/microsoft.graph.user, page by page."""
        self.callers.need_permission(request, PERMISSION)
        query = dict(request.query_params)
        people = self.directory.people_of(self._group(request).oid)
        rows = [
            person_row(person, self.directory.enabled[person.oid]) for person in people
        ]
        rows = [odata.select(row, query.get("$select"), PERSON_FIELDS) for row in rows]
        return JSONResponse(
            odata.page(rows, query, self._self(request), self.page_size)
        )

    async def direct_members(self, request: Request) -> Response:
        """GET /groups/{id}/members/microsoft.graph.user: without those of groups inside it."""
        self.callers.need_permission(request, PERMISSION)
        query = dict(request.query_params)
        direct = self.directory.members[self._group(request).oid]
        people = [
            person for oid, person in self.directory.people.items() if oid in direct
        ]
        rows = [
            person_row(person, self.directory.enabled[person.oid]) for person in people
        ]
        rows = [odata.select(row, query.get("$select"), PERSON_FIELDS) for row in rows]
        return JSONResponse(
            odata.page(rows, query, self._self(request), self.page_size)
        )

    async def add(self, request: Request) -> Response:
        """POST /groups/{id}/members/$ref with @odata.id, by the administrator only."""
        self.callers.need_admin(request)
        group = self._group(request)
        member = str((await body_of(request)).get("@odata.id", "")).rpartition("/")[2]
        if member not in self.directory.people and member not in self.directory.groups:
            raise missing(member)
        if not self.directory.add_member(group.oid, member):
            message = (
                "One or more added object references already exist for the following modified properties: "
                "'members'."
            )
            raise GraphRefusal(400, "Request_BadRequest", message)
        return Response(status_code=204)

    async def remove(self, request: Request) -> Response:
        """DELETE /groups/{id}/members/{member}/$ref, by the administrator only."""
        self.callers.need_admin(request)
        member = request.path_params["member"]
        if not self.directory.remove_member(self._group(request).oid, member):
            raise missing(member)
        return Response(status_code=204)

    def _group(self, request: Request) -> Group:
        key = request.path_params["id"]
        try:
            UUID(key)
        except ValueError as error:
            raise GraphRefusal(
                400, "Request_BadRequest", f"Invalid object identifier '{key}'."
            ) from error
        if key not in self.directory.groups:
            raise missing(key)
        return self.directory.groups[key]

    def _self(self, request: Request) -> str:
        return f"{self.url}{request.url.path.removeprefix('/v1.0')}?{request.url.query}"
