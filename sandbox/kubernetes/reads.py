"""GET of one object and of lists: selectors, pages, old versions."""

import base64
import json
from collections.abc import Callable
from typing import Any

from sandbox.kubernetes import selectors
from sandbox.kubernetes.calls import (
    Answer,
    Call,
    Target,
    head_of,
    json_answer,
    object_answer,
    partial,
    wants,
    whole,
)
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.status import Refusal, bad_request, not_found
from sandbox.kubernetes.store import Entry, Key, Obj, Store

_EXPIRED_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)
Row = tuple[Key, Entry]


def get(store: Store, kind: Kind, call: Call, target: Target) -> Answer:
    """One object, or 404."""
    entry = store.entry(kind, target.namespace, target.name)
    if entry is None:
        raise not_found(kind, target.name)
    if wants(call, "PartialObjectMetadata"):
        return json_answer(200, partial(entry.obj))
    return object_answer(kind, entry)


def selector_of(call: Call, kind: Kind) -> Callable[[Obj], bool] | None:
    """The selection a request asks for, or None when it asks for everything."""
    labels, fields = (
        call.query.get("labelSelector", ""),
        call.query.get("fieldSelector", ""),
    )
    if not labels and not fields:
        return None
    match_labels = selectors.parse_labels(labels)
    match_fields = selectors.parse_fields(fields, kind.qualified_plural)
    return lambda obj: (
        match_labels(obj["metadata"].get("labels") or {}) and match_fields(obj)
    )


def list_objects(store: Store, kind: Kind, call: Call, target: Target) -> Answer:
    """A list, whole or by pages; a namespace that does not exist has an empty one."""
    namespace = (target.namespace or None) if kind.namespaced else None
    selector = selector_of(call, kind)
    version, start = _where(store, call)
    if version is None:
        rows, version = store.table(kind).sorted(namespace), store.version
    else:
        rows = store.as_of(kind, version, namespace)
    if start:
        rows = [row for row in rows if _place(row, namespace) >= start]
    if selector:
        rows = [row for row in rows if selector(row[1].obj)]
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    limit = int(call.query.get("limit") or 0)
    if 0 < limit < len(rows):
        last = _place(rows[limit - 1], namespace)
        metadata["continue"] = _token(version, f"/{last}\0")
        if not selector:
            metadata["remainingItemCount"] = len(rows) - limit
        rows = rows[:limit]
    elif not kind.builtin:
        metadata["continue"] = ""
    return list_answer(kind, rows, metadata, call)


def list_answer(
    kind: Kind, rows: list[Row], metadata: dict[str, Any], call: Call
) -> Answer:
    """A list as JSON; items of builtin kinds carry no kind and apiVersion."""
    if wants(call, "PartialObjectMetadataList"):
        items = [partial(entry.obj) for _, entry in rows]
        body = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
        }
        return json_answer(200, {**body, "items": items})
    if kind.builtin:
        parts = b",".join(b"{" + entry.body for _, entry in rows)
    else:
        parts = b",".join(whole(kind, entry) for _, entry in rows)
    head = head_of(kind).replace(
        f'"{kind.kind}"'.encode(), f'"{kind.kind}List"'.encode(), 1
    )
    meta = json.dumps(metadata, separators=(",", ":")).encode()
    return Answer(
        200, b"".join((head, b'"metadata":', meta, b',"items":[', parts, b"]}"))
    )


def _place(row: Row, namespace: str | None) -> str:
    place, name = row[0]
    return name if namespace is not None or not place else f"{place}/{name}"


def _token(version: int, start: str) -> str:
    text = json.dumps(
        {"v": "meta.k8s.io/v1", "rv": version, "start": start}, separators=(",", ":")
    )
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _where(store: Store, call: Call) -> tuple[int | None, str]:
    """The version to read (None: now) and the place to start at."""
    if token := call.query.get("continue"):
        return _resume(store, token)
    asked = _version(call)
    if asked > store.version:
        raise _too_large(asked, store.version)
    if call.query.get("resourceVersionMatch") == "Exact":
        if asked < store.oldest:
            raise Refusal(
                410, "The resourceVersion for the provided list is too old.", "Expired"
            )
        return asked, ""
    return None, ""


def _resume(store: Store, token: str) -> tuple[int | None, str]:
    text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode(
        errors="replace"
    )
    try:
        page = json.loads(text)
        version, start = int(page["rv"]), str(page["start"]).lstrip("/")
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request(
            f"invalid continue token: continue key is not valid: {_go_json_error(text)}"
        ) from error
    if version == -1:
        return None, start
    if version < store.oldest:
        raise Refusal(
            410, _EXPIRED_PAGE, "Expired", metadata={"continue": _token(-1, start)}
        )
    return version, start


def _go_json_error(text: str) -> str:
    if text[:1] == "n" and text[1:2] not in {"", "u"}:
        return f"invalid character '{text[1]}' in literal null (expecting 'u')"
    return f"invalid character '{text[:1]}' looking for beginning of value"


def _version(call: Call) -> int:
    text = call.query.get("resourceVersion") or "0"
    return parse_version(text)


def parse_version(text: str) -> int:
    """A resourceVersion from a query; 500 without a reason for what is no number, as the API server has it."""
    if not text.isdigit():
        message = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise Refusal(500, message)
    return int(text)


def _too_large(asked: int, current: int) -> Refusal:
    details = {
        "causes": [
            {
                "reason": "ResourceVersionTooLarge",
                "message": "Too large resource version",
            }
        ],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return Refusal(504, message, "Timeout", details, headers={"retry-after": "1"})
