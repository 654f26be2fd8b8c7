"""What a connection has prepared, which outlives a transaction that is taken back."""

import re
from collections.abc import Sequence
from typing import Any

from psycopg import Connection
from psycopg._preparing import Prepare, PrepareManager
from psycopg.errors import FeatureNotSupported, InvalidSqlStatementName
from psycopg.pq.abc import PGresult

# Of the statements that a connection runs often; the rarest makes room for the next.
MOST_PREPARED = 150
_changes_tables = re.compile(rb"DROP|ALTER|DISCARD ALL|DEALLOCATE ALL").match


class Kept(PrepareManager):
    """psycopg's own, which forgets everything at each rollback, as a table may have been made in it.

    The portal makes tables in its migrations alone, and what they change is noticed when it is met (`is_stale`). One
    refused request would have the next hundred planned anew.
    """

    def clear(self) -> bool:
        """Nothing: psycopg calls it after a rollback."""
        return False

    def _should_discard(
        self, prep: Prepare, results: Sequence[PGresult], *_: Any
    ) -> bool:
        if any(_changes_tables(result.command_status or b"") for result in results):
            return super().clear()
        return False


def is_stale(kind: type[BaseException] | None) -> bool:
    """Whether an error says that what was prepared goes with the tables no longer, or that the server has lost it.

    A migration that another process ran, such as one that lets a column be longer, changes what a statement gives.
    """
    return kind is not None and issubclass(
        kind, FeatureNotSupported | InvalidSqlStatementName
    )


def forget_prepared(connection: "Connection[Any]") -> None:
    """Have a connection prepare all anew; the server is told with the next statement that it takes."""
    PrepareManager.clear(connection._prepared)


def keep_prepared(connection: "Connection[Any]") -> None:
    """Let a connection keep what it has prepared; of one that does, change nothing."""
    if isinstance(connection._prepared, Kept):
        return
    kept = Kept()
    # What the pool has run on it so far counts: a name is not given twice.
    vars(kept).update(vars(connection._prepared))
    kept.prepared_max = MOST_PREPARED
    connection._prepared = kept
