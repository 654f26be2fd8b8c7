"""Rows that many tests of a module start from: made once, in a transaction around the transactions of those tests."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from django.db import connection, transaction

T = TypeVar("T")
MAKER = "makes_shared_rows"


class SharedRows:
    """At most one set of rows at a time; a test changes what it likes, and its savepoint takes it back."""

    def __init__(self) -> None:
        self.make: Callable[[], Any] | None = None
        self.made: Any = None
        self._around: Any = None
        self._connection: Any = None

    def begin(self, make: Callable[[], Any]) -> None:
        """Make these rows, unless they are those that are there."""
        if self.make is make and self._connection is connection.connection:
            return
        self.end()
        around = transaction.atomic()
        around.__enter__()
        self._around, self._connection = around, connection.connection
        try:
            self.made = make()
            # A table with checks still to come can be neither truncated nor altered, which some tests try.
            connection.check_constraints()
        except BaseException:
            self.end()
            raise
        self.make = make

    def end(self) -> None:
        """Take the rows back; does nothing when there are none."""
        around, self._around, self.make, self.made = self._around, None, None, None
        # A test that lost its connection has lost the rows with it.
        if around is not None and connection.in_atomic_block:
            transaction.set_rollback(True)
            around.__exit__(None, None, None)

    def prepare(self, item: pytest.Item, request: pytest.FixtureRequest) -> None:
        """Before a test's own transaction begins: make the rows that it starts from, or take others' back."""
        make = self._asked_for(item)
        if make is None or {"transactional_db", "live_server"} & set(request.fixturenames) or _commits(item):
            self.end()
        else:
            self.begin(make)

    def copy(self, make: Callable[[], T]) -> T:
        """What `make` returned, as if it had done so just now: no test sees what another did to the objects."""
        return copy.deepcopy(self.made) if self.make is make else make()

    @staticmethod
    def _asked_for(item: pytest.Item) -> Callable[[], Any] | None:
        """The maker of the shared rows among a test's fixtures, if there is one alone."""
        known = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
        makers = {getattr(known[name][-1].func, MAKER, None) for name in known} - {None}
        return makers.pop() if len(makers) == 1 else None


def _commits(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("django_db")
    return marker is not None and bool(marker.kwargs.get("transaction"))


rows = SharedRows()


def shared(make: Callable[[], T]) -> Any:
    """A fixture of what `make` returns and saves, made once for the tests that follow each other with it."""

    def fixture(db: None) -> T:
        return rows.copy(make)

    setattr(fixture, MAKER, make)
    return pytest.fixture(fixture)
