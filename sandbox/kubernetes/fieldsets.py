"""Sets of field paths in the FieldsV1 form of managedFields, and their algebra.

A set is the nested mapping that managedFields stores: a key is a path element (``f:name``, ``k:{…}``,
``v:…``), an empty mapping is a member, and ``"."`` marks a member that also has members below it.
Sets are never changed in place, so parts may be shared.
"""

from collections.abc import Iterator, Mapping
from typing import Any

FieldSet = Mapping[str, Any]

EMPTY: FieldSet = {}
_MARK: dict[str, Any] = {}


def is_member(node: FieldSet) -> bool:
    """Whether the path that leads to this node is itself in the set."""
    return not node or "." in node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """All paths of both sets."""
    if not left:
        return right
    if not right or left == right:
        return left
    merged = dict(left)
    for key, node in right.items():
        mine = merged.get(key)
        merged[key] = node if mine is None else _union_node(mine, node)
    return merged


def _union_node(left: FieldSet, right: FieldSet) -> FieldSet:
    if left == right:
        return left
    merged = dict(
        union(
            {k: v for k, v in left.items() if k != "."},
            {k: v for k, v in right.items() if k != "."},
        )
    )
    if merged and (is_member(left) or is_member(right)):
        merged["."] = _MARK
    return merged


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths of the left set that are not in the right one; a member does not take its children along."""
    if not right or not left:
        return left
    kept: dict[str, Any] = {}
    for key, node in left.items():
        other = right.get(key)
        if other is None:
            kept[key] = node
            continue
        remains = _node(
            _children(node, difference, other), is_member(node) and not is_member(other)
        )
        if remains is not None:
            kept[key] = remains
    return kept


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths that are in both sets."""
    shared: dict[str, Any] = {}
    for key, node in left.items():
        other = right.get(key)
        if other is None:
            continue
        both = _node(
            _children(node, intersection, other), is_member(node) and is_member(other)
        )
        if both is not None:
            shared[key] = both
    return shared


def _children(node: FieldSet, combine: Any, other: FieldSet) -> FieldSet:
    mine = {key: value for key, value in node.items() if key != "."}
    theirs = {key: value for key, value in other.items() if key != "."}
    result: FieldSet = combine(mine, theirs)
    return result


def _node(children: FieldSet, member: bool) -> FieldSet | None:
    if not children:
        return EMPTY if member else None
    return {".": _MARK, **children} if member else children


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every member path, parents before children, names in order."""
    for key in sorted(fields):
        if key == ".":
            continue
        path = (*prefix, key)
        if is_member(fields[key]):
            yield path
        yield from paths(fields[key], path)


def dotted(path: tuple[str, ...]) -> str:
    """A path as conflict messages write it: ``.spec.ports[name="http"].port``."""
    return "".join(_element(key) for key in path)


def _element(key: str) -> str:
    marker, _, rest = key.partition(":")
    if marker == "f":
        return f".{rest}"
    if marker == "v":
        return f"[={rest}]"
    pairs = rest.strip("{}").split(",")
    return (
        "["
        + ",".join(pair.replace('":', '"=', 1).replace('"', "", 2) for pair in pairs)
        + "]"
    )
