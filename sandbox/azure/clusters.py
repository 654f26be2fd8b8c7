"""AKS managed clusters: the world's Kubernetes clusters, as Azure describes them."""

from dataclasses import dataclass

from sandbox.azure.errors import no_such_resource
from sandbox.azure.fleet import Fleet
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.state import Resource, State
from sandbox.azure.usage import POOL
from sandbox.azure_world import CLUSTER_IDENTITY_ID, AzureSpec

KIND = "Microsoft.ContainerService/managedClusters"
VERSION = "2026-08-01"
EVERYWHERE = "/subscriptions/{subscription}/providers/" + KIND
IN_GROUP = "/subscriptions/{subscription}/resourceGroups/{group}/providers/" + KIND
ONE = IN_GROUP + "/{cluster}"
KUBERNETES = "1.36.2"


@dataclass(frozen=True)
class Clusters:
    """Shows them; nothing of them can be changed but their pools."""

    state: State
    fleet: Fleet
    spec: AzureSpec

    def routes(self) -> list[Route]:
        """The operations of this module."""
        return [
            Route("GET", EVERYWHERE, VERSION, self.many),
            Route("GET", IN_GROUP, VERSION, self.many),
            Route("GET", ONE, VERSION, self.one),
        ]

    def one(self, call: Call) -> Answer:
        """Answer with a cluster."""
        return Answer(200, self._shown(self.need(call)))

    def many(self, call: Call) -> Answer:
        """Answer with all of them."""
        is_ours = (
            call.parts.get("group", self.spec.resource_group).lower()
            == self.spec.resource_group.lower()
        )
        names = sorted(self.fleet.specs) if is_ours else []
        return Answer(200, {"value": [self._shown(name) for name in names]})

    def need(self, call: Call) -> str:
        """Return the name of the cluster that a call names; raise ArmError 404."""
        asked = call.part("cluster").lower()
        is_ours = call.part("group").lower() == self.spec.resource_group.lower()
        name = next(
            (name for name in self.fleet.specs if name.lower() == asked and is_ours),
            None,
        )
        if name is None:
            raise no_such_resource(KIND, call.part("cluster"), call.part("group"))
        return name

    def id_of(self, name: str) -> str:
        """Return the id of a cluster by its name."""
        spec = self.spec
        return f"/subscriptions/{spec.subscription_id}/resourceGroups/{spec.resource_group}/providers/{KIND}/{name}"

    def _shown(self, name: str) -> Resource:
        spec, resource_id = self.spec, self.id_of(name)
        region = self.fleet.specs[name].region
        at = f"/subscriptions/{spec.subscription_id}/resourcegroups/{spec.resource_group}/providers"
        identity = f"{at}/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"
        pools = [
            {
                "name": pool["name"],
                **pool["properties"],
                "count": len(self.fleet.machines(name, pool["name"])),
            }
            for pool in self.state.all(POOL, resource_id)
        ]
        return {
            "id": resource_id,
            "name": name,
            "type": KIND,
            "location": region,
            "tags": {},
            "sku": {"name": "Base", "tier": "Standard"},
            "identity": {
                "type": "UserAssigned",
                "userAssignedIdentities": {
                    identity: {
                        "principalId": CLUSTER_IDENTITY_ID,
                        "clientId": CLUSTER_IDENTITY_ID,
                    }
                },
            },
            "properties": {
                "provisioningState": "Succeeded",
                "powerState": {"code": "Running"},
                "kubernetesVersion": KUBERNETES,
                "currentKubernetesVersion": KUBERNETES,
                "dnsPrefix": name,
                "nodeResourceGroup": f"MC_{spec.resource_group}_{name}_{region}",
                "enableRBAC": True,
                "agentPoolProfiles": pools,
            },
        }
