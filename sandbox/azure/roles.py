"""Who may do what: role definitions, and role assignments to people, groups and programs."""

import re
import uuid
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sandbox.azure.errors import ArmError, conflict, invalid
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.state import Resource, State
from sandbox.azure_world import CLUSTER_IDENTITY_ID, ROLE_ID, AzureSpec
from sandbox.entra.directory import Directory

VERSION = "2022-04-01"
ASSIGNMENT = "Microsoft.Authorization/roleAssignments"
DEFINITION = "Microsoft.Authorization/roleDefinitions"
ASSIGNMENTS = "/{scope...}/providers/" + ASSIGNMENT
DEFINITIONS = "/{scope...}/providers/" + DEFINITION
PERMISSIONS = "/{scope...}/providers/Microsoft.Authorization/permissions"
CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
PRINCIPAL = re.compile(r"principalId eq '([^']*)'", re.IGNORECASE)
ROLE_NAME = re.compile(r"roleName eq '([^']*)'", re.IGNORECASE)
# The ids of built-in roles are the same everywhere.
BUILT_IN: Mapping[str, tuple[str, list[str], list[str]]] = {
    "8e3af657-a8ff-443c-a75c-2fe8c4bcb635": ("Owner", ["*"], []),
    CONTRIBUTOR: (
        "Contributor",
        ["*"],
        [
            "Microsoft.Authorization/*/Delete",
            "Microsoft.Authorization/*/Write",
            "Microsoft.Authorization/elevateAccess/Action",
        ],
    ),
    "acdd72a7-3385-48ef-bd42-f606fba81ae7": ("Reader", ["*/read"], []),
    "f58310d9-a9f6-439a-9e8d-f62e7b41a168": (
        "Role Based Access Control Administrator",
        [f"{ASSIGNMENT}/write", f"{ASSIGNMENT}/delete", "*/read"],
        [],
    ),
    "0e5f05e5-9ab9-446b-b98d-1e2157c94125": (
        "Quota Request Operator",
        [
            *("Microsoft.Quota/quotas/read", "Microsoft.Quota/quotas/write"),
            *("Microsoft.Quota/usages/read", "Microsoft.Quota/quotaRequests/read"),
        ],
        [],
    ),
    "7f951dda-4ed3-4680-a7ca-43fe172d538d": (
        "AcrPull",
        ["Microsoft.ContainerRegistry/registries/pull/read"],
        [],
    ),
    "8311e382-0749-4cb8-b61a-304f252e45ec": (
        "AcrPush",
        [
            *("Microsoft.ContainerRegistry/registries/pull/read",),
            *("Microsoft.ContainerRegistry/registries/push/write",),
        ],
        [],
    ),
    "b93aa761-3e63-49ed-ac28-beffa264f7ac": (
        "Container Registry Repository Reader",
        [],
        [],
    ),
    "2a1e307c-b015-4ebd-883e-5b7698a07328": (
        "Container Registry Repository Writer",
        [],
        [],
    ),
    "5e0bd9bd-7b93-4f28-af87-19fc36ad61bd": (
        "Cognitive Services OpenAI User",
        ["Microsoft.CognitiveServices/*/read"],
        [],
    ),
}


