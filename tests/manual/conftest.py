"""One team on one cluster, for everything that people carry out."""

import pytest

from tests.scene import Scene
from tests.scene import scene as make


@pytest.fixture
def scene(db: None) -> Scene:
    """A team on a cluster with the people around it, in a transaction that is undone."""
    return make()
