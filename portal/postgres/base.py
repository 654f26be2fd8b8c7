"""Django's PostgreSQL engine, whose pooled connections are looked at before each use, and which reads times fast."""

from datetime import UTC, datetime
from typing import Any

from django.db.backends.postgresql import base, operations
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg import Error, OperationalError
from psycopg.adapt import AdaptersMap
from psycopg.types.datetime import TimestamptzLoader
from psycopg_pool import ConnectionPool

from portal.postgres.prepared import forget_prepared, is_stale, keep_prepared

TRIES = 3


class UtcLoader(TimestamptzLoader):
    """Times as Django reads them, in UTC, by the parser of Python itself: a page of a list has hundreds of them."""

    timezone = UTC  # Django compares it with that of the connection

    def load(self, data: Any) -> datetime:
        """The moment; raises DataError for one outside of Python's years."""
        text = bytes(data)
        if text.endswith(b"+00"):
            try:
                return datetime.fromisoformat(text.decode())
            except ValueError:
                pass
        return super().load(data).astimezone(UTC)


class DatabaseOperations(operations.DatabaseOperations):
    """Those of PostgreSQL, with compilers of our own."""

    compiler_module = "portal.postgres.compiler"


class DatabaseErrors(DatabaseErrorWrapper):
    """Django's own; where tables have changed under a connection, it prepares its statements anew after one failure."""

    def __init__(self, database: Any) -> None:
        super().__init__(database)
        self._database = database

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """Raise what psycopg raised as Django's error."""
        if is_stale(kind) and self._database.connection is not None:
            forget_prepared(self._database.connection)
        super().__exit__(kind, error, traceback)


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL. A connection that has died in the pool is replaced together with all that died with it.

    The pool's own check sleeps for one second, then two, then four at each dead connection that it meets: after a
    restart of the server, a quiet process with some of them would answer nobody for ten seconds.
    """

    ops_class = DatabaseOperations

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrors:
        """What every call of psycopg stands in."""
        return DatabaseErrors(self)

    def get_connection_params(self) -> dict[str, Any]:
        """Django's own, with the loader of times where the connection is in UTC."""
        params: dict[str, Any] = super().get_connection_params()
        if self.timezone == UTC:
            params["context"] = AdaptersMap(params["context"])
            params["context"].register_loader("timestamptz", UtcLoader)
        return params

    def get_new_connection(self, conn_params: Any) -> Any:
        """A connection that has just answered; raises OperationalError when none is to be had."""
        for _ in range(TRIES):
            connection = super().get_new_connection(conn_params)
            keep_prepared(connection)
            pool = self.pool
            if pool is None or _answers(connection):
                return connection
            pool.putconn(connection)
            pool.check()
        raise OperationalError("the server closes every connection")


def _answers(connection: Any) -> bool:
    try:
        ConnectionPool.check_connection(connection)
    except Error:
        return False
    return True