@dataclass(frozen=True)
class Roles:
    """Assigns roles, and says what a principal may do."""

    state: State
    directory: Directory
    spec: AzureSpec

    def routes(self) -> list[Route]:
        """The operations of this module."""
        return [
            Route("GET", ASSIGNMENTS, VERSION, self.many),
            Route("GET", ASSIGNMENTS + "/{name}", VERSION, self.one),
            Route("PUT", ASSIGNMENTS + "/{name}", VERSION, self.put),
            Route("DELETE", ASSIGNMENTS + "/{name}", VERSION, self.delete),
            Route("GET", DEFINITIONS, VERSION, self.definitions),
            Route("GET", DEFINITIONS + "/{name}", VERSION, self.definition),
            Route("GET", PERMISSIONS, VERSION, self.permissions),
        ]

    def begin(self) -> None:
        """Assign the roles that an administrator assigned before, unless they are there."""
        group = f"{self._subscription}/resourceGroups/{self.spec.resource_group}"
        first = [
            (self._subscription, ROLE_ID, self.spec.principal_id),
            (group, CONTRIBUTOR, CLUSTER_IDENTITY_ID),
        ]
        if "begun" not in self.state.table("roles"):
            for scope, role, principal in first:
                self._keep(
                    str(uuid.uuid5(uuid.NAMESPACE_URL, scope + principal)),
                    scope,
                    role,
                    principal,
                )
            self.state.table("roles")["begun"] = True

    def allows(self, principal: str, action: str, path: str) -> bool:
        """Whether a principal may do something there."""
        return any(
            _matches(action, each["actions"])
            and not _matches(action, each["notActions"])
            for each in self._permissions(principal, path)
        )

    def one(self, call: Call) -> Answer:
        """Answer with an assignment."""
        return Answer(200, self._need(call))

    def many(self, call: Call) -> Answer:
        """Answer with the assignments at a scope, below it and above it, as `atScope()` and `principalId eq` say."""
        scope, asked = f"/{call.part('scope')}".lower(), call.query.get("$filter", "")
        principal = PRINCIPAL.search(asked)
        rows = []
        for row in self.state.all(ASSIGNMENT):
            at = row["properties"]["scope"].lower()
            is_above, is_below = _covers(at, scope), _covers(scope, at)
            is_asked = (
                principal is None or row["properties"]["principalId"] == principal[1]
            )
            if is_asked and (
                is_above or (is_below and "atscope()" not in asked.lower())
            ):
                rows.append(row)
        return Answer(200, {"value": rows})

    def put(self, call: Call) -> Answer:
        """Assign a role to a principal; the same assignment again is the same."""
        said, scope = call.body().get("properties") or {}, f"/{call.part('scope')}"
        role = str(said.get("roleDefinitionId") or "").rpartition("/")[2].lower()
        principal = str(said.get("principalId") or "")
        if self._role(role) is None:
            message = f"The specified role definition with ID '{role.replace('-', '')}' does not exist."
            raise ArmError(404, "RoleDefinitionDoesNotExist", message)
        kind = self._check_principal(principal, said.get("principalType"))
        name = call.part("name").lower()
        for row in self.state.all(ASSIGNMENT):
            there = row["properties"]
            is_same = (
                there["scope"].lower() == scope.lower()
                and there["principalId"] == principal
                and there["roleDefinitionId"].rpartition("/")[2] == role
            )
            if row["name"] == name:
                if not is_same:
                    message = "Tenant ID, application ID, principal ID, and scope are not allowed to be updated."
                    raise invalid(message, "RoleAssignmentUpdateNotPermitted")
                return Answer(200, row)
            if is_same:
                there_id = row["name"].replace("-", "")
                message = f"The role assignment already exists. The ID of the existing role assignment is {there_id}."
                raise conflict(message, "RoleAssignmentExists")
        made = self._keep(name, scope, role, principal, kind, said.get("condition"))
        return Answer(201, made)

    def delete(self, call: Call) -> Answer:
        """Withdraw an assignment; 204 where there is none."""
        found = next(
            (
                row
                for row in self.state.all(ASSIGNMENT)
                if row["name"] == call.part("name").lower()
            ),
            None,
        )
        if found is None:
            return Answer(204)
        self.state.remove(found["id"])
        return Answer(200, found)

    def definitions(self, call: Call) -> Answer:
        """Answer with all roles, or with that of a name."""
        asked = ROLE_NAME.search(call.query.get("$filter", ""))
        rows = [
            row
            for role in (*BUILT_IN, ROLE_ID)
            if (row := self._role(role)) is not None
        ]
        return Answer(
            200,
            {
                "value": [
                    row
                    for row in rows
                    if not asked or row["properties"]["roleName"] == asked[1]
                ]
            },
        )

    def definition(self, call: Call) -> Answer:
        """Answer with a role."""
        found = self._role(call.part("name").lower())
        if found is None:
            message = f"The specified role definition with ID '{call.part('name')}' does not exist."
            raise ArmError(404, "RoleDefinitionDoesNotExist", message)
        return Answer(200, found)

    def permissions(self, call: Call) -> Answer:
        """Answer with what the caller may do at a scope, a row for each role."""
        scope = f"/{call.part('scope')}"
        rows = list(self._permissions(call.caller.oid, scope))
        return Answer(200, {"value": rows})

    @property
    def _subscription(self) -> str:
        return f"/subscriptions/{self.spec.subscription_id}"

    def _permissions(self, principal: str, path: str) -> Iterator[dict[str, Any]]:
        for row in self.state.all(ASSIGNMENT):
            said = row["properties"]
            if said["principalId"] == principal and _covers(said["scope"], path):
                role = self._role(said["roleDefinitionId"].rpartition("/")[2])
                if role is not None:
                    yield from role["properties"]["permissions"]

    def _role(self, resource_id: str) -> Resource | None:
        if resource_id == ROLE_ID:
            title, actions, without = (
                "Quartermaster",
                list(self.spec.role_actions),
                list[str](),
            )
        elif resource_id in BUILT_IN:
            title, actions, without = BUILT_IN[resource_id]
        else:
            return None
        said = {
            "roleName": title,
            "type": "CustomRole" if resource_id == ROLE_ID else "BuiltInRole",
            "description": title,
            "assignableScopes": [self._subscription if resource_id == ROLE_ID else "/"],
            "permissions": [
                {
                    "actions": actions,
                    "notActions": without,
                    "dataActions": [],
                    "notDataActions": [],
                }
            ],
        }
        at = f"{self._subscription}/providers/{DEFINITION}/{resource_id}"
        return {"id": at, "name": resource_id, "type": DEFINITION, "properties": said}

    def _check_principal(self, principal: str, asked: Any) -> str:
        known: dict[str, Container[str]] = {
            "User": self.directory.people,
            "Group": self.directory.groups,
            "ServicePrincipal": (self.spec.principal_id, CLUSTER_IDENTITY_ID),
        }
        kind = next((kind for kind, ids in known.items() if principal in ids), None)
        if kind is None:
            tenant = self.directory.world.tenant_id
            message = (
                f"Principal {principal.replace('-', '')} does not exist in the directory {tenant}. Check that you have "
                "the correct principal ID. If you are creating this principal and then immediately assigning a role, "
                "this error might be related to a replication delay. In this case, set the role assignment "
                "principalType property to a value, such as ServicePrincipal, User, or Group.  See "
                "https://aka.ms/docs-principaltype"
            )
            raise invalid(message, "PrincipalNotFound")
        if asked is not None and asked != kind:
            message = (
                f"The PrincipalId '{principal.replace('-', '')}' has type '{kind}' , which is different from specified "
                f"PrinciaplType '{asked}'."
            )
            raise invalid(message, "UnmatchedPrincipalType")
        return kind

    def _keep(
        self,
        name: str,
        scope: str,
        role: str,
        principal: str,
        kind: str = "ServicePrincipal",
        condition: Any = None,
    ) -> Resource:
        now = datetime.fromtimestamp(self.state.clock.now(), UTC).isoformat()
        said = {
            "scope": scope,
            "roleDefinitionId": f"{self._subscription}/providers/{DEFINITION}/{role}",
            "principalId": principal,
            "principalType": kind,
            "condition": condition,
            "conditionVersion": "2.0" if condition else None,
            "createdOn": now,
            "updatedOn": now,
        }
        at = f"{scope}/providers/{ASSIGNMENT}/{name}"
        return self.state.put(
            {"id": at, "name": name, "type": ASSIGNMENT, "properties": said}
        )

    def _need(self, call: Call) -> Resource:
        name = call.part("name").lower()
        found = next(
            (row for row in self.state.all(ASSIGNMENT) if row["name"] == name), None
        )
        if found is None:
            message = f"The role assignment '{name}' is not found."
            raise ArmError(404, "RoleAssignmentNotFound", message)
        return found


def _covers(scope: str, path: str) -> bool:
    """Whether what holds at a scope holds at a path."""
    return f"{path.lower().rstrip('/')}/".startswith(f"{scope.lower().rstrip('/')}/")


def _matches(action: str, patterns: list[str]) -> bool:
    expressions = (re.escape(pattern).replace(r"\*", ".*") for pattern in patterns)
    return any(
        re.fullmatch(expression, action, re.IGNORECASE) for expression in expressions
    )
