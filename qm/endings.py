"""How a command ends: its exit code, and a sentence for whoever ran it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import IO, Any

import click
from click.exceptions import Exit


class Code(IntEnum):
    """What an exit code means."""

    FINE = 0
    NOT_DONE = 1
    USAGE = 2
    REFUSED = 3
    NOT_SIGNED_IN = 4
    AWAY = 5
    NOT_FOUND = 6
    INTERRUPTED = 130
    PIPE_CLOSED = 141


MEANINGS: Mapping[Code, str] = {
    Code.FINE: "It is done. With `--wait` or `--follow`: the run finished, or what was asked for is there.",
    Code.NOT_DONE: (
        "The run ended otherwise than well: failed, stopped, refused by its cluster or deleted there. The request "
        "was rejected, withdrawn, lapsed or could not be granted, or what it gave has ended. Or you answered no."
    ),
    Code.USAGE: "The command was not understood, a choice is to be named, or a file here cannot be read or written.",
    Code.REFUSED: "The portal refused, and each value at fault has a sentence.",
    Code.NOT_SIGNED_IN: "No token, or one that is not taken any more: `qm login`.",
    Code.AWAY: "The portal or the cluster does not answer.",
    Code.NOT_FOUND: "There is no such run, request, template, place, project or team, or it is not yours to see.",
    Code.INTERRUPTED: "Ctrl-C. A run that was followed goes on, and a request stands as it was.",
    Code.PIPE_CLOSED: "Whoever read the output has closed it, as `head` does. A run that was followed goes on.",
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


@contextmanager
def in_order() -> Iterator[None]:
    """End a command with its code where it is interrupted, its reader has enough, or this machine refuses a file.

    Raises Ended and click's Exit.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise Ended("", Code.INTERRUPTED) from None
    except BrokenPipeError:
        _discard(sys.stdout, sys.stderr)
        raise Exit(int(Code.PIPE_CLOSED)) from None
    except OSError as error:
        _discard(sys.stdout)
        what = (
            f"{error.filename} cannot be used"
            if error.filename
            else "The output cannot be written"
        )
        raise Ended(f"{what}: {error.strerror or error}.", Code.USAGE) from None


def _discard(*streams: IO[str]) -> None:
    """Lead what is still to be written nowhere: Python would try once more at its end, and say that it failed."""
    for one in streams:
        # One that is no file is not written to again.
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, one.fileno())
            os.close(nowhere)
