"""The database engine: Django's own, whose pooled connections are looked at before each use."""

from typing import Any

from django.db.backends.postgresql import base
from psycopg import Error, OperationalError
from psycopg_pool import ConnectionPool

TRIES = 3


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL. A connection that has died in the pool is replaced together with all that died with it.

    The pool's own check sleeps for one second, then two, then four at each dead connection that it meets: after a
    restart of the server, a quiet process with some of them would answer nobody for ten seconds.
    """

    def get_new_connection(self, conn_params: Any) -> Any:
        """A connection that has just answered; raises OperationalError when none is to be had."""
        for _ in range(TRIES):
            connection = super().get_new_connection(conn_params)
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
