"""The sample subscription as data: what it may use, who may do what in it, its registry and its models."""

from dataclasses import dataclass, field
from typing import Any

SUBSCRIPTION_ID = "44444444-4444-4444-8444-444444444444"
# The application by which the portal calls Azure; people sign in by another one.
AZURE_CLIENT_ID = "55555555-5555-4555-8555-555555555555"
AZURE_PRINCIPAL_ID = "66666666-6666-4666-8666-666666666666"
CLUSTER_IDENTITY_ID = "77777777-7777-4777-8777-777777777777"
ROLE_ID = "88888888-8888-4888-8888-888888888888"
RESOURCE_GROUP = "gpu-platform"
# Who in a cluster may ask for tokens as the application, without a secret.
FEDERATED_SUBJECT = "system:serviceaccount:quartermaster:quartermaster"

# deploy/azure/role.json holds the same, and a test compares them.
ROLE_ACTIONS = (
    "Microsoft.Authorization/permissions/read",
    "Microsoft.Authorization/roleAssignments/delete",
    "Microsoft.Authorization/roleAssignments/read",
    "Microsoft.Authorization/roleAssignments/write",
    "Microsoft.CognitiveServices/accounts/delete",
    "Microsoft.CognitiveServices/accounts/deployments/delete",
    "Microsoft.CognitiveServices/accounts/deployments/read",
    "Microsoft.CognitiveServices/accounts/deployments/write",
    "Microsoft.CognitiveServices/accounts/read",
    "Microsoft.CognitiveServices/accounts/write",
    "Microsoft.CognitiveServices/deletedAccounts/read",
    "Microsoft.CognitiveServices/locations/modelCapacities/read",
    "Microsoft.CognitiveServices/locations/models/read",
    "Microsoft.CognitiveServices/locations/operationResults/read",
    "Microsoft.CognitiveServices/locations/resourceGroups/deletedAccounts/delete",
    "Microsoft.CognitiveServices/locations/usages/read",
    "Microsoft.Compute/capacityReservationGroups/capacityReservations/delete",
    "Microsoft.Compute/capacityReservationGroups/capacityReservations/read",
    "Microsoft.Compute/capacityReservationGroups/capacityReservations/write",
    "Microsoft.Compute/capacityReservationGroups/delete",
    "Microsoft.Compute/capacityReservationGroups/read",
    "Microsoft.Compute/capacityReservationGroups/write",
    "Microsoft.Compute/locations/operations/read",
    "Microsoft.Compute/locations/usages/read",
    "Microsoft.Compute/skus/read",
    "Microsoft.ContainerRegistry/registries/read",
    "Microsoft.ContainerService/locations/operations/read",
    "Microsoft.ContainerService/managedClusters/agentPools/delete",
    "Microsoft.ContainerService/managedClusters/agentPools/read",
    "Microsoft.ContainerService/managedClusters/agentPools/write",
    "Microsoft.ContainerService/managedClusters/read",
    "Microsoft.Quota/quotaRequests/read",
    "Microsoft.Quota/quotas/read",
    "Microsoft.Quota/quotas/write",
)


@dataclass(frozen=True)
class QuotaLimit:
    """What a subscription may use of a family in a region, in vCPUs, or in thousands of tokens a minute.

    `increases` says what becomes of a request for more: granted after a moment, decided after days, or refused.
    """

    region: str
    name: str
    limit: int
    increases: str = "granted"


@dataclass(frozen=True)
class RegistrySpec:
    """A container registry; `is_abac` where roles are given for repositories, not for the registry."""

    name: str
    region: str
    is_abac: bool = False


@dataclass(frozen=True)
class AzureSpec:
    """One subscription with one resource group for everything; its AKS clusters are the world's clusters."""

    limits: tuple[QuotaLimit, ...]
    registries: tuple[RegistrySpec, ...] = ()
    subscription_id: str = SUBSCRIPTION_ID
    resource_group: str = RESOURCE_GROUP
    region: str = "eastus"
    client_id: str = AZURE_CLIENT_ID
    principal_id: str = AZURE_PRINCIPAL_ID
    role_actions: tuple[str, ...] = field(default=ROLE_ACTIONS)

    @classmethod
    def of(cls, row: dict[str, Any]) -> "AzureSpec":
        """Read one from JSON with the keys of the dataclasses; raise TypeError on unknown ones."""
        return cls(
            limits=tuple(QuotaLimit(**one) for one in row.pop("limits")),
            registries=tuple(RegistrySpec(**one) for one in row.pop("registries", [])),
            role_actions=tuple(row.pop("role_actions", ROLE_ACTIONS)),
            **row,
        )


def sample() -> AzureSpec:
    """Return the subscription of the demo: one family is full, one nearly, and one has room for eight GPUs."""
    eastus = (
        # cores is all of a region, lowPriorityCores are its spot nodes.
        QuotaLimit("eastus", "cores", 1500),
        QuotaLimit("eastus", "lowPriorityCores", 192),
        QuotaLimit("eastus", "standardDSv5Family", 100),
        QuotaLimit("eastus", "standardNDSH100v5Family", 192, "refused"),
        QuotaLimit("eastus", "standard NDAMSv4_A100Family", 384, "days"),
        QuotaLimit("eastus", "StandardNCADSA100v4Family", 192, "days"),
        QuotaLimit("eastus", "StandardNCadsH100v5Family", 160, "days"),
        QuotaLimit("eastus", "Standard NCASv3_T4 Family", 512),
        QuotaLimit("eastus", "StandardNVADSA10v5Family", 432),
        QuotaLimit("eastus", "OpenAI.S0.AccountCount", 30),
        QuotaLimit("eastus", "OpenAI.Standard.gpt-4o", 450),
        QuotaLimit("eastus", "OpenAI.GlobalStandard.gpt-4o", 1000),
        QuotaLimit("eastus", "OpenAI.Standard.gpt-4o-mini", 600),
        QuotaLimit("eastus", "OpenAI.GlobalStandard.gpt-4.1-mini", 2000),
        QuotaLimit("eastus", "OpenAI.Standard.text-embedding-3-large", 350),
    )
    westeurope = (
        QuotaLimit("westeurope", "cores", 350),
        QuotaLimit("westeurope", "lowPriorityCores", 100),
        QuotaLimit("westeurope", "standardDSv5Family", 100),
        QuotaLimit("westeurope", "StandardNCADSA100v4Family", 96),
        QuotaLimit("westeurope", "Standard NCASv3_T4 Family", 64),
        QuotaLimit("westeurope", "OpenAI.S0.AccountCount", 30),
        QuotaLimit("westeurope", "OpenAI.Standard.gpt-4o", 150),
    )
    registries = (
        RegistrySpec("gpuplatform", "eastus"),
        RegistrySpec("gpuplatformabac", "eastus", True),
    )
    return AzureSpec(limits=eastus + westeurope, registries=registries)
