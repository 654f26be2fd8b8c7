"""A directory to sign in with."""

from tests.backstages import backend, backstage_server
from tests.directory import directory, entra_server

__all__ = ["backend", "backstage_server", "directory", "entra_server"]
