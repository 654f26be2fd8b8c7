"""What the cluster holds: objects, one global resourceVersion, and the log that watches and old lists read.

Objects are never changed in place: every write replaces the mapping, so readers, the log and cached
encodings may share it.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.kubernetes.kinds import KINDS, Kind

Obj = Mapping[str, Any]
Key = tuple[str, str]
LOG_LENGTH = 20_000


class Entry:
    """One version of one object, with its JSON made on first need."""

    __slots__ = ("_encoded", "obj")

    def __init__(self, obj: Obj) -> None:
        self.obj = obj
        self._encoded: bytes | None = None

    @property
    def body(self) -> bytes:
        """The JSON of the object without kind and apiVersion and without the opening brace."""
        if self._encoded is None:
            bare = {
                key: value
                for key, value in self.obj.items()
                if key not in {"kind", "apiVersion"}
            }
            self._encoded = json.dumps(bare, separators=(",", ":")).encode()[1:]
        return self._encoded


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the log: before is None for a creation, after is what a watch shows."""

    version: int
    resource: Key
    key: Key
    before: Entry | None
    after: Entry
    removed: bool


@dataclass
class Table:
    """All objects of one kind, by (namespace, name)."""

    entries: dict[Key, Entry] = field(default_factory=dict)
    by_namespace: dict[str, dict[str, Entry]] = field(default_factory=dict)

    def put(self, key: Key, entry: Entry) -> None:
        """Add or replace one entry."""
        self.entries[key] = entry
        self.by_namespace.setdefault(key[0], {})[key[1]] = entry

    def drop(self, key: Key) -> None:
        """Remove one entry."""
        del self.entries[key]
        names = self.by_namespace[key[0]]
        del names[key[1]]
        if not names:
            del self.by_namespace[key[0]]

    def sorted(self, namespace: str | None) -> list[tuple[Key, Entry]]:
        """Entries in the order lists show them; None means all namespaces."""
        if namespace is None:
            return sorted(self.entries.items())
        names = self.by_namespace.get(namespace, {})
        return [((namespace, name), names[name]) for name in sorted(names)]


class Store:
    """The objects of one cluster."""

    def __init__(self) -> None:
        self.version = 1
        # The oldest versions that a list may still be read at, and that a watch may still begin at.
        self.oldest = 0
        self.cached_since = 1
        self._compacted = 0
        self.dirty = False
        self._tables: dict[Key, Table] = {}
        self._log: deque[Change] = deque(maxlen=LOG_LENGTH)
        self._listeners: list[Callable[[Change], None]] = []

    def table(self, kind: Kind) -> Table:
        """The table of a kind, whatever version of it the caller named."""
        return self._tables.setdefault((kind.group, kind.plural), Table())

    def entry(self, kind: Kind, namespace: str, name: str) -> Entry | None:
        """One object with its encoding, or None."""
        return self.table(kind).entries.get((namespace, name))

    def get(self, kind: Kind, namespace: str, name: str) -> Obj | None:
        """One object, or None; callers must not change it."""
        found = self.entry(kind, namespace, name)
        return found.obj if found else None

    def objects(self, kind: Kind, namespace: str | None = None) -> Iterator[Obj]:
        """Every object of a kind in list order."""
        return (entry.obj for _, entry in self.table(kind).sorted(namespace))

    def put(self, kind: Kind, obj: Obj) -> Entry:
        """Store a new version of an object under the next resourceVersion and tell the watches."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        before = self.table(kind).entries.get(key)
        entry = Entry(
            {**obj, "metadata": {**metadata, "resourceVersion": self._next()}}
        )
        self.table(kind).put(key, entry)
        self._record(kind, key, before, entry, removed=False)
        return entry

    def remove(self, kind: Kind, namespace: str, name: str) -> Entry:
        """Take an object away; the entry returned carries the version of its removal."""
        key = (namespace, name)
        before = self.table(kind).entries[key]
        self.table(kind).drop(key)
        metadata = {**before.obj["metadata"], "resourceVersion": self._next()}
        entry = Entry({**before.obj, "metadata": metadata})
        self._record(kind, key, before, entry, removed=True)
        return entry

    def _next(self) -> str:
        self.version += 1
        return str(self.version)

    def _record(
        self, kind: Kind, key: Key, before: Entry | None, after: Entry, *, removed: bool
    ) -> None:
        self.dirty = True
        if len(self._log) == LOG_LENGTH:
            self.oldest = max(self.oldest, self._log[0].version)
            self.cached_since = max(self.cached_since, self.oldest)
        change = Change(
            self.version, (kind.group, kind.plural), key, before, after, removed
        )
        self._log.append(change)
        for listener in tuple(self._listeners):
            listener(change)

    def changes(self, kind: Kind, since: int) -> list[Change]:
        """The log of one kind after a version that must not be older than ``oldest``."""
        resource = (kind.group, kind.plural)
        return [
            change
            for change in self._log
            if change.version > since and change.resource == resource
        ]

    def as_of(
        self, kind: Kind, version: int, namespace: str | None
    ) -> list[tuple[Key, Entry]]:
        """The list of a kind as it was at a version that the log still reaches."""
        past: dict[Key, Entry] = dict(self.table(kind).sorted(namespace))
        for change in reversed(self.changes(kind, version)):
            if namespace not in {None, change.key[0]}:
                continue
            if change.before is None:
                past.pop(change.key, None)
            else:
                past[change.key] = change.before
        return sorted(past.items())

    def compact(self) -> None:
        """Compact etcd: what the API server has cached since it started is still served from its cache."""
        self._compacted = self.version
        self._forget()

    def begin_caching(self) -> None:
        """Start the API server: its caches begin now, and what is older is read from etcd, if that still has it."""
        self.cached_since = self.version
        self._forget()

    def _forget(self) -> None:
        self.oldest = max(self.oldest, min(self._compacted, self.cached_since))

    def listen(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call the listener on every change until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def snapshot(self) -> dict[str, Any]:
        """Everything as JSON data; the log is not kept, so watches expire over a restart."""
        kinds = {(kind.group, kind.plural): kind for kind in KINDS}
        objects = [
            entry.obj
            for resource, table in sorted(self._tables.items())
            if resource in kinds
            for _, entry in table.sorted(None)
        ]
        return {"version": self.version, "objects": objects}

    def restore(
        self, data: Mapping[str, Any], kind_of: Callable[[Obj], Kind | None]
    ) -> None:
        """Replace everything by a snapshot; objects of kinds no longer served are left out."""
        self._tables.clear()
        for obj in data["objects"]:
            kind = kind_of(obj)
            if kind:
                metadata = obj["metadata"]
                self.table(kind).put(
                    (metadata.get("namespace", ""), metadata["name"]), Entry(obj)
                )
        self.version = int(data["version"])
        self._log.clear()
        self.oldest = self.cached_since = self._compacted = self.version
        self.dirty = False
