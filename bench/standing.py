"""A cluster on which many tenancies stand already: as the portal would have left it, without writing each object."""

import json
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from connectors.kubernetes import MANAGER, path, ref_of
from provisioning.desired.manifests import Manifest, tenancy_objects
from provisioning.desired.plan import Key
from provisioning.drift.comparing import digest
from provisioning.models import Tenancy
from sandbox.kubernetes import Cluster, Identity
from tests.recordings.calling import call

ADMIN = "admin"
ONCE = {"fieldManager": MANAGER, "force": "true"}
APPLY = {
    "authorization": f"Bearer {ADMIN}",
    "content-type": "application/apply-patch+yaml",
}
BATCH = 250


def write(
    folder: Path, name: str, tenancies: Sequence[Tenancy], *, now: datetime
) -> None:
    """Leave such a cluster's state where its sandbox finds it when it starts, and say in the database that all is true.

    The first tenancy is applied to a sandbox in this process; what stands there is the others' too, under their names.
    """
    cluster = Cluster(name, tokens={ADMIN: Identity(ADMIN, ("system:masters",))})
    first, *others = tenancies
    manifests = tenancy_objects(first.desired)
    for manifest in manifests:
        where = path(
            ref_of(manifest),
            manifest["metadata"].get("namespace"),
            manifest["metadata"]["name"],
        )
        answer = call(
            cluster.app, "PATCH", where, ONCE, APPLY, json.dumps(manifest).encode()
        )
        if answer.status >= 400:
            raise RuntimeError(f"{where}: {answer.status}")
    state = cluster.snapshot()
    pattern = [
        json.dumps(one) for one in state["objects"] if first.namespace in _places(one)
    ]
    for other in others:
        state["objects"] += _copies(pattern, first, other)
    for version, one in enumerate(state["objects"], start=1):
        one["metadata"] = {
            **one["metadata"],
            "uid": str(uuid.uuid4()),
            "resourceVersion": str(version),
        }
    folder.mkdir(parents=True, exist_ok=True)
    state["version"] = len(state["objects"]) + 1
    (folder / f"state-kubernetes-{name}.json").write_text(json.dumps(state))
    _say_true(tenancies, now=now)


def _places(one: Manifest) -> tuple[str, str]:
    return one["metadata"].get("namespace", ""), one["metadata"]["name"]


def _copies(
    pattern: Iterable[str], first: Tenancy, other: Tenancy
) -> Iterable[Manifest]:
    """The objects of one tenancy as they would stand for another."""
    wanted = {Key.of(manifest): manifest for manifest in tenancy_objects(other.desired)}
    for text in pattern:
        copy = json.loads(text.replace(first.namespace, other.namespace))
        yield _laid_on(copy, wanted.get(Key.of(copy), {}))


def _laid_on(live: Any, wanted: Any) -> Any:
    """What stands, with what is wanted laid on it; what the server added stays."""
    if isinstance(live, dict) and isinstance(wanted, dict):
        return {
            **live,
            **{name: _laid_on(live.get(name), value) for name, value in wanted.items()},
        }
    if isinstance(live, list) and isinstance(wanted, list) and len(live) == len(wanted):
        return [_laid_on(*pair) for pair in zip(live, wanted, strict=True)]
    return wanted


def _say_true(tenancies: Sequence[Tenancy], *, now: datetime) -> None:
    """What a pass that found everything true would have written."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "AllObjectsTrue",
        "message": "Every object stands as wanted.",
        "since": now.isoformat(),
    }
    for tenancy in tenancies:
        desired = tenancy_objects(tenancy.desired)
        tenancy.rendered, tenancy.conditions, tenancy.is_true = (
            digest(desired),
            [ready],
            True,
        )
        tenancy.observed_generation = tenancy.generation
        tenancy.true_since = tenancy.last_looked_at = now
        tenancy.objects_seen = [
            {
                "kind": key.kind,
                "name": key.name,
                "namespace": key.namespace,
                "state": "true",
                "since": now.isoformat(),
                "message": "",
            }
            for key in map(Key.of, desired)
        ]
    fields = [
        "rendered",
        "conditions",
        "is_true",
        "observed_generation",
        "true_since",
        "last_looked_at",
    ]
    Tenancy.objects.bulk_update(tenancies, [*fields, "objects_seen"], batch_size=BATCH)
