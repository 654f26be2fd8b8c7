"""A post office to send to."""

from collections.abc import Iterator

import pytest

from tests.backstages import backend, backstage_server, notifying
from tests.posting import Running, posting

__all__ = ["backend", "backstage_server", "notifying"]


@pytest.fixture(scope="session")
def post_office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with posting(tmp_path_factory.mktemp("post")) as running:
        yield running


@pytest.fixture
def post(post_office: Running) -> Running:
    """The post office, empty."""
    post_office.forget()
    return post_office
