"""A worker says when it listens."""

import logging
from collections.abc import Iterator

import pytest
from celery.signals import worker_ready

import portal.celery


@pytest.fixture
def quiet_root() -> Iterator[None]:
    """Loggers as `celery worker -l WARNING` leaves them."""
    root = logging.getLogger()
    before, said = root.level, logging.getLogger(portal.celery.__name__).level
    root.setLevel(logging.WARNING)
    yield
    root.setLevel(before)
    logging.getLogger(portal.celery.__name__).setLevel(said)


def test_a_worker_says_that_it_listens_however_quiet_it_was_told_to_be(
    quiet_root: None, caplog: pytest.LogCaptureFixture
) -> None:
    worker_ready.send(sender=None)
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("portal.celery", "INFO", "worker ready")
    ]
