"""Watches: what happened since a version, and what happens until the time is up."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from sandbox.kubernetes.calls import Call, Target, whole
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.reads import parse_version, selector_of
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.store import Change, Entry, Obj, Store

BOOKMARK_EVERY = 60.0
# The last bookmark of a watch comes so long before its end (kube-apiserver, cacheWatcher.nextBookmarkTime).
BOOKMARK_BEFORE_END = 2.0
DEFAULT_TIMEOUT = 1800.0
_END = "k8s.io/initial-events-end"


class Watch:
    """One watch; iterate ``events()`` for its lines."""

    def __init__(self, store: Store, kind: Kind, call: Call, target: Target) -> None:
        self._store = store
        self._kind = kind
        self._namespace = target.namespace if kind.namespaced else ""
        self._selector = selector_of(call, kind) or _everything
        if target.name:
            self._selector = _named(target.name, self._selector)
        self._since = parse_version(call.query.get("resourceVersion") or "0")
        self._bookmarks = call.query.get("allowWatchBookmarks") == "true"
        self._initial_end = call.query.get("sendInitialEvents") == "true"
        self._timeout = float(call.query.get("timeoutSeconds") or DEFAULT_TIMEOUT)
        self._queue: asyncio.Queue[Change | None] = asyncio.Queue()

    def end(self) -> None:
        """End it before its time, as an API server does that is told to stop."""
        self._queue.put_nowait(None)

    async def events(self) -> AsyncIterator[bytes]:
        """Lines until timeoutSeconds are over; an expired start is one ERROR line."""
        stop = self._store.listen(self._queue.put_nowait)
        try:
            if 0 < self._since < self._store.cached_since:
                yield self._expired()
                return
            for line in list(self._past()):
                yield line
            async for line in self._future():
                yield line
        finally:
            stop()

    def _expired(self) -> bytes:
        message = (
            f"too old resource version: {self._since} ({self._store.cached_since})"
        )
        status = Refusal(410, message, "Expired").body
        return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"

    def _past(self) -> Iterator[bytes]:
        if self._since:
            for change in self._store.changes(self._kind, self._since):
                yield from self._lines(change)
            return
        for _, entry in self._store.table(self._kind).sorted(self._namespace or None):
            if self._selector(entry.obj):
                yield self._line("ADDED", entry)
        if self._initial_end:
            yield self._bookmark({"annotations": {_END: "true"}})

    async def _future(self) -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        end = clock() + self._timeout
        bookmark_at = _next_bookmark(clock(), end)
        while (left := end - clock()) > 0:
            until = min(left, bookmark_at - clock()) if self._bookmarks else left
            try:
                change = await asyncio.wait_for(self._queue.get(), max(0.0, until))
            except TimeoutError:
                if self._bookmarks and clock() >= bookmark_at:
                    yield self._bookmark({})
                    bookmark_at = _next_bookmark(clock(), end)
                continue
            if change is None:
                return
            if change.version > self._since:
                for line in self._lines(change):
                    yield line

    def _lines(self, change: Change) -> Iterator[bytes]:
        if change.resource != (self._kind.group, self._kind.plural):
            return
        if self._namespace and change.key[0] != self._namespace:
            return
        before, after = change.before, change.after
        was = before is not None and self._selector(before.obj)
        now = not change.removed and self._selector(after.obj)
        if now:
            yield self._line("MODIFIED" if was else "ADDED", after)
        elif was and before is not None:
            yield self._line("DELETED", _at_version(before, after))

    def _line(self, event: str, entry: Entry) -> bytes:
        return (
            b'{"type":"'
            + event.encode()
            + b'","object":'
            + whole(self._kind, entry)
            + b"}\n"
        )

    def _bookmark(self, metadata: dict[str, Any]) -> bytes:
        kind = self._kind
        metadata = {"resourceVersion": str(self._store.version), **metadata}
        body = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        return json.dumps({"type": "BOOKMARK", "object": body}).encode() + b"\n"


def _next_bookmark(now: float, end: float) -> float:
    """Every minute, and once before the end; never in a watch that is shorter than that."""
    at = min(now + BOOKMARK_EVERY, end - BOOKMARK_BEFORE_END)
    return at if at > now else math.inf


def _at_version(before: Entry, after: Entry) -> Entry:
    version = after.obj["metadata"]["resourceVersion"]
    return Entry(
        {
            **before.obj,
            "metadata": {**before.obj["metadata"], "resourceVersion": version},
        }
    )


def _everything(_obj: Obj) -> bool:
    return True


def _named(name: str, selector: Callable[[Obj], bool]) -> Callable[[Obj], bool]:
    return lambda obj: obj["metadata"]["name"] == name and selector(obj)
