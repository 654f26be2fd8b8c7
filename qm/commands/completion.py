"""What a shell needs to complete names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from qm.commands.group import qm

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """What a shell needs to complete names. As in: eval "$(qm completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click knows each of them
    click.echo(kind(qm, {}, "qm", "_QM_COMPLETE").source())
