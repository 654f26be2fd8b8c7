"""What options take, refused in words that say what to write."""

from __future__ import annotations

from typing import Any

import click


class WholeNumber(click.IntRange):
    """A whole number within its bounds."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """The number; fails for anything else, naming the bounds."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            bounds = (
                f"of at least {self.min}"
                if self.max is None
                else f"from {self.min} to {self.max}"
            )
            self.fail(f"Write a whole number {bounds}, not {value!r}.", param, ctx)


def lower_case(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """A name as Kubernetes has it, which knows no capital letters."""
    return value.lower()
