"""Causes of an invalid object: one field, why it is wrong, and the words for it."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

Cause = dict[str, str]


def _cause(reason: str, message: str, field: str) -> Cause:
    return {"reason": reason, "message": message, "field": field}


def go_literal(value: Any) -> str:
    """A value as causes quote it: strings in quotes, the rest as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def invalid_value(field: str, value: Any, why: str) -> Cause:
    """The value is wrong for the reason given."""
    return _cause(
        "FieldValueInvalid", f"Invalid value: {go_literal(value)}: {why}", field
    )


def rule_broken(field: str, why: str) -> Cause:
    """A rule of a custom resource definition does not hold; such messages show no value."""
    return _cause("FieldValueInvalid", f"Invalid value: {why}", field)


def required(field: str, why: str = "") -> Cause:
    """The value is missing."""
    return _cause(
        "FieldValueRequired",
        f"Required value: {why}" if why else "Required value",
        field,
    )


def forbidden_field(field: str, why: str) -> Cause:
    """The value may not be given here."""
    return _cause("FieldValueForbidden", f"Forbidden: {why}", field)


def duplicate(field: str, value: Any) -> Cause:
    """The value was given before."""
    return _cause("FieldValueDuplicate", f"Duplicate value: {go_literal(value)}", field)


def unsupported(field: str, value: Any, supported: Iterable[str]) -> Cause:
    """The value is none of those supported, which are listed in the order given."""
    listed = ", ".join(go_literal(one) for one in supported)
    text = f"Unsupported value: {go_literal(value)}: supported values: {listed}"
    return _cause("FieldValueNotSupported", text, field)


def too_long(field: str, limit: int) -> Cause:
    """The value has more bytes than allowed."""
    return _cause(
        "FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field
    )


def part(body: Any, name: str) -> dict[str, Any]:
    """A field of an object that holds an object; an empty one when it is absent or null."""
    value = body.get(name) if isinstance(body, Mapping) else None
    return value if isinstance(value, dict) else {}


def items(body: Any, name: str) -> list[dict[str, Any]]:
    """The objects in a list field; an empty list when it is absent or null."""
    value = body.get(name) if isinstance(body, Mapping) else None
    return (
        [item for item in value if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )
