"""Fields of bodies that mean the same have the same name, in every call that writes."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests import described

# What each word may stand for stands in docs/glossary.md.
NEVER = {"on", "because", "why", "comment", "message", "explanation"}
ONLY = {
    "note": {"DoneRequest"},
    "text": {"TextRequest", "ScriptRequest"},
    "reason_code": {"RejectRequest", "ChosenRequest"},
    "count": {"ApproveRequest", "ChosenRequest"},
}


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return described.description()


def bodies(description: dict[str, Any]) -> Iterator[tuple[str, set[str]]]:
    """Every object that a body may hold, with its fields."""
    schemas, seen = description["components"]["schemas"], set()
    waiting = [
        call["requestBody"]["content"]["application/json"]["schema"]
        for path in description["paths"].values()
        for call in path.values()
        if isinstance(call, dict) and "requestBody" in call
    ]
    while waiting:
        found = waiting.pop()
        if isinstance(found, list):
            waiting += found
        elif isinstance(found, dict):
            waiting += [each for key, each in found.items() if key != "description"]
            name = str(found.get("$ref", "")).rpartition("/")[2]
            if name and name not in seen:
                seen.add(name)
                waiting.append(schemas[name])
                yield name, set(schemas[name].get("properties", {}))


def test_like_ideas_have_one_name(description: dict[str, Any]) -> None:
    known = dict(bodies(description))
    assert len(known) > 40
    assert {
        name: fields & NEVER for name, fields in known.items() if fields & NEVER
    } == {}
    for word, allowed in ONLY.items():
        assert {name for name, fields in known.items() if word in fields} == allowed
