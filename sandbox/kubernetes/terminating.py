"""Namespaces on their way out: content deleted, what is left reported, the namespace removed."""

from collections import Counter
from typing import Any

from sandbox.kubernetes import ownership
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.deletes import Deletes
from sandbox.kubernetes.kinds import KINDS, Kind, builtin
from sandbox.kubernetes.ownership import Writer
from sandbox.kubernetes.store import Obj, Store

_FIXED = (
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)
_WRITER = Writer("kube-controller-manager", "Update", "status")


class Terminator:
    """Empties and removes the namespaces it was woken for."""

    def __init__(self, store: Store, deletes: Deletes) -> None:
        self._store = store
        self._deletes = deletes
        self.pending: set[str] = set()

    def wake(self, namespace: str) -> None:
        """Look at a namespace again at the next run, if it is being deleted."""
        obj = self._namespace(namespace)
        if obj is not None and "deletionTimestamp" in obj["metadata"]:
            self.pending.add(namespace)

    def _namespace(self, name: str) -> Obj | None:
        return self._store.get(_NAMESPACE, "", name)

    def run(self) -> None:
        """One pass over everything pending."""
        names, self.pending = self.pending, set()
        for name in sorted(names):
            obj = self._namespace(name)
            # It may be gone by now, and another one may have its name.
            if obj is not None and "deletionTimestamp" in obj["metadata"]:
                self._empty(name)
                self._conclude(name, obj)

    def _empty(self, namespace: str) -> None:
        for kind in KINDS:
            if kind.namespaced:
                for _, entry in self._store.table(kind).sorted(namespace):
                    self._deletes.remove(kind, entry, "Background")

    def _conclude(self, name: str, obj: Obj) -> None:
        left: Counter[str] = Counter()
        holding: Counter[str] = Counter()
        for kind in KINDS:
            for item in self._store.objects(kind, name) if kind.namespaced else ():
                left[_plural(kind)] += 1
                holding.update(item["metadata"].get("finalizers") or ())
        if not left:
            spec = {
                key: value
                for key, value in (obj.get("spec") or {}).items()
                if key != "finalizers"
            }
            self._store.put(_NAMESPACE, {**obj, "spec": spec})
            if not obj["metadata"].get("finalizers"):
                self._store.remove(_NAMESPACE, "", name)
            return
        self._report(obj, left, holding)

    def _report(self, obj: Obj, left: Counter[str], holding: Counter[str]) -> None:
        conditions = [_condition(*row, status="False") for row in _FIXED]
        remaining = ", ".join(
            f"{plural} has {count} resource instances"
            for plural, count in sorted(left.items())
        )
        message = f"Some resources are remaining: {remaining}"
        conditions.append(
            _condition(
                "NamespaceContentRemaining",
                "SomeResourcesRemain",
                message,
                status="True",
            )
        )
        kept = ", ".join(
            f"{name} in {count} resource instances"
            for name, count in sorted(holding.items())
        )
        if kept:
            message = f"Some content in the namespace has finalizers remaining: {kept}"
            held = ("NamespaceFinalizersRemaining", "SomeFinalizersRemain", message)
            conditions.append(_condition(*held, status="True"))
        before = (obj.get("status") or {}).get("conditions") or []
        if [_said(row) for row in before] == [_said(row) for row in conditions]:
            return
        changed = {**obj, "status": {**obj["status"], "conditions": conditions}}
        claims = ownership.update(_NAMESPACE, obj, changed, _WRITER, timestamp())
        self._store.put(_NAMESPACE, ownership.with_claims(changed, claims))


def _plural(kind: Kind) -> str:
    return f"{kind.plural}.{kind.group}"


def _condition(kind: str, reason: str, message: str, *, status: str) -> dict[str, str]:
    now = timestamp()
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def _said(condition: dict[str, Any]) -> tuple[Any, Any, Any]:
    return condition["type"], condition["status"], condition["message"]


_NAMESPACE = builtin("v1", "Namespace")
