"""A running directory and a running Azure, put back in order after each test."""

from tests.sandbox.azure.fixtures import azure, azure_server
from tests.sandbox.entra.fixtures import entra_server, world

__all__ = ["azure", "azure_server", "entra_server", "world"]
