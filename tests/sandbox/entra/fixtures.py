"""One running Entra ID and Graph for all tests of a run: import the fixtures into a conftest."""

from collections.abc import Iterator

import pytest

from tests.sandbox.entra.running import Running, as_it_was, running


@pytest.fixture(scope="session")
def entra_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The server that all tests of a run share; use `world` or `directory` instead."""
    with running(tmp_path_factory.mktemp("entra")) as server:
        yield server


@pytest.fixture
def world(entra_server: Running) -> Iterator[Running]:
    """A running directory in its first state, without faults."""
    with as_it_was(entra_server) as server:
        yield server
