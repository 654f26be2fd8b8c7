"""A directory to sign in with, and a cluster to leave."""

import pytest

from tests import scene as scenes
from tests.directory import directory, entra_server
from tests.provisioning.conftest import kubernetes, kubernetes_server, place

__all__ = ["directory", "entra_server", "kubernetes", "kubernetes_server", "place"]


@pytest.fixture
def scene(db: None) -> scenes.Scene:
    """Ada's team on a cluster with 24 GPUs, and the people who decide."""
    return scenes.scene()
