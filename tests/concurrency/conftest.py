"""What concurrency tests stand on: the real web server with two worker processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.directory import directory, entra_server
from tests.faults.running import Portal, environment

__all__ = ["directory", "entra_server"]


@pytest.fixture
def web(transactional_db: None, tmp_path: Path) -> Iterator[Portal]:
    """The product's web server on the test's database; nothing reconciles."""
    installation = Portal(
        tmp_path / "portal", environment(tmp_path, kubeconfigs=tmp_path)
    )
    try:
        installation.web(workers=2)
        yield installation
    finally:
        installation.kill()
