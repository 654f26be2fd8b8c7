"""The patches that are no apply: merge patch, JSON patch and the plain part of strategic merge."""

import json
from collections.abc import Mapping
from typing import Any

from sandbox.kubernetes.schema import child
from sandbox.kubernetes.schema_language import Schema
from sandbox.kubernetes.status import Refusal, bad_request
from sandbox.kubernetes.typed import ANY, path_element

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def patched(
    schema: Schema, obj: Mapping[str, Any], body: bytes, content_type: str
) -> dict[str, Any]:
    """The object with a patch laid over it; raises 400 or 422 for a patch that cannot be."""
    try:
        patch = json.loads(body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error
    if content_type == JSON_PATCH:
        return _json_patch(obj, patch)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: cannot unmarshal into an object")
    merged: dict[str, Any] = _merge(
        schema if content_type == STRATEGIC else ANY, obj, patch
    )
    return merged


def _merge(schema: Schema, value: Any, patch: Any) -> Any:
    if (
        isinstance(patch, list)
        and schema.type == "list"
        and schema.list_type == "map"
        and isinstance(value, list)
    ):
        return _merge_items(schema, value, patch)
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, Mapping) else {}
    for name, part in patch.items():
        if part is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(child(schema, name) or ANY, merged.get(name), part)
    return merged


def _merge_items(schema: Schema, value: list[Any], patch: list[Any]) -> list[Any]:
    items = {path_element(schema, item): item for item in value}
    for part in patch:
        key = path_element(schema, part)
        if part.get("$patch") == "delete":
            items.pop(key, None)
        else:
            items[key] = _merge(schema.items or ANY, items.get(key), part)
    return list(items.values())


def _json_patch(obj: Mapping[str, Any], operations: Any) -> dict[str, Any]:
    document: Any = json.loads(json.dumps(obj))
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: a JSON patch is a list")
    for operation in operations:
        try:
            document = _operate(document, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise _unprocessable(operation) from error
    result: dict[str, Any] = document
    return result


def _unprocessable(operation: Any) -> Refusal:
    path = operation.get("path", "") if isinstance(operation, dict) else ""
    message = f"the server rejected our request due to an error in our request: cannot apply patch at {path}"
    return Refusal(422, message, "Invalid", {})


def _steps(pointer: str) -> list[str]:
    return [
        step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]
    ]


def _find(document: Any, steps: list[str]) -> Any:
    for step in steps:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def _operate(document: Any, operation: dict[str, Any]) -> Any:
    name, steps = operation["op"], _steps(operation["path"])
    if name == "test":
        if _find(document, steps) != operation["value"]:
            raise ValueError("test failed")
        return document
    if name in {"move", "copy"}:
        source = _steps(operation["from"])
        value = json.loads(json.dumps(_find(document, source)))
        if name == "move":
            document = _take(document, source)
        return _put(document, steps, value, insert=True)
    if name == "remove":
        return _take(document, steps)
    if name in {"add", "replace"}:
        if name == "replace":
            _find(document, steps)
        return _put(document, steps, operation["value"], insert=name == "add")
    raise ValueError(name)


def _put(document: Any, steps: list[str], value: Any, *, insert: bool) -> Any:
    if not steps:
        return value
    parent, last = _find(document, steps[:-1]), steps[-1]
    if not isinstance(parent, list):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    elif insert:
        parent.insert(int(last), value)
    else:
        parent[int(last)] = value
    return document


def _take(document: Any, steps: list[str]) -> Any:
    parent, last = _find(document, steps[:-1]), steps[-1]
    if isinstance(parent, list):
        parent.pop(int(last))
    else:
        del parent[last]
    return document
