"""How far an account or a model in it has come, in words. Pure."""

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
        return {
            "pending": "Being made",
            "ready": "Ready",
            "deleting": "Being deleted",
        }.get(self.value, "Deleted")

    @property
    def tone(self) -> str:
        """The badge's tone."""
        return {
            "pending": "moving",
            "ready": "good",
            "deleting": "ending",
            "deleted": "past",
        }[self.value]


WANTED = frozenset({State.PENDING, State.READY})
IN_AZURE = frozenset({*WANTED, State.DELETING})
