"""Where an account or a model in it is, and which moves there are. Pure."""

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """How far it has come. What Azure refuses is deleted; what was granted for it says why."""

    PENDING = "pending"
    READY = "ready"
    DELETING = "deleting"
    DELETED = "deleted"

    @property
    def words(self) -> str:
        """As people read it."""
        return {"pending": "Being made", "ready": "Ready", "deleting": "Being deleted"}.get(
            self.value, "Deleted"
        )

    @property
    def tone(self) -> str:
        """The badge's tone."""
        return {"pending": "moving", "ready": "good", "deleting": "ending", "deleted": "past"}[self.value]


LEGAL: Mapping[State, frozenset[State]] = {
    State.PENDING: frozenset({State.READY, State.DELETING}),
    State.READY: frozenset({State.DELETING}),
    State.DELETING: frozenset({State.DELETED}),
    State.DELETED: frozenset(),
}
WANTED = frozenset({State.PENDING, State.READY})
IN_AZURE = frozenset({*WANTED, State.DELETING})
