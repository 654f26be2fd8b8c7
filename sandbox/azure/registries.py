"""Container registries, which know two ways of giving rights: for all of one, or for its repositories."""

from dataclasses import dataclass

from sandbox.azure.errors import no_such_resource
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.state import Resource
from sandbox.azure_world import AzureSpec, RegistrySpec

KIND = "Microsoft.ContainerRegistry/registries"
VERSION = "2025-11-01"
EVERYWHERE = "/subscriptions/{subscription}/providers/" + KIND
IN_GROUP = "/subscriptions/{subscription}/resourceGroups/{group}/providers/" + KIND


@dataclass(frozen=True)
class Registries:
    """Shows them."""

    spec: AzureSpec

    def routes(self) -> list[Route]:
        """The operations of this module."""
        return [
            Route("GET", EVERYWHERE, VERSION, self.many),
            Route("GET", IN_GROUP, VERSION, self.many),
            Route("GET", IN_GROUP + "/{name}", VERSION, self.one),
        ]

    def many(self, call: Call) -> Answer:
        """Answer with all of them."""
        return Answer(200, {"value": [self._shown(one) for one in self._there(call)]})

    def one(self, call: Call) -> Answer:
        """Answer with one."""
        asked = call.part("name").lower()
        found = next(
            (one for one in self._there(call) if one.name.lower() == asked), None
        )
        if found is None:
            raise no_such_resource(KIND, call.part("name"), call.part("group"))
        return Answer(200, self._shown(found))

    def _there(self, call: Call) -> tuple[RegistrySpec, ...]:
        group = self.spec.resource_group
        return (
            self.spec.registries
            if call.parts.get("group", group).lower() == group.lower()
            else ()
        )

    def _shown(self, registry: RegistrySpec) -> Resource:
        mode = (
            "AbacRepositoryPermissions"
            if registry.is_abac
            else "LegacyRegistryPermissions"
        )
        return {
            "id": id_of(self.spec, registry),
            "name": registry.name,
            "type": KIND,
            "location": registry.region,
            "tags": {},
            "sku": {"name": "Premium", "tier": "Premium"},
            "properties": {
                "loginServer": f"{registry.name}.azurecr.io",
                "creationDate": "2026-03-02T09:00:00Z",
                "provisioningState": "Succeeded",
                "adminUserEnabled": False,
                "roleAssignmentMode": mode,
            },
        }


def id_of(spec: AzureSpec, registry: RegistrySpec) -> str:
    """Return the id of a registry."""
    at = f"/subscriptions/{spec.subscription_id}/resourceGroups/{spec.resource_group}/providers/{KIND}"
    return f"{at}/{registry.name}"
