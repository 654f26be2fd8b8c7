"""The team of the scene, or two teams that know nothing of each other, in a transaction that is undone."""

import pytest

from tests.backstages import backend, backstage_server
from tests.scene import Scene
from tests.scene import scene as make_scene
from tests.world import World
from tests.world import world as make_world

__all__ = ["backend", "backstage_server", "here", "scene"]


@pytest.fixture
def scene(db: None) -> Scene:
    """A team on a cluster with the people around it."""
    return make_scene()


@pytest.fixture
def here(db: None) -> World:
    """Two teams and everybody."""
    return make_world()
