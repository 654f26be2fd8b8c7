"""What the shell completes: runs, templates, places, kinds of GPU and teams; nothing where nobody answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from qm import words
from qm.calls import Portal
from qm.configuration import access

SECONDS = 2.0
Found = Callable[[Portal], "list[tuple[str, str]]"]
Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _completer(found: Found) -> Completer:
    def complete(
        context: click.Context, parameter: click.Parameter, begun: str
    ) -> list[CompletionItem]:
        # A key was pressed in the middle of a line: whatever goes wrong, nothing is said.
        try:
            names = dict(
                found(
                    Portal(
                        access(), attempts=1, seconds=SECONDS, connect_seconds=SECONDS
                    )
                )
            )
        except Exception:
            return []
        return [
            CompletionItem(name, help=said)
            for name, said in names.items()
            if name.startswith(begun)
        ]

    return complete


def _places(portal: Portal) -> list[Any]:
    return list(portal.get("places/")["results"])


runs = _completer(
    lambda portal: [
        (one["name"], one["state"]) for one in portal.get("runs/", limit=100)["results"]
    ]
)
templates = _completer(
    lambda portal: [
        (one["slug"], one["title"]) for one in portal.get("templates/")["results"]
    ]
)
places = _completer(
    lambda portal: [
        (words.place_name(one), one["team"]["name"]) for one in _places(portal)
    ]
)
teams = _completer(
    lambda portal: [(one["slug"], one["name"]) for one in portal.get("me/")["teams"]]
)
flavors = _completer(
    lambda portal: [
        (each["flavor"], each["device"])
        for one in _places(portal)
        for each in one["flavors"]
    ]
)
