"""Ringing for a run: a lost ring costs two seconds."""

from audit.doorbell import Doorbell

doorbell = Doorbell("workloads.tasks.look_after_run", expires=60, subject="run")


def ring_on_commit(run_id: int) -> None:
    """Ask a worker to look after this run once the current transaction has committed."""
    doorbell.ring_on_commit(run_id)
