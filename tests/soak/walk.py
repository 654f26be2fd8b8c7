"""A random walk: operations of people, workers and the clock, each with a fault at a random point.

Everything is drawn from one seed, so that a walk that breaks a promise can be walked again.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connection
from django.db.models import QuerySet

from tests.soak.walking import Crash, Nothing, Town
from web.refusals import Refused

LOST = (OperationalError, InterfaceError)
TRIES = 8
Found = TypeVar("Found")
Operation = Callable[["Walk"], str]
Fault = Callable[["Walk"], AbstractContextManager[None]]


@dataclass
class Tally:
    """What happened how often: operations by what they came to, and faults that struck."""

    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Count another one's, too."""
        for mine, theirs in zip(self.all, other.all, strict=True):
            mine.update(theirs)

    @property
    def all(self) -> tuple[Counter[str], ...]:
        """Every counter."""
        return self.done, self.refused, self.ended, self.struck


@dataclass
class Walk:
    """One iteration; `said` is its story."""

    town: Town
    random: Random
    operations: dict[Operation, int]
    faults: dict[Fault, int]
    said: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)

    def go(self, steps: int) -> None:
        """Take so many steps, each with or without a fault."""
        for _ in range(steps):
            fault = self.random.choices(
                list(self.faults), weights=list(self.faults.values())
            )[0]
            with fault(self):
                told = self._step()
            self.town.place.dead = False
            self.said.append(f"{told} × {fault.__name__}")

    def one_of(self, rows: QuerySet[Any, Found]) -> Found:
        """One of these rows, drawn; raises Nothing where there is none."""
        found = list(rows.order_by("pk"))
        if not found:
            raise Nothing
        return self.random.choice(found)

    def _step(self) -> str:
        for _ in range(TRIES):
            operation = self.random.choices(
                list(self.operations), weights=list(self.operations.values())
            )[0]
            try:
                return self._take(operation)
            except Nothing:
                continue
        return "nothing to do"

    def _take(self, operation: Operation) -> str:
        name = operation.__name__
        try:
            kind, _, words = operation(self).partition(": ")
        except Refused as refusal:
            self.tally.refused[f"{name}: {refusal.code}"] += 1
            return f"{name}: refused, {refusal.code}"
        except Crash:
            connection.close()
            self.tally.ended[f"{name}: crashed"] += 1
            return f"{name}: crashed"
        except LOST:
            return self._lost(name)
        except ExceptionGroup as group:
            # A sweep whose connection was cut goes on over a new one.
            if group.split(LOST)[1] is not None:
                raise
            return self._lost(name)
        self.tally.done[kind] += 1
        return f"{kind}: {words}"

    def _lost(self, name: str) -> str:
        connection.close()
        self.tally.ended[f"{name}: lost the database"] += 1
        return f"{name}: lost the database"
