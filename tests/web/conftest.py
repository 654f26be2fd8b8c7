"""The sandbox directory, as the tests of accounts have it."""

from tests.directory import directory, entra_server

__all__ = ["directory", "entra_server"]
