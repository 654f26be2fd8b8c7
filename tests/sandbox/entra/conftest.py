"""A running directory, put back in order after each test."""

from tests.sandbox.entra.fixtures import entra_server, world

__all__ = ["entra_server", "world"]
