"""Server-sent events out of the bytes of a connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """One event; `kind` is "message" for a line of a log."""

    kind: str
    data: str
    id: str = ""


def events_in(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Each whole event; one that the connection broke off is left out, and comes again with the next connection."""
    fields: dict[str, str] = {}
    for line in _lines(chunks):
        if line:
            name, _, value = line.partition(":")
            fields[name] = value[1:] if value.startswith(" ") else value
            continue
        if "data" in fields:
            yield Event(
                fields.get("event", "message"), fields["data"], fields.get("id", "")
            )
        elif "retry" in fields:
            yield Event("retry", fields["retry"])
        fields = {}


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines by their line feeds alone: a log may hold every other sign that Python takes for the end of a line."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").rstrip("\r")
