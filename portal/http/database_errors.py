"""What it means for whoever called that the database did not do what it was asked."""

import sys
from dataclasses import dataclass

from django.db import Error, InterfaceError, OperationalError

FAILURES = (OperationalError, InterfaceError)
DISK_FULL = "53100"
# Sent by a server that ends connections, or takes none yet.
ENDED = ("08", "57P")


@dataclass(frozen=True)
class Loss:
    """How a failure is told: `code` of a problem, what people read, and when to come back."""

    code: str
    detail: str
    retry_after: int = 2


BUSY = Loss(
    "busy",
    "The portal is too busy to do this now. Nothing was changed; try again in a moment.",
)
FULL = Loss(
    "database_full",
    "The database has no room to store this. Nothing was changed; try again later.",
    30,
)
GONE = Loss(
    "database_away",
    "The database went away while this was done, so whether it was done cannot be said from here. Look again, or "
    "repeat the call with the same Idempotency-Key: it takes effect once.",
)


def meaning(error: BaseException) -> Loss:
    """What a failure of the database means."""
    cause = error.__cause__
    state = getattr(cause, "sqlstate", "")  # None: no server said anything
    if state == DISK_FULL:
        return FULL
    if state and state.startswith(ENDED):
        return GONE
    if state is None and not type(cause).__module__.startswith("psycopg_pool"):
        return GONE
    # A row that is held, an answer that takes too long, no connection left; SQLite has no state at all.
    return BUSY


def at_hand() -> Loss | None:
    """The loss that is being handled right now; None when something else failed."""
    error = sys.exc_info()[1]
    return meaning(error) if isinstance(error, FAILURES) else None


def is_of_the_database() -> bool:
    """Whether what is being handled right now, or what it came from, is any error of the database."""
    error = sys.exc_info()[1]
    while error is not None:
        if isinstance(error, Error):
            return True
        error = error.__cause__ or error.__context__
    return False
