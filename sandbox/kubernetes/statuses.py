"""Writing the status of an object as a controller does."""

from collections.abc import Mapping
from typing import Any

from sandbox.kubernetes import ownership
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.ownership import Writer
from sandbox.kubernetes.store import Obj, Store


def write_status(store: Store, kind: Kind, obj: Obj, status: Mapping[str, Any], manager: str) -> None:
    """Store a status if it differs from the object's; the fields it changes become the manager's."""
    if obj.get("status") == status:
        return
    changed = {**obj, "status": status}
    claims = ownership.update(kind, obj, changed, Writer(manager, "Update", "status"), timestamp())
    store.put(kind, ownership.with_claims(changed, claims))
