"""The doorbell rings where the worker listens, and nobody waits for it."""

import subprocess
import sys

import pytest

from tests.faults.running import ROOT
from tests.services import environment

SAY = (
    "import django; django.setup(); from provisioning.tasks import reconcile_tenancy as task; "
    "print(task.app.conf.broker_url)"
)


@pytest.mark.slow
def test_every_process_of_the_portal_rings_the_broker_that_the_settings_name() -> None:
    # A process that never loads the project's Celery app would ring on amqp://localhost, and nobody would notice:
    # the sweep finds the tenancy two seconds later.
    said = subprocess.run(
        [sys.executable, "-c", SAY],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=environment.harmless()
        | {
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "QM_DATA_DIR": "/tmp",
            **environment.addresses(postgres_port=9, redis_port=9, worker=3),
        },
    )
    assert said.stdout.strip() == "redis://127.0.0.1:9/6"
