"""Sending what must not be done twice: it is looked at first, confirmed by a person, and sent under one key."""

from __future__ import annotations

import sys
from typing import Any

import click

from qm.calls import Portal
from qm.endings import Code, Ended


def is_asked(*, is_sure: bool) -> bool:
    """Whether somebody sits at a terminal who is asked before it is sent; a script is not."""
    return not is_sure and sys.stdin.isatty()


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask whoever sits at a terminal; raises Ended for anything but a yes."""
    if not is_asked(is_sure=is_sure):
        return
    try:
        is_meant = click.confirm(question, err=True)
    except click.Abort:
        raise Ended("\nNothing is sent.", Code.INTERRUPTED) from None
    if not is_meant:
        raise Ended("Nothing is sent.", Code.NOT_DONE)


def previewed(api: Portal, path: str, body: object, *, or_done: bool) -> Any:
    """What the portal says to it beforehand; None where it is refused and, by `or_done`, may be done by now.

    Under a key that was given, the answer of the first call comes again, whatever has become of it.
    """
    try:
        return api.post(path, body)
    except Ended as ended:
        if not (or_done and ended.exit_code == Code.REFUSED):
            raise
        return None


def sent(
    api: Portal, path: str, body: object, *, key: str, advice: str
) -> dict[str, Any]:
    """The answer to what was sent; whoever does not hear it is told by `advice` how to send it again."""
    try:
        return dict(api.post(path, body, key=key))
    except KeyboardInterrupt:
        raise Ended(f"\n{advice}", Code.INTERRUPTED) from None
    except Ended as ended:
        if not ended.again:
            raise
        raise Ended(f"{ended.message}\n{advice}", Code(ended.exit_code)) from None
