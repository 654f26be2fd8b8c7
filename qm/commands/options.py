"""Options that several commands have, and the portal that they call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from qm import completing, configuration
from qm.calls import Portal
from qm.option_types import WholeNumber

USUAL_ROWS = 25
PURPOSES = ("training", "notebook", "inference", "other")
F = TypeVar("F", bound=Callable[..., Any])


def as_json(command: F) -> F:
    """`--json`."""
    return click.option(
        "--json", "is_json", is_flag=True, help="The portal's JSON instead of words."
    )(command)


def one_run(command: F) -> F:
    """The argument RUN."""
    return click.argument("run", shell_complete=completing.runs)(command)


def one_request(complete: completing.Completer) -> Callable[[F], F]:
    """The argument N, the number of a request; the shell completes those that fit."""
    return click.argument(
        "number", metavar="N", type=WholeNumber(min=1), shell_complete=complete
    )


def of_team(command: F) -> F:
    """`--team`, of a list."""
    return click.option(
        "--team",
        metavar="SLUG",
        shell_complete=completing.teams,
        help="Of this team alone.",
    )(command)


def limited(command: F) -> F:
    """`--limit`, of a list."""
    return click.option(
        "--limit",
        type=WholeNumber(min=1),
        metavar="N",
        default=USUAL_ROWS,
        show_default=True,
        help="So many.",
    )(command)


def unasked(command: F) -> F:
    """`--yes`."""
    return click.option(
        "-y",
        "--yes",
        "is_sure",
        is_flag=True,
        help="Do not ask first, as in a terminal.",
    )(command)


def lasting(command: F) -> F:
    """`--for` and `--until`, of GPUs that are asked for."""
    command = click.option(
        "--until",
        metavar="MOMENT",
        default="",
        help="Until then: 2026-12-05, 2026-12-05T18:00.",
    )(command)
    return click.option(
        "--for",
        "length",
        metavar="TIME",
        default="",
        help="For so long: 8h, 3d, 2w, 1d12h.",
    )(command)


def of_purpose(command: F) -> F:
    """`--purpose`, of GPUs that are asked for."""
    return click.option(
        "--purpose",
        type=click.Choice(PURPOSES),
        default="training",
        show_default=True,
        help="For which sort of work.",
    )(command)


def waiting(command: F) -> F:
    """`--wait`, `--follow` and `--json`, of what starts a run."""
    command = as_json(command)
    command = click.option(
        "-f", "--follow", is_flag=True, help="Print its log until it is over."
    )(command)
    return click.option("--wait", is_flag=True, help="Return when it is over.")(command)


def portal() -> Portal:
    """The portal that one is signed in to."""
    return Portal(configuration.access())


def refuse_both(follow: bool, is_json: bool) -> None:
    if follow and is_json:
        raise click.UsageError("--follow does not go with --json.")
