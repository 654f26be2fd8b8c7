"""Answers made comparable: what varies from run to run is replaced by a word that says what was there."""

import json
import re
from collections.abc import Mapping
from typing import Any

_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_UID = re.compile(r"(?!00000000-0000)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VERSIONS = (
    (re.compile(r"in record \(\d+\)"), "in record (<version>)"),
    (re.compile(r"version: \d+ \(\d+\)"), "version: <version>"),
    (re.compile(r"current: \d+"), "current: <version>"),
    (re.compile(r"kube-api-access-\w{5}"), "kube-api-access-<random>"),
)
_VARYING = frozenset({"uid", "resourceVersion", "continue", "ca.crt", "serverAddress"})
_KEPT_UIDS = frozenset(
    {"7c9a2b1e-4d35-4f0a-9a6e-1b2c3d4e5f60", "0a1b2c3d-5e6f-4a7b-8c9d-e0f1a2b3c4d5"}
)


def comparable(value: Any) -> Any:
    """A body without what varies; managedFields and conditions are put in an order of their own."""
    if isinstance(value, Mapping):
        return {_text(key): _field(key, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return _text(value) if isinstance(value, str) else value


def _field(key: str, value: Any) -> Any:
    if key in _VARYING and value:
        return f"<{key}>"
    if key == "managedFields" and isinstance(value, list):
        return sorted((comparable(entry) for entry in value), key=_writer)
    if key == "conditions" and isinstance(value, list):
        return sorted(
            (comparable(entry) for entry in value),
            key=lambda entry: str(entry.get("type")),
        )
    return comparable(value)


def _writer(entry: Mapping[str, Any]) -> tuple[str, str, str, str]:
    fields = json.dumps(entry.get("fieldsV1"), sort_keys=True)
    return (entry["manager"], entry["operation"], entry.get("subresource", ""), fields)


def _text(text: str) -> str:
    if _TIME.match(text):
        return "<time>"
    for pattern, word in _VERSIONS:
        text = pattern.sub(word, text)
    return _UID.sub(lambda match: match[0] if match[0] in _KEPT_UIDS else "<uid>", text)


def difference(want: Any, got: Any, path: str = "") -> list[str]:
    """Every place where two comparable bodies differ, one line each."""
    if isinstance(want, dict) and isinstance(got, dict):
        found = []
        for key in sorted({*want, *got}):
            if key not in got:
                found.append(f"{path}.{key} missing, wanted {_short(want[key])}")
            elif key not in want:
                found.append(f"{path}.{key} unexpected: {_short(got[key])}")
            else:
                found += difference(want[key], got[key], f"{path}.{key}")
        return found
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        pairs = enumerate(zip(want, got, strict=True))
        return [
            line
            for index, (a, b) in pairs
            for line in difference(a, b, f"{path}[{index}]")
        ]
    return [] if want == got else [f"{path}: wanted {_short(want)}, got {_short(got)}"]


def _short(value: Any) -> str:
    return json.dumps(value)[:600]
