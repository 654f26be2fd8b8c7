"""The directory that a team is brought from."""

from tests.directory import directory, entra_server

__all__ = ["directory", "entra_server"]
