"""The command `qm` itself, and how it ends."""

from __future__ import annotations

from typing import Any

import click

from qm import __version__
from qm.endings import MEANINGS, in_order


class Commands(click.Group):
    """The group; an interruption and a closed pipe have the exit codes that shells give them."""

    def make_context(self, *given: Any, **named: Any) -> click.Context:
        """Read what was typed, and tell what --help and --version tell."""
        with in_order():
            return super().make_context(*given, **named)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        with in_order():
            return super().invoke(ctx)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExit codes:\n"
    + "\n".join(f"  {code:<4d} {said}" for code, said in MEANINGS.items()),
)
@click.version_option(__version__, prog_name="qm")
def qm() -> None:
    """GPUs for your team, and training runs on those that it holds."""
