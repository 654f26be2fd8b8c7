"""Creating objects as controllers do: through admission and quota, as anybody else."""

import uuid
from typing import Any

from sandbox.kubernetes import status
from sandbox.kubernetes.admission import Admission
from sandbox.kubernetes.calls import Target
from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.policies import Attempt
from sandbox.kubernetes.statuses import write_new
from sandbox.kubernetes.store import Obj, Store


def create(
    store: Store,
    admission: Admission,
    kind: Kind,
    metadata: dict[str, Any],
    body: Obj,
    who: Identity,
    by: str,
) -> Obj:
    """Store a new object in the name of the manager `by`; raises Refusal as the API server would."""
    namespace, name = str(metadata["namespace"]), str(metadata["name"])
    target = Target(kind.group, kind.version, kind.plural, namespace, name)
    admission.check_namespace(kind, target)
    metadata = {**metadata, "uid": str(uuid.uuid4())}
    whole = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        **body,
    }
    obj = admission.mutated(
        kind, admission.defaulted(kind, whole, metadata["uid"]), target
    )
    obj = admission.limited(kind, obj)
    admission.validated(kind, obj, None)
    admission.judged(Attempt(kind, "CREATE", who, obj, None))
    if store.get(kind, namespace, name) is not None:
        raise status.already_exists(kind, name, deleting=False)
    admission.charged(kind, obj, None, dry_run=False)
    return write_new(store, kind, obj, by).obj


def owned_by(owner: Obj) -> dict[str, Any]:
    """The reference to what made an object and looks after it."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
