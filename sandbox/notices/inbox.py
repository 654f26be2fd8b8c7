"""What was received, by whichever way, and what is to go wrong."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

MOST_KEPT = 500
WAYS = ("smtp", "teams", "slack", "webhook")


@dataclass
class Fault:
    """What happens to messages of one way: a status, or silence; `times` counts down, None is for ever."""

    way: str
    status: int | None
    times: int | None = None
    retry_after: str | None = None
    location: str | None = None


@dataclass
class Inbox:
    """The newest messages, each with a number, a moment and its way; older ones fall out."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    number: int = 0
    faults: list[Fault] = field(default_factory=list)
    dirty: bool = False

    def add(self, way: str, **fields: Any) -> None:
        """Keep a message."""
        self.number += 1
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self.messages = [
            *self.messages,
            {"number": self.number, "at": at, "way": way, **fields},
        ][-MOST_KEPT:]
        self.dirty = True

    def clear(self) -> None:
        """Forget every message."""
        self.messages, self.dirty = [], True

    def fault(self, way: str) -> Fault | None:
        """Return what is to go wrong with the next message of this way, and count it."""
        found = next((fault for fault in self.faults if fault.way == way), None)
        if found is not None and found.times is not None:
            found.times -= 1
            if found.times < 1:
                self.faults.remove(found)
        return found

    def snapshot(self) -> dict[str, Any]:
        """Return the messages as JSON data and count them as saved."""
        self.dirty = False
        return {"number": self.number, "messages": self.messages}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what was kept."""
        self.number, self.messages = state["number"], state["messages"]
