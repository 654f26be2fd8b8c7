"""Deleting what was kept long enough: named objects, one by one, and nothing that is not ours.

A pass deletes what it finds and comes again until nothing is left; each object is deleted by its uid, so that one made
anew under the same name by somebody else is safe.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import PermanentError, TemporaryError
from connectors.kubernetes import Cluster as Client
from provisioning.desired.manifests import KUEUE, NAMED, Manifest, tenancy_objects
from provisioning.desired.objects import owner, selector
from provisioning.desired.plan import Key, Step, Verb, is_ours
from provisioning.desired.spec import TenancySpec
from provisioning.desired.volcano import QUEUE
from provisioning.models import Tenancy
from provisioning.stages import Stage
from reconciling import failpoints
from reconciling.conditions import READY, upsert
from reconciling.lease import Lease

AGAIN = 5.0
NAMESPACE = ("v1", "Namespace")
HELD = "NamespaceFinalizersRemaining"
LEFT = ("NamespaceContentRemaining", HELD)
GONE = "Nothing of it is left on the cluster."
WRITTEN_OFF = "Its cluster is gone for good."
FINALIZERS = "Some content in the namespace has finalizers remaining: "


@dataclass
class Removal:
    """One pass of deleting a tenancy: `pay` takes the budget for the writes, `check` raises when the lease is lost."""

    tenancy: Tenancy
    client: Client
    pay: Callable[[Sequence[Step]], None]
    check: Callable[[], None]
    writes: int = 0

    def run(self) -> int:
        """Delete what is left and return the writes; raises TemporaryError while something is on its way out."""
        left = self._left()
        going = [
            live
            for live in self._first(left)
            if not live["metadata"].get("deletionTimestamp")
        ]
        self.pay([Step(Verb.DELETE, Key.of(live), None) for live in going])
        for live in going:
            self._delete(live)
        remaining = self._left() if going else left
        if remaining:
            raise TemporaryError(still_there(remaining), retry_after=AGAIN)
        return self.writes

    def _first(self, left: Sequence[Manifest]) -> Sequence[Manifest]:
        """What may go now: with Volcano the namespace before the queue, which stays while pods of it have nodes."""
        spaces = [live for live in left if live["kind"] == "Namespace"]
        return spaces if spaces and self.tenancy.desired.has_volcano else left

    def _left(self) -> list[Manifest]:
        """What of ours still stands, in the order in which it goes; raises PermanentError for a foreign namespace."""
        spec = self.tenancy.desired
        found = [
            live
            for ref, namespace in places(spec)
            for live in self.client.list(
                ref, namespace, label_selector=selector(spec), name=NAMED.get(ref, "")
            )
            if is_of(live, spec)
        ]
        namespace = self.client.get(NAMESPACE, self.tenancy.namespace)
        if namespace is not None:
            namespace = {"apiVersion": "v1", "kind": "Namespace", **namespace}
            if not is_of(namespace, spec):
                raise PermanentError(
                    f"Namespace {self.tenancy.namespace} stands there and is not ours; it was not touched.",
                    code="foreign",
                )
            found.append(namespace)
        return found

    def _delete(self, live: Manifest) -> None:
        key = Key.of(live)
        self.check()
        try:
            self.client.delete(
                key.ref,
                key.name,
                key.namespace or None,
                uid=live["metadata"].get("uid", ""),
            )
        except PermanentError as error:
            if error.code == "denied" and key.ref == QUEUE:
                # Volcano still counts pods in it that have just gone.
                raise TemporaryError(error.message, retry_after=AGAIN) from error
            # Somebody has made it anew in between: the next pass looks at what it is now.
            if error.code != "conflict":
                raise
        self.writes += 1
        failpoints.reach("provision.write")


def places(spec: TenancySpec) -> list[tuple[tuple[str, str], str | None]]:
    """Kinds, and where to look for them, of what does not go with the namespace; the line before the queue."""
    found: list[tuple[tuple[str, str], str | None]] = []
    if not spec.has_volcano:
        found.append(((KUEUE, "LocalQueue"), spec.namespace))
    for manifest in tenancy_objects(spec):
        namespace = manifest["metadata"].get("namespace")
        place = ((manifest["apiVersion"], manifest["kind"]), namespace)
        if (
            manifest["kind"] != "Namespace"
            and namespace != spec.namespace
            and place not in found
        ):
            found.append(place)
    return found


def is_of(live: Mapping[str, Any], spec: TenancySpec) -> bool:
    """Whether an object carries the product's mark and this tenancy's; nothing else is ever deleted."""
    marks = live.get("metadata", {}).get("labels") or {}
    return is_ours(live) and owner(spec).items() <= marks.items()


def still_there(left: Sequence[Mapping[str, Any]]) -> str:
    """What is on its way out and what holds it, in words."""
    return " ".join(_held(live) for live in left)


def _held(live: Mapping[str, Any]) -> str:
    name = f"{live['kind']} {live['metadata']['name']}"
    conditions = {
        row["type"]: row for row in (live.get("status") or {}).get("conditions") or []
    }
    rows = [
        conditions[kind]
        for kind in LEFT
        if kind in conditions and conditions[kind]["status"] == "True"
    ]
    if not rows:
        own = ", ".join(live["metadata"].get("finalizers") or [])
        return f"{name} is being deleted" + (f"; {own} holds it." if own else ".")
    held = conditions.get(HELD)
    if held is not None and held["status"] == "True":
        return f"{name} is being deleted, but something is held: {held['message'].removeprefix(FINALIZERS)}."
    return f"{name} is being deleted. {rows[0]['message'].rstrip('.')}."


def why_lost(tenancy: Tenancy) -> dict[str, str]:
    """What an event about a tenancy says of a cluster that is written off; nothing of any other."""
    return {"reason": WRITTEN_OFF} if tenancy.cluster.written_off_at else {}


@transaction.atomic
def note_gone(
    tenancy: Tenancy, lease: Lease[Tenancy], *, writes: int, now: datetime
) -> bool:
    """Remember that nothing of a tenancy is left; False, with nothing changed, for a worker that lost its lease."""
    mine = lease.mine.filter(stage=Stage.REMOVING).select_for_update(
        of=("self",), no_key=True
    )
    if mine.first() is None:
        return False
    lease.release(
        stage=Stage.GONE,
        gone_at=now,
        is_true=True,
        observed_generation=tenancy.generation,
        true_since=now,
        last_looked_at=now,
        attempts=0,
        objects_seen=[],
        used=None,
        # What was known of it has gone with it.
        conditions=upsert(
            [],
            READY,
            status="True",
            reason="Gone",
            message=WRITTEN_OFF if tenancy.cluster.written_off_at else GONE,
            now=now,
        ),
    )
    # Differences about which nothing was decided: nobody has to any more.
    tenancy.drifts.open().delete()
    record(
        Kind.TENANCY_GONE,
        actor=PORTAL,
        subject=("tenancy", tenancy.pk),
        team_id=tenancy.team_id,
        writes=writes,
        namespace=tenancy.namespace,
        cluster=tenancy.cluster.name,
        **why_lost(tenancy),
    )
    return True
