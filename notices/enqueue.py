"""Ringing for what is to be sent: a lost ring costs five seconds."""

from audit.doorbell import Doorbell

doorbell = Doorbell("notices.tasks.deliver", expires=30)


def ring_on_commit() -> None:
    """Ask a worker to send what is due once the current transaction has committed."""
    doorbell.ring_on_commit()


def ring() -> None:
    """Ask now; a broker that does not answer is logged, the sweep sends anyway."""
    doorbell.ring()
