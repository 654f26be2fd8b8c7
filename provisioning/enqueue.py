"""Ringing for a tenancy: a lost ring costs two seconds."""

from functools import partial

from django.db import transaction

from audit.doorbell import Doorbell
from provisioning import failpoints

doorbell = Doorbell("provisioning.tasks.reconcile_tenancy", expires=60, subject="tenancy")


def ring_on_commit(tenancy_id: int) -> None:
    """Ask a worker to look at this tenancy once the current transaction has committed."""
    transaction.on_commit(partial(_ring_soon, tenancy_id))


def _ring_soon(tenancy_id: int) -> None:
    failpoints.reach("doorbell.committed")
    doorbell.ring_soon(tenancy_id)


def ring(tenancy_id: int) -> None:
    """Ask now; a broker that does not answer is logged, the sweep finds the tenancy anyway."""
    doorbell.ring(tenancy_id)
