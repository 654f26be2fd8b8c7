"""What the shell completes: runs, requests, templates, places, kinds of GPU, teams and projects.

It is nothing where nobody answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

import click
from click.shell_completion import CompletionItem

from qm import request_words, words
from qm.calls import Portal
from qm.configuration import access

SECONDS = 2.0
# So many of one's own teams are asked about in that time.
MOST_TEAMS = 3
Found = Callable[[Portal, Mapping[str, Any]], "list[tuple[str, str]]"]
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
                    ),
                    context.params,
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


def _own_teams(portal: Portal, given: Mapping[str, Any]) -> Iterator[str]:
    """The team that was typed before, or the first of one's own."""
    if given.get("team"):
        yield quote(given["team"], safe="")
        return
    yield from (one["slug"] for one in portal.get("me/")["teams"][:MOST_TEAMS])


def _offered(portal: Portal, given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Kinds of GPU by their names alone; with the cluster before it, where that was begun or several have it."""
    options = [
        one
        for team in _own_teams(portal, given)
        for one in portal.get("options/flavors/", team=unquote(team))["results"]
        if not one["disabled"]
    ]
    return [(one["value"].partition("/")[2], one["label"]) for one in options] + [
        (one["value"], one["label"]) for one in options
    ]


def _projects(portal: Portal, given: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (one["slug"], f"{one['gpus']} GPU{'' if one['gpus'] == 1 else 's'}")
        for team in _own_teams(portal, given)
        for one in portal.get(f"teams/{team}/projects/")["results"]
    ]


def _numbered(state: str | None = None) -> Completer:
    """Requests by their numbers."""
    return _completer(
        lambda portal, _: [
            (str(one["id"]), f"{one['name']}, {one['stage'].replace('_', ' ')}")
            for one in portal.get("requests/", limit=100, state=state)["results"]
        ]
    )


runs = _completer(
    lambda portal, _: [
        (one["name"], one["state"]) for one in portal.get("runs/", limit=100)["results"]
    ]
)
templates = _completer(
    lambda portal, _: [
        (one["slug"], one["title"]) for one in portal.get("templates/")["results"]
    ]
)
places = _completer(
    lambda portal, _: [
        (words.place_name(one), one["team"]["name"]) for one in _places(portal)
    ]
)
teams = _completer(
    lambda portal, _: [(one["slug"], one["name"]) for one in portal.get("me/")["teams"]]
)
flavors = _completer(
    lambda portal, _: [
        (each["flavor"], each["device"])
        for one in _places(portal)
        for each in one["flavors"]
    ]
)
offered_flavors = _completer(_offered)
projects = _completer(_projects)
requests = _numbered()
waiting_requests = _numbered("waiting")
held_requests = _completer(
    lambda portal, _: [
        (
            request_words.request_number(one),
            f"{one['what']}, {one['state'].replace('_', ' ')}",
        )
        for one in portal.get("allocations/", limit=100, held="true")["results"]
    ]
)
