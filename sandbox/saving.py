"""Keeping state over restarts: one JSON file for each part that changes."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from sandbox.credentials import write_private

EVERY = 0.25


class Part(Protocol):
    """Something whose state is worth keeping."""

    @property
    def dirty(self) -> bool:
        """Whether something changed since the last snapshot."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON data and count it as saved."""


def read(directory: Path, name: str) -> dict[str, Any] | None:
    """Return the state a part was left in, None on the first start."""
    path = _path(directory, name)
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def save(directory: Path, parts: Mapping[str, Part]) -> None:
    """Write the parts that changed."""
    for name, part in parts.items():
        if part.dirty:
            write_private(_path(directory, name), json.dumps(part.snapshot()))


async def keep_saving(
    directory: Path, parts: Mapping[str, Part], stop: asyncio.Event
) -> None:
    """Save a quarter of a second after a change, however many changes there are, and once more at the end."""
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), EVERY)
        save(directory, parts)


def _path(directory: Path, name: str) -> Path:
    return directory / f"state-{name}.json"
