"""Where a request for more quota is, which moves there are, and how often Azure is asked about it. Pure."""

from datetime import timedelta
from enum import StrEnum


class State(StrEnum):
    """How far a request has come. A refused one was answered by Azure; a failed one never got an answer to it."""

    NEW = "new"
    SENT = "sent"
    GRANTED = "granted"
    REFUSED = "refused"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"

    @property
    def words(self) -> str:
        """As people read it."""
        return {
            "new": "Being sent",
            "sent": "Waits for Azure",
            "failed": "Not sent",
        }.get(self.value, self.value.capitalize())

    @property
    def tone(self) -> str:
        """The badge's tone."""
        return {
            "new": "moving",
            "sent": "waiting",
            "granted": "good",
            "refused": "bad",
            "failed": "bad",
            "withdrawn": "past",
        }[self.value]


OPEN = frozenset({State.NEW, State.SENT})

# A program of Azure's answers within minutes, a person within days.
PAUSES = (
    (timedelta(minutes=5), timedelta(seconds=20)),
    (timedelta(hours=1), timedelta(minutes=5)),
    (timedelta(hours=12), timedelta(minutes=20)),
)
LONGEST_PAUSE = timedelta(hours=1)


def next_look(since_sent: timedelta) -> timedelta:
    """How long until Azure is asked again about a request that it has had for so long."""
    return next((pause for until, pause in PAUSES if since_sent < until), LONGEST_PAUSE)
