"""One running Azure for all tests of a folder: import the fixtures into a conftest."""

from collections.abc import Iterator

import pytest

from tests.sandbox.azure.running import Running, as_it_was, running


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The server that all tests share; use `azure` instead."""
    with running(tmp_path_factory.mktemp("azure")) as server:
        yield server


@pytest.fixture
def azure(azure_server: Running) -> Iterator[Running]:
    """A running subscription in its first state, without faults."""
    with as_it_was(azure_server) as server:
        yield server
