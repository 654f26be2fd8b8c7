"""`manage.py migrate` as the login that owns the tables, followed by what the portal's own login may do with them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections, transaction

from portal import env
from portal.postgres.grants import TooPowerful, grant

# Of whoever migrates, until that connection is closed.
LOCK = 2_026_113_001


class Command(migrate.Command):
    """Django's own command, unless `QM_MIGRATE_DATABASE_URL` names another login."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, then grant; raises CommandError when the portal's login may do too much."""
        address = settings.ENV.migrate_database_url
        if address is None:
            super().handle(*args, **options)
            return
        app_login = settings.DATABASES["default"]["USER"]
        with _signed_in(address.get_secret_value()):
            _wait_for_whoever_migrates()
            super().handle(*args, **options)
            try:
                with transaction.atomic():
                    tables = grant(connections["default"], app_login)
            except TooPowerful as error:
                raise CommandError(str(error)) from error
        if options["verbosity"]:
            self.stdout.write(
                f"{app_login} reads and writes rows, and only adds to: {', '.join(tables)}"
            )


def _wait_for_whoever_migrates() -> None:
    """Where two are started at once, as by a node that is drained, the second waits and finds nothing to do.

    A page's limits are not for it: the first may be at a large table for minutes, and so may what is migrated here.
    Only for a table that is in use it waits as briefly as a page does, whose readers would all wait behind it.
    """
    with connections["default"].cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SET lock_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        cursor.execute("RESET lock_timeout")


@contextmanager
def _signed_in(address: str) -> Iterator[None]:
    """The default connection with another login to the same database."""
    connection = connections["default"]
    before = connection.settings_dict
    other = env.database(address)
    if (other["ENGINE"], other["NAME"]) != (
        before["ENGINE"],
        settings.DATABASES["default"]["NAME"],
    ):
        raise CommandError(
            "QM_MIGRATE_DATABASE_URL must name the PostgreSQL database of QM_DATABASE_URL."
        )
    connection.close()
    _close_pool(connection)
    connection.settings_dict = {**before, **other}
    try:
        yield
    finally:
        connection.close()
        _close_pool(connection)
        connection.settings_dict = before


def _close_pool(connection: Any) -> None:
    """PostgreSQL's connections wait in a pool, under the login they were made with."""
    if hasattr(connection, "close_pool"):
        connection.close_pool()
