"""A worker says when it listens, and finds every task."""

import inspect
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from celery.signals import worker_ready
from django.db import connection

import portal.celery
from scripts.packages import ROOT


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


def test_every_task_takes_numbers_of_rows_alone_as_messages_hold_nothing_else() -> None:
    portal.celery.app.loader.import_default_modules()
    own = {
        name: task
        for name, task in portal.celery.app.tasks.items()
        if ".tasks." in name
    }
    assert len(own) > 30
    wrong = {
        name: str(parameter)
        for name, task in own.items()
        for parameter in inspect.signature(task.run).parameters.values()
        if parameter.annotation is not int
    }
    assert wrong == {}


@pytest.mark.slow
def test_a_worker_knows_every_task_of_the_clock() -> None:
    # In a process of its own: tests import tasks that a worker would have to find.
    code = (
        "import json; from portal.celery import app; from portal.celery_schedule import SCHEDULE; "
        "app.loader.import_default_modules(); "
        "print(json.dumps(sorted({one['task'] for one in SCHEDULE.values()} - set(app.tasks))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_eager", [False, True])
def test_a_connection_is_given_back_after_a_task_and_its_pool_stays(
    is_eager: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    [fixup] = portal.celery.app._fixups
    task, worker = (
        SimpleNamespace(request=SimpleNamespace(is_eager=is_eager)),
        fixup.worker_fixup,
    )
    monkeypatch.setattr(worker, "worker", SimpleNamespace(pool_cls="prefork"))
    pooled: Any = connection
    pooled.ensure_connection()
    pool = pooled.pool
    worker.on_task_postrun(task)
    assert (pooled.connection is None) is not is_eager
    worker.on_task_prerun(task)
    pooled.ensure_connection()
    assert pooled.pool is pool
