"""A running Azure, put back in order after each test."""

from tests.sandbox.azure.fixtures import azure, azure_server

__all__ = ["azure", "azure_server"]
