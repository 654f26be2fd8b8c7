"""What a body may hold: unknown fields and wrong types, in the words of the API server."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sandbox.kubernetes import (
    schema_cilium,
    schema_core,
    schema_jobset,
    schema_kueue,
    schema_pods,
    schema_volcano,
)
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.schema_language import Definitions, Schema

DEFINITIONS = Definitions(
    *(schema_core.TABLE, schema_pods.TABLE, schema_kueue.TABLE),
    *(schema_jobset.TABLE, schema_cilium.TABLE, schema_volcano.TABLE),
)
NOT_DECLARED = "field not declared in schema"
UNTYPED_SCALARS = frozenset({"quantity", "int-or-string"})


@dataclass(frozen=True)
class FieldError:
    """One complaint about a value; ``path`` is written like ``.spec.containers[name="main"].image``."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def schema_for(kind: Kind) -> Schema:
    """The schema of a whole object of this kind."""
    return DEFINITIONS.get(kind.own_name)


def list_keys(schema: Schema) -> tuple[str, ...]:
    """The fields that tell the items of a keyed list apart; empty for other lists."""
    return schema.keys


def is_atomic(schema: Schema) -> bool:
    """Whether apply owns the value as a whole (atomic lists, objects and maps, and every scalar)."""
    if schema.type == "list":
        return schema.list_type == "atomic"
    return schema.atomic if schema.type in {"object", "map"} else schema.type != "any"


def child(schema: Schema, name: str) -> Schema | None:
    """The schema of a field of an object or map; None when it is not declared, ``any`` below ``any``."""
    if schema.type == "any":
        return schema
    return schema.fields.get(name) if schema.type == "object" else schema.items


def errors(kind: Kind, obj: dict[str, Any]) -> list[FieldError]:
    """Everything an apply of this object is refused for: unknown fields, wrong types, duplicate keys."""
    return list(_walk(schema_for(kind), obj, ""))


def apply_error(
    kind: Kind, namespace: str, name: str, obj: dict[str, Any]
) -> str | None:
    """The message of the HTTP 500 that answers an apply which does not fit the schema, or None."""
    found = errors(kind, obj)
    if not found:
        return None
    text = (
        str(found[0]) if len(found) == 1 else "\n  ".join(["errors:", *map(str, found)])
    )
    return (
        f"failed to create typed patch object ({namespace}/{name}; {kind.gvk}): {text}"
    )


def strict_unknown_fields(kind: Kind, obj: dict[str, Any]) -> list[str]:
    """Paths of unknown fields as strict decoding of POST and PUT names them: ``spec.containers[0].imag``."""
    return list(_strict(schema_for(kind), obj, ""))


def strict_error(kind: Kind, obj: dict[str, Any]) -> str | None:
    """The message of the HTTP 400 that answers a strict POST with unknown fields, or None."""
    unknown = ", ".join(
        f'unknown field "{path}"' for path in strict_unknown_fields(kind, obj)
    )
    if not unknown:
        return None
    refused = (
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    )
    return f"{refused}: strict decoding error: {unknown}"


def warnings(kind: Kind, obj: dict[str, Any]) -> list[str]:
    """Values of the Warning headers of a POST with the default fieldValidation=Warn."""
    return [
        f'299 - "unknown field \\"{path}\\""'
        for path in strict_unknown_fields(kind, obj)
    ]


def prune(kind: Kind, obj: dict[str, Any]) -> dict[str, Any]:
    """A copy without the fields that the kind does not have; values of a wrong type stay as they are."""
    pruned: dict[str, Any] = _prune(schema_for(kind), obj)
    return pruned


def _prune(schema: Schema, value: Any) -> Any:
    if isinstance(value, dict) and schema.type in {"object", "map"}:
        known = ((name, child(schema, name), inner) for name, inner in value.items())
        return {
            name: _prune(below, inner)
            for name, below, inner in known
            if below is not None
        }
    if isinstance(value, list) and schema.type == "list" and schema.items is not None:
        return [_prune(schema.items, item) for item in value]
    return value


def _strict(schema: Schema, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict) and schema.type in {"object", "map"}:
        for name, inner in value.items():
            below = child(schema, name)
            where = f"{path}.{name}" if path else name
            if below is None:
                yield where
            else:
                yield from _strict(below, inner, where)
    elif isinstance(value, list) and schema.type == "list" and schema.items is not None:
        for index, item in enumerate(value):
            yield from _strict(schema.items, item, f"{path}[{index}]")


def _walk(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    if value is None or schema.type == "any":
        return
    if schema.type in {"object", "map"}:
        yield from _walk_map(schema, value, path)
    elif schema.type == "list":
        yield from _walk_list(schema, value, path)
    elif (message := _scalar_error(schema.type, value)) is not None:
        yield FieldError(path, message)


def _walk_map(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield FieldError(path, f"expected map, got {go_value(value)}")
        return
    for name, inner in value.items():
        below = child(schema, name)
        if below is None:
            yield FieldError(f"{path}.{name}", NOT_DECLARED)
        else:
            yield from _walk(below, inner, f"{path}.{name}")


def _walk_list(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(value, list):
        yield FieldError(path, f"expected list, got {go_value(value)}")
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        where = item_path(schema, index, item)
        if schema.list_type != "atomic" and where in seen:
            yield FieldError(path, f"duplicate entries for key {where}")
        seen.add(where)
        if schema.items is not None:
            yield from _walk(schema.items, item, path + where)


def item_path(schema: Schema, index: int, item: Any) -> str:
    """The path step of a list item: ``[0]``, ``[="value"]`` or ``[name="main"]``."""
    if schema.list_type == "set":
        return f"[={json.dumps(item)}]"
    if schema.list_type == "map" and isinstance(item, dict):
        return (
            "["
            + ",".join(
                f"{key}={json.dumps(key_value(key, item))}" for key in schema.keys
            )
            + "]"
        )
    return f"[{index}]"


def key_value(key: str, item: dict[str, Any]) -> Any:
    """The value of a key field of a list item; a port's protocol counts as TCP when it is left out."""
    return item.get(key, "TCP") if key == "protocol" else item.get(key)


def _scalar_error(kind: str, value: Any) -> str | None:
    if kind in {"int", "number"}:
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        return (
            None if good else f"expected numeric (int or float), got {_go_type(value)}"
        )
    if kind == "bool":
        return (
            None
            if isinstance(value, bool)
            else f"expected boolean, got {go_value(value)}"
        )
    if kind in UNTYPED_SCALARS:
        return (
            f"expected any scalar, got {go_value(value)}"
            if isinstance(value, (dict, list))
            else None
        )
    if isinstance(value, str):
        return None
    return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"


def _go_type(value: Any) -> str:
    names = {
        dict: "map[string]interface {}",
        list: "[]interface {}",
        bool: "bool",
        str: "string",
    }
    return names.get(type(value), type(value).__name__)


def go_value(value: Any) -> str:
    """A value as the messages print it, the way Go's %v prints a wrapped JSON value."""
    return f"&{{{_go_plain(value)}}}"


def _go_plain(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "map["
            + " ".join(f"{name}:{_go_plain(value[name])}" for name in sorted(value))
            + "]"
        )
    if isinstance(value, list):
        return "[" + " ".join(_go_plain(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def _go_syntax(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(
            f"{json.dumps(name)}:{_go_syntax(value[name])}" for name in sorted(value)
        )
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(_go_syntax(item) for item in value) + "}"
    return json.dumps(value) if isinstance(value, str) else _go_plain(value)
