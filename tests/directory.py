"""The portal pointed at a running Entra ID and Graph of the sandbox: import the fixtures into a conftest."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from accounts.directory.client import entra, graph
from tests.sandbox.entra.fixtures import entra_server
from tests.sandbox.entra.running import Running, as_it_was

__all__ = ["directory", "entra_server", "forget", "point_at"]
PORTAL = "http://127.0.0.1:8000"


@pytest.fixture
def directory(entra_server: Running, settings: Any) -> Iterator[Running]:
    """A directory in its first state, which the portal's settings name; put back in order afterwards."""
    point_at(entra_server, settings)
    with as_it_was(entra_server) as server:
        yield server
    forget()


def point_at(server: Running, settings: Any) -> None:
    """Make the portal's settings name this server."""
    settings.PUBLIC_URL = PORTAL
    settings.ENV = settings.ENV.model_copy(
        update={
            "entra_authority": server.tenant,
            "entra_client_id": server.sandbox.world.client_id,
            "entra_client_secret": SecretStr(server.sandbox.client_secret),
            "graph_url": server.graph_url,
            "entra_tenant_id": server.sandbox.world.tenant_id,
            "ca_file": server.ca,
            "role_groups": {"00000000-0000-4000-9000-000000000004": "platform_lead"},
        }
    )
    forget()


def forget() -> None:
    """Let go of the clients that were made for other settings."""
    entra.cache_clear()
    graph.cache_clear()
