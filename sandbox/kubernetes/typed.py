"""Schema-aware walks over objects: which fields there are, what changed, how an apply merges and prunes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sandbox.kubernetes.fieldsets import EMPTY, FieldSet, is_member
from sandbox.kubernetes.schema import child, is_atomic
from sandbox.kubernetes.schema_language import Schema

_MARK: dict[str, Any] = {}
_MEMBER: FieldSet = {}
ANY = Schema("any")


class Comparison(NamedTuple):
    """What differs between an old and a new object, as three sets of paths."""

    added: FieldSet
    removed: FieldSet
    modified: FieldSet


def fields_of(schema: Schema, value: Any) -> FieldSet:
    """The paths an apply of this value claims."""
    return _claims(schema, value) or EMPTY


def _claims(schema: Schema, value: Any) -> FieldSet | None:
    """The node of a value: None claims nothing below, an empty mapping is the value itself."""
    if _is_map(schema, value):
        return {
            f"f:{name}": _named_claim(schema, name, inner)
            for name, inner in value.items()
        }
    if _is_keyed_list(schema, value):
        return {
            key: _item_claim(schema.items or ANY, item)
            for key, item in _keyed(schema, value)
        }
    return None


def _named_claim(schema: Schema, name: str, value: Any) -> FieldSet:
    below = _claims(child(schema, name) or ANY, value)
    if not below:
        return _MEMBER
    return below if schema.type == "object" else {".": _MARK, **below}


def _item_claim(schema: Schema, item: Any) -> FieldSet:
    below = _claims(schema, item)
    return {".": _MARK, **below} if below else _MEMBER


def _is_map(schema: Schema, value: Any) -> bool:
    return isinstance(value, Mapping) and not is_atomic(schema)


def _is_keyed_list(schema: Schema, value: Any) -> bool:
    return (
        isinstance(value, list)
        and schema.type == "list"
        and schema.list_type != "atomic"
    )


def _keyed(schema: Schema, items: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for item in items:
        yield path_element(schema, item), item


def path_element(schema: Schema, item: Any) -> str:
    """How managedFields names one item of a keyed list or set."""
    if schema.list_type == "set":
        return "v:" + json.dumps(item, separators=(",", ":"))
    given = {
        key: item.get(key, _default_of(key))
        for key in sorted(schema.keys)
        if isinstance(item, Mapping)
    }
    return "k:" + json.dumps(
        {k: v for k, v in given.items() if v is not None}, separators=(",", ":")
    )


def _default_of(key: str) -> Any:
    return "TCP" if key == "protocol" else None


_ABSENT = object()
_Nodes = tuple[FieldSet | None, FieldSet | None, FieldSet | None]
_SAME: _Nodes = (None, None, None)


def compare(schema: Schema, old: Any, new: Any) -> Comparison:
    """What a write changed; containers count as added or removed together with what is in them."""
    added, removed, modified = _compare(schema, old, new)
    return Comparison(added or EMPTY, removed or EMPTY, modified or EMPTY)


def _compare(schema: Schema, old: Any, new: Any) -> _Nodes:
    if old is not _ABSENT and new is not _ABSENT and old == new:
        return _SAME
    pairs = _pairs(schema, old, new)
    if pairs is None:
        return _leaf(old, new)
    sides: tuple[dict[str, Any], dict[str, Any], dict[str, Any]] = ({}, {}, {})
    for key, below, left, right in pairs:
        for side, node in zip(sides, _compare(below, left, right), strict=True):
            if node is not None:
                side[key] = node
    if old is _ABSENT:
        sides[0]["."] = _MARK
    elif new is _ABSENT:
        sides[1]["."] = _MARK
    return (sides[0] or None, sides[1] or None, sides[2] or None)


def _leaf(old: Any, new: Any) -> _Nodes:
    if old is _ABSENT:
        return (_MEMBER, None, None)
    if new is _ABSENT:
        return (None, _MEMBER, None)
    return (None, None, _MEMBER)


def _pairs(
    schema: Schema, old: Any, new: Any
) -> list[tuple[str, Schema, Any, Any]] | None:
    """The parts to compare one by one, or None when the value changes as a whole."""
    present = [
        value for value in (old, new) if value is not _ABSENT and value is not None
    ]
    if not any(present):
        return None
    if all(_is_map(schema, value) for value in present):
        left, right = _mapping(old), _mapping(new)
        names = dict.fromkeys([*left, *right])
        return [
            (
                f"f:{n}",
                child(schema, n) or ANY,
                left.get(n, _ABSENT),
                right.get(n, _ABSENT),
            )
            for n in names
        ]
    if all(_is_keyed_list(schema, value) for value in present):
        before, after = (
            dict(_keyed(schema, _items(old))),
            dict(_keyed(schema, _items(new))),
        )
        keys = dict.fromkeys([*before, *after])
        return [
            (k, schema.items or ANY, before.get(k, _ABSENT), after.get(k, _ABSENT))
            for k in keys
        ]
    return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def merge(schema: Schema, live: Any, applied: Any) -> Any:
    """The live value with an applied one laid over it; what the apply leaves out stays."""
    if _is_map(schema, live) and _is_map(schema, applied):
        merged = dict(live)
        for name, value in applied.items():
            below = child(schema, name) or ANY
            merged[name] = merge(below, live[name], value) if name in live else value
        return merged
    if _is_keyed_list(schema, live) and _is_keyed_list(schema, applied):
        return _merge_items(schema, live, applied)
    return applied


def _merge_items(
    schema: Schema, live: Sequence[Any], applied: Sequence[Any]
) -> list[Any]:
    wanted = dict(_keyed(schema, applied))
    present = dict(_keyed(schema, live))
    below = schema.items or ANY
    merged = {
        key: merge(below, item, wanted[key]) if key in wanted else item
        for key, item in present.items()
    }
    merged |= {key: item for key, item in wanted.items() if key not in present}
    if [key for key in present if key in wanted] == [
        key for key in wanted if key in present
    ]:
        return list(merged.values())
    ordered = [merged[key] for key in wanted]
    return ordered + [item for key, item in merged.items() if key not in wanted]


def remove(schema: Schema, value: Any, fields: FieldSet) -> Any:
    """The value without the paths of a set; containers that become empty go with them."""
    if _is_map(schema, value):
        kept = {}
        for name, inner in value.items():
            rest = _remaining(
                child(schema, name) or ANY, inner, fields.get(f"f:{name}")
            )
            if rest is not _ABSENT:
                kept[name] = rest
        return kept
    if _is_keyed_list(schema, value):
        rests = [
            _remaining(schema.items or ANY, item, fields.get(key))
            for key, item in _keyed(schema, value)
        ]
        return [rest for rest in rests if rest is not _ABSENT]
    return value


def _remaining(schema: Schema, value: Any, fields: FieldSet | None) -> Any:
    if fields is None:
        return value
    if is_member(fields):
        return _ABSENT
    rest = remove(schema, value, fields)
    return _ABSENT if value and not rest else rest
