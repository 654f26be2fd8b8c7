"""A directory to sign in with."""

from tests.directory import directory, entra_server

__all__ = ["directory", "entra_server"]
