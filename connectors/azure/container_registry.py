"""Azure Container Registry: where images are, and how rights on them are given. The only importer of its SDK."""

from dataclasses import dataclass
from typing import Any

from connectors.azure.ids import check
from connectors.azure.session import AzureSession, shaped, word

ABAC = "AbacRepositoryPermissions"


@dataclass(frozen=True)
class Registry:
    """A registry. One that `is_abac` heeds the roles for repositories alone, not AcrPull and AcrPush."""

    id: str
    name: str
    location: str
    login_server: str
    is_abac: bool

    @classmethod
    def of(cls, told: Any) -> "Registry":
        """What the SDK gives for one."""
        said = told.properties
        return cls(
            id=str(told.id),
            name=str(told.name),
            location=str(told.location),
            login_server=str(said.login_server or ""),
            is_abac=word(said.role_assignment_mode) == ABAC,
        )


@dataclass(frozen=True)
class AzureContainerRegistry:
    """Reads registries; raises as `session` says."""

    session: AzureSession

    def registry(self, resource_group: str, name: str) -> Registry | None:
        """Return a registry, None where there is none of this name."""
        check(resource_group=resource_group, registry=name)
        told = self.session.read(
            lambda: self._client.registries.get(resource_group, name)
        )
        return None if told is None else shaped(Registry.of, told)

    def registries(self) -> list[Registry]:
        """Return the registries of the subscription."""
        rows = self.session.call(lambda: list(self._client.registries.list()))
        return [shaped(Registry.of, row) for row in rows]

    @property
    def _client(self) -> Any:
        from azure.mgmt.containerregistry import ContainerRegistryManagementClient

        return self.session.client(ContainerRegistryManagementClient)
