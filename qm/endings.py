"""How a command ends: its exit code, and a sentence for whoever ran it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import IO, Any

import click


class Code(IntEnum):
    """What an exit code means."""

    FINE = 0
    RUN_FAILED = 1
    USAGE = 2
    REFUSED = 3
    NOT_SIGNED_IN = 4
    AWAY = 5
    NOT_FOUND = 6
    INTERRUPTED = 130


MEANINGS: Mapping[Code, str] = {
    Code.FINE: "It is done. With `--wait` or `--follow`: the run finished.",
    Code.RUN_FAILED: "The run ended otherwise than well: failed, stopped, refused by its cluster or deleted there.",
    Code.USAGE: "The command was not understood, or there is a choice that it has to name.",
    Code.REFUSED: "The portal refused, and each value at fault has a sentence.",
    Code.NOT_SIGNED_IN: "No token, or one that is not taken any more: `qm login`.",
    Code.AWAY: "The portal or the cluster does not answer.",
    Code.NOT_FOUND: "There is no such run, template, place or team, or it is not yours to see.",
    Code.INTERRUPTED: "Ctrl-C. A run that was followed goes on.",
}


class Ended(click.ClickException):
    """The end of a command with a sentence on stderr; `again` tells that the same call may succeed later."""

    def __init__(
        self, message: str, code: Code, *, again: bool = False, problem: str = ""
    ) -> None:
        super().__init__(message)
        # click reads it of the instance, and declares it of the class.
        self.exit_code = int(code)  # type: ignore[misc]
        self.again, self.problem = again, problem

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the sentence as it is."""
        click.echo(self.message, file=file, err=file is None)
