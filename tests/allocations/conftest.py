"""One team on one cluster, for everything that is held and paid."""

import pytest

from tests.provisioning.conftest import kubernetes, kubernetes_server, place
from tests.scene import Scene
from tests.scene import scene as make

__all__ = ["kubernetes", "kubernetes_server", "place", "scene"]


@pytest.fixture
def scene(db: None) -> Scene:
    """A team on a cluster with the people around it, in a transaction that is undone."""
    return make()
