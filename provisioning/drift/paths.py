"""Places in a document of maps and lists: a tuple of names and of numbers. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]


def value_at(document: Any, at: Path) -> Any:
    """What stands at a place; None where nothing does."""
    for step in at:
        if isinstance(step, str):
            document = document.get(step) if isinstance(document, Mapping) else None
        else:
            document = (
                document[step]
                if isinstance(document, list) and step < len(document)
                else None
            )
    return document


def put(document: Any, at: Path, value: Any) -> None:
    """Set a place of a document, None takes it away; maps on the way are made, a place in no list is left."""
    for step in at[:-1]:
        is_map = isinstance(document, dict)
        document = (
            document.setdefault(step, {}) if is_map else value_at(document, (step,))
        )
    last = at[-1]
    if isinstance(document, dict) and value is None:
        document.pop(last, None)
    elif isinstance(document, dict):
        document[last] = value
    elif isinstance(document, list) and isinstance(last, int) and last < len(document):
        document[last : last + 1] = [value]


def leaves(document: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every place of a document that holds a value of its own."""
    if isinstance(document, Mapping):
        for name, value in document.items():
            yield from leaves(value, (*at, name))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from leaves(value, (*at, index))
    else:
        yield at, document


def text_of(at: Path) -> str:
    """A place as it is written: names with dots between them, places in lists in brackets."""
    return "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in at
    ).removeprefix(".")
