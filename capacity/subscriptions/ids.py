"""Which subscription and resource group the fleet's clusters are in."""

from connectors.azure.ids import ResourceId, parsed
from fleet.models import Cluster

AKS = "Microsoft.ContainerService/managedClusters"


def aks_of(cluster: Cluster) -> ResourceId | None:
    """A cluster's resource id in its parts; None for one that is not known to be in Azure."""
    found = parsed(cluster.azure_id) if cluster.azure_id else None
    return (
        found if found is not None and found.kind.casefold() == AKS.casefold() else None
    )
