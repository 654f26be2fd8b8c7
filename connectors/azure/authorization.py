"""Azure's roles: who may do what at a scope, and what the portal itself may do there. The only importer of its SDK.

A scope is the id of a subscription, a resource group or a resource.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from connectors.azure.ids import same
from connectors.azure.rights import Permission
from connectors.azure.session import AzureSession, shaped, word
from connectors.errors import PermanentError

PrincipalKind = Literal["User", "Group", "ServicePrincipal"]
VERSION = "2022-04-01"
# Built-in roles have the same ids everywhere.
ACR_PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
# The same for a registry whose roles are given for repositories.
REPOSITORY_WRITER = "2a1e307c-b015-4ebd-883e-5b7698a07328"
OPENAI_USER = "5e0bd9bd-7b93-4f28-af87-19fc36ad61bd"
REPOSITORY_ACTIONS = (
    "content/read",
    "metadata/read",
    "content/write",
    "metadata/write",
)


@dataclass(frozen=True)
class RoleAssignment:
    """A role that a person, group or program has at a scope; `role` is the id of a built-in role, or of one's own."""

    id: str
    scope: str
    role: str
    principal: str
    kind: str
    condition: str = ""

    @classmethod
    def of(cls, told: Any) -> "RoleAssignment":
        """What the SDK gives for one."""
        return cls(
            id=str(told.id),
            scope=str(told.scope),
            role=str(told.role_definition_id).rpartition("/")[2].lower(),
            principal=str(told.principal_id).lower(),
            kind=word(told.principal_type),
            condition=str(told.condition or ""),
        )


@dataclass(frozen=True)
class AzureAuthorization:
    """Assigns and withdraws roles, and reads what the caller may do; raises as `session` says."""

    session: AzureSession

    def permissions(self, scope: str) -> list[Permission]:
        """Return what the portal's own identity may do at a scope; `rights.missing` says what is not among it."""
        path = f"{_scope(scope)}/providers/Microsoft.Authorization/permissions"
        return shaped(Permission.all_of, self.session.get(path, VERSION))

    def assignments(self, scope: str, principal: str = "") -> list[RoleAssignment]:
        """Return the roles that hold at a scope, those given above it included; of one principal, or of all."""
        where = _scope(scope)
        asked = (
            f"principalId eq '{_principal(principal)}'" if principal else "atScope()"
        )
        rows = self.session.call(
            lambda: list(
                self._client.role_assignments.list_for_scope(where, filter=asked)
            )
        )
        found = [shaped(RoleAssignment.of, row) for row in rows]
        # Azure also tells of those below when it is asked for a principal.
        return [
            one
            for one in found
            if f"{where}/".lower().startswith(f"{one.scope.rstrip('/')}/".lower())
        ]

    def assign(
        self,
        scope: str,
        role: str,
        principal: str,
        kind: PrincipalKind = "Group",
        *,
        condition: str = "",
    ) -> RoleAssignment:
        """Give a principal a role at a scope; once is enough, whoever did it.

        PermanentError(code="principal_not_found") where the directory knows no such principal, also for some minutes
        after it was made. With a condition, another assignment of this role there stays as it is and is returned.
        """
        from azure.mgmt.authorization.v2022_04_01.models import (
            RoleAssignmentCreateParameters,
        )

        where = _scope(scope)
        body = RoleAssignmentCreateParameters(
            role_definition_id=f"{self._subscription}/providers/Microsoft.Authorization/roleDefinitions/{role}",
            principal_id=_principal(principal),
            principal_type=kind,
            condition=condition or None,
            condition_version="2.0" if condition else None,
        )
        name = assignment_name(where, role, principal)
        try:
            told = self.session.call(
                lambda: self._client.role_assignments.create(where, name, body)
            )
        except PermanentError as error:
            there = (
                self._there(where, role, principal)
                if error.code == "role_assignment_exists"
                else None
            )
            if there is None:
                raise
            return there
        return shaped(RoleAssignment.of, told)

    def withdraw(self, scope: str, role: str, principal: str) -> None:
        """Take a role from a principal that it has at exactly this scope, whoever gave it."""
        there = self._there(_scope(scope), role, principal)
        if there is not None:
            where, _, name = there.id.partition(
                "/providers/Microsoft.Authorization/roleAssignments/"
            )
            self.session.call(lambda: self._client.role_assignments.delete(where, name))

    def _there(self, scope: str, role: str, principal: str) -> RoleAssignment | None:
        rows = (
            row for row in self.assignments(scope, principal) if same(row.scope, scope)
        )
        return next((row for row in rows if row.role == role.lower()), None)

    @property
    def _subscription(self) -> str:
        return f"/subscriptions/{self.session.subscription_id}"

    @property
    def _client(self) -> Any:
        from azure.mgmt.authorization.v2022_04_01 import AuthorizationManagementClient

        return self.session.client(AuthorizationManagementClient)


def assignment_name(scope: str, role: str, principal: str) -> str:
    """Return the name of an assignment: the same for the same, so that none is made twice."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{scope}|{principal}|{role}".lower()))


def of_repositories(prefixes: Iterable[str]) -> str:
    """Return the condition under which `REPOSITORY_WRITER` holds: in repositories whose names begin so."""
    allowed = list(prefixes)
    if not allowed:
        raise PermanentError(
            "A role for repositories needs the beginning of a name.", code="bad_name"
        )
    actions = " AND ".join(
        f"!(ActionMatches{{'Microsoft.ContainerRegistry/registries/repositories/{action}'}})"
        for action in REPOSITORY_ACTIONS
    )
    attribute = "@Request[Microsoft.ContainerRegistry/registries/repositories:name]"
    names = " OR ".join(
        f"{attribute} StringStartsWithIgnoreCase '{_quoted(each)}'" for each in allowed
    )
    return f"(({actions}) OR ({names}))"


def _quoted(text: str) -> str:
    if "'" in text or not text.isprintable():
        raise PermanentError(
            "The name of a repository has no quotation marks.", code="bad_name"
        )
    return text


def _scope(text: str) -> str:
    scope = text.rstrip("/")
    if (
        not scope.startswith("/subscriptions/")
        or any(sign in scope for sign in "?#%\\")
        or ".." in scope
    ):
        raise PermanentError(
            "This is no scope of Azure: it begins with /subscriptions/.",
            code="bad_name",
        )
    return scope


def _principal(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise PermanentError(
            "A principal is named by its object id.", code="bad_name"
        ) from error
