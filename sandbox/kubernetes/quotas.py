"""The controller that keeps the status of ResourceQuotas true."""

from collections.abc import Iterator
from typing import Any

from sandbox.kubernetes import quota, scopes
from sandbox.kubernetes.admission import QUOTAS
from sandbox.kubernetes.kinds import KINDS, Kind
from sandbox.kubernetes.statuses import write_status
from sandbox.kubernetes.store import Change, Obj, Store

MANAGER = "kube-controller-manager"
_NAMESPACED = tuple(kind for kind in KINDS if kind.namespaced)
_VARIABLE = frozenset({("", "pods"), ("", "persistentvolumeclaims"), ("", "services")})


class Quotas:
    """Recounts a namespace when something in it went away or may count differently now."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def react(self, change: Change) -> None:
        """Look at one change; creations were counted when they were admitted."""
        namespace = change.key[0]
        if change.resource == ("", "resourcequotas"):
            if not change.removed:
                self._recount(namespace, change.key[1])
        elif namespace and (
            change.removed
            or (change.before is not None and change.resource in _VARIABLE)
        ):
            for item in self._store.objects(QUOTAS, namespace):
                self._recount(namespace, item["metadata"]["name"])

    def _recount(self, namespace: str, name: str) -> None:
        item = self._store.get(QUOTAS, namespace, name)
        if item is None:
            return
        hard = (item.get("spec") or {}).get("hard") or {}
        state: dict[str, Any] = {
            "hard": hard,
            "used": quota.used(hard, self._objects(item, namespace)),
        }
        if hard or (item.get("status") or {}):
            write_status(self._store, QUOTAS, item, state, MANAGER)

    def _objects(
        self, item: Obj, namespace: str
    ) -> Iterator[tuple[Kind, dict[str, Any]]]:
        for kind in _NAMESPACED:
            for obj in self._store.objects(kind, namespace):
                if scopes.covers(item, kind, obj):
                    yield kind, dict(obj)
