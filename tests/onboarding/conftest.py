"""A directory to sign in with, and a cluster to leave."""

import pytest

from tests import factories
from tests import scene as scenes
from tests.directory import directory, entra_server
from tests.provisioning.conftest import kubernetes, kubernetes_server, place

__all__ = ["directory", "entra_server", "kubernetes", "kubernetes_server", "place"]


@pytest.fixture(autouse=True)
def _confirmed(request: pytest.FixtureRequest) -> None:
    """The cost centres that teams of these tests name are confirmed."""
    uses_database = request.node.get_closest_marker("django_db") is not None
    if uses_database or {"db", "transactional_db"} & set(request.fixturenames):
        # Before the test's transaction begins, they would stay for every test that follows.
        request.getfixturevalue("db")
        for code in ("CC-1", "CC-9", "CC-4711"):
            factories.cost_centre(code)


@pytest.fixture
def scene(db: None) -> scenes.Scene:
    """Ada's team on a cluster with 24 GPUs, and the people who decide."""
    return scenes.scene()
