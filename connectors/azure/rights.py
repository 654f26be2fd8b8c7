"""What the portal has to be allowed in Azure, and what of it is missing. Pure: it reads lists of permissions.

`deploy/azure/role.json` grants exactly this.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# What is needed for what, as pages say it.
NEEDED: Mapping[str, tuple[str, ...]] = {
    "read sizes, quota and what is used of it": (
        "Microsoft.Compute/skus/read",
        "Microsoft.Compute/locations/usages/read",
        "Microsoft.Quota/quotas/read",
        "Microsoft.Quota/quotaRequests/read",
    ),
    "ask for more quota": ("Microsoft.Quota/quotas/write",),
    "reserve capacity": (
        "Microsoft.Compute/capacityReservationGroups/read",
        "Microsoft.Compute/capacityReservationGroups/write",
        "Microsoft.Compute/capacityReservationGroups/delete",
        "Microsoft.Compute/capacityReservationGroups/capacityReservations/read",
        "Microsoft.Compute/capacityReservationGroups/capacityReservations/write",
        "Microsoft.Compute/capacityReservationGroups/capacityReservations/delete",
        "Microsoft.Compute/locations/operations/read",
    ),
    "make and scale pools of nodes": (
        "Microsoft.ContainerService/managedClusters/read",
        "Microsoft.ContainerService/managedClusters/agentPools/read",
        "Microsoft.ContainerService/managedClusters/agentPools/write",
        "Microsoft.ContainerService/managedClusters/agentPools/delete",
        "Microsoft.ContainerService/locations/operations/read",
    ),
    "give and withdraw roles": (
        "Microsoft.Authorization/permissions/read",
        "Microsoft.Authorization/roleAssignments/read",
        "Microsoft.Authorization/roleAssignments/write",
        "Microsoft.Authorization/roleAssignments/delete",
        "Microsoft.ContainerRegistry/registries/read",
    ),
    "set up endpoints of Azure OpenAI": (
        "Microsoft.CognitiveServices/accounts/read",
        "Microsoft.CognitiveServices/accounts/write",
        "Microsoft.CognitiveServices/accounts/delete",
        "Microsoft.CognitiveServices/accounts/deployments/read",
        "Microsoft.CognitiveServices/accounts/deployments/write",
        "Microsoft.CognitiveServices/accounts/deployments/delete",
        "Microsoft.CognitiveServices/locations/models/read",
        "Microsoft.CognitiveServices/locations/modelCapacities/read",
        "Microsoft.CognitiveServices/locations/usages/read",
        "Microsoft.CognitiveServices/deletedAccounts/read",
        "Microsoft.CognitiveServices/locations/resourceGroups/deletedAccounts/delete",
        "Microsoft.CognitiveServices/locations/operationResults/read",
    ),
}


@dataclass(frozen=True)
class Permission:
    """What one role allows: the actions that match one of `actions` and none of `not_actions`; `*` is any text."""

    actions: tuple[str, ...]
    not_actions: tuple[str, ...] = ()

    def allows(self, action: str) -> bool:
        """Whether it allows an action; capitals do not count."""
        return _matches(action, self.actions) and not _matches(action, self.not_actions)

    @classmethod
    def all_of(cls, told: Mapping[str, Any]) -> "list[Permission]":
        """What Azure answers with."""
        return [
            cls(tuple(row["actions"]), tuple(row.get("notActions") or ()))
            for row in told["value"]
        ]


def missing(
    permissions: Iterable[Permission], needed: Mapping[str, Iterable[str]] = NEEDED
) -> dict[str, tuple[str, ...]]:
    """Return the actions that no role allows, by what they are needed for; empty when nothing is missing.

    One role takes nothing from what another allows.
    """
    held = list(permissions)
    absent = {
        purpose: tuple(
            action for action in actions if not any(one.allows(action) for one in held)
        )
        for purpose, actions in needed.items()
    }
    return {purpose: actions for purpose, actions in absent.items() if actions}


def _matches(action: str, patterns: Iterable[str]) -> bool:
    expressions = (re.escape(pattern).replace(r"\*", ".*") for pattern in patterns)
    return any(
        re.fullmatch(expression, action, re.IGNORECASE) for expression in expressions
    )
