"""A running Azure, put back in order after each test, and the portal connected to it."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from tests.capacity.connected import Site, connected, site
from tests.sandbox.azure.fixtures import azure, azure_server
from tests.sandbox.azure.running import Running
from tests.scene import Scene
from tests.scene import scene as make_scene

__all__ = ["azure", "azure_server", "here"]


@pytest.fixture
def scene(db: None) -> Scene:
    """A team on a cluster with the people around it."""
    return make_scene()


@pytest.fixture
def here(db: None, azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site at the time of now, which is what pages and the API go by."""
    with connected(azure, monkeypatch):
        made = site(azure)
        made.time.at = timezone.now().replace(microsecond=0)
        yield made
