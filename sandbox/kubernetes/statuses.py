"""Writing objects as controllers do: only what differs, and in the name of one manager."""

import uuid
from collections.abc import Mapping
from typing import Any

from sandbox.kubernetes import ownership
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.ownership import Writer
from sandbox.kubernetes.store import Entry, Obj, Store


def write_status(
    store: Store, kind: Kind, obj: Obj, status: Mapping[str, Any], manager: str
) -> None:
    """Store a status if it differs from the object's; the fields it changes become the manager's."""
    if obj.get("status") == status:
        return
    changed = {**obj, "status": status}
    claims = ownership.update(
        kind, obj, changed, Writer(manager, "Update", "status"), timestamp()
    )
    store.put(kind, ownership.with_claims(changed, claims))


def write_object(
    store: Store, kind: Kind, obj: Obj, changed: Obj, manager: str
) -> None:
    """Store everything but a status; another spec raises the generation."""
    if obj == changed:
        return
    claims = ownership.update(
        kind, obj, changed, Writer(manager, "Update"), timestamp()
    )
    whole = ownership.with_claims(changed, claims)
    if "generation" in whole["metadata"] and obj.get("spec") != changed.get("spec"):
        whole["metadata"] = {
            **whole["metadata"],
            "generation": obj["metadata"]["generation"] + 1,
        }
    store.put(kind, whole)


def write_new(store: Store, kind: Kind, obj: Mapping[str, Any], manager: str) -> Entry:
    """Store a new object, which brings its name and namespace; it gets a uid and a time of creation."""
    whole = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
    claims = ownership.update(
        kind, ownership.unborn(kind), whole, Writer(manager, "Update"), timestamp()
    )
    made = {"uid": str(uuid.uuid4()), "creationTimestamp": timestamp()}
    return store.put(
        kind,
        ownership.with_claims(
            {**whole, "metadata": {**made, **whole["metadata"]}}, claims
        ),
    )
