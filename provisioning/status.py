"""What a pass saw, as conditions and a line per object; written once per pass under the lease's number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError, PermanentError
from provisioning.desired.plan import Key
from provisioning.drift.reconcile import Drifts, close, drifted
from provisioning.models import Tenancy
from provisioning.stages import Stage
from reconciling import failpoints
from reconciling.conditions import READY, Condition, upsert
from reconciling.lease import Lease


@dataclass(frozen=True)
class Seen:
    """One line of the checklist: `state` is `true`, `changed`, `failed` or `waiting`; `since` an ISO time."""

    kind: str
    name: str
    namespace: str
    state: str
    since: str
    message: str = ""

    @classmethod
    def of(cls, key: Key, state: str, *, now: datetime) -> "Seen":
        """An object in any state."""
        return cls(key.kind, key.name, key.namespace, state, now.isoformat())

    @classmethod
    def true(cls, key: Key, *, now: datetime) -> "Seen":
        """An object that stands as wanted."""
        return cls(key.kind, key.name, key.namespace, "true", now.isoformat())

    @classmethod
    def failed(cls, key: Key, message: str, *, now: datetime) -> "Seen":
        """The object at which the pass ended."""
        return cls(
            key.kind, key.name, key.namespace, "failed", now.isoformat(), message
        )

    @classmethod
    def changed(cls, key: Key, message: str, *, now: datetime) -> "Seen":
        """An object that was changed from elsewhere and is left alone."""
        return cls(
            key.kind, key.name, key.namespace, "changed", now.isoformat(), message
        )

    @classmethod
    def waiting(cls, key: Key, *, now: datetime) -> "Seen":
        """An object that the pass did not come to."""
        return cls(key.kind, key.name, key.namespace, "waiting", now.isoformat())


@dataclass(frozen=True)
class Said:
    """How a pass ended that neither failed nor saw everything true: the condition, and whether no more will come."""

    status: str
    reason: str
    message: str
    is_true: bool


def write_status(
    tenancy: Tenancy,
    lease: Lease[Tenancy],
    *,
    seen: Sequence[Seen] | None,
    error: ConnectorError | None,
    writes: int,
    now: datetime,
    requeue_at: datetime,
    used: Mapping[str, int] | None = None,
    said: Said | None = None,
    drifts: Drifts | None = None,
) -> bool:
    """End a pass: record the generation that was read, release the lease, and tell the audit log of a change.

    `seen` is None where no object was looked at: what was known of them stays. `used` is what the queue said of its use
    in this pass, None where it was not read or says nothing; `drifts` what was found changed from elsewhere, None where
    the pass did not come to look. Returns False, and changes nothing, when the lease is no longer the newest.
    """
    conditions = _ready(tenancy, error, said, drifts, now)
    is_true = said.is_true if said else error is None
    fields = _outcome(tenancy, is_true=is_true, used=used, now=now)
    fields["conditions"] = _drifted(conditions, error, drifts)
    if seen is not None:
        fields["objects_seen"] = _since_kept(tenancy.objects_seen, seen)
    if drifts is not None and error is None:
        fields["rendered"] = drifts.rendered
    with transaction.atomic():
        if not lease.finish(requeue_at=requeue_at, now=now, **fields):
            return False
        if error is None and drifts is not None and drifts.repairing:
            close(tenancy, drifts, writes=writes, now=now)
        if said is None:
            _tell(
                tenancy,
                conditions[0],
                error,
                writes,
                repaired=bool(drifts and drifts.repairing),
            )
        failpoints.reach("provision.status")
    return True


def _drifted(
    conditions: Sequence[Condition],
    error: ConnectorError | None,
    drifts: Drifts | None,
) -> list[Condition]:
    """The conditions with `Drifted` if something differs still; what was known stays when nobody came to look."""
    if drifts is None:
        return list(conditions)
    rows = [row for row, _ in drifts.left.values()]
    rows += drifts.repairing if error is not None else []
    return drifted(conditions, rows, drifts.left)


def _outcome(
    tenancy: Tenancy, *, is_true: bool, used: Mapping[str, int] | None, now: datetime
) -> dict[str, Any]:
    """What a pass found out, as fields of the tenancy."""
    fields: dict[str, Any] = {"is_true": is_true, "last_looked_at": now}
    if used is not None:
        fields |= {"used": dict(used), "used_at": now}
    if is_true:
        fields |= {"observed_generation": tenancy.generation, "attempts": 0}
        if not tenancy.is_settled:
            fields["true_since"] = now
        if tenancy.stage == Stage.RETAINED and tenancy.drained_at is None:
            fields["drained_at"] = now
    return fields


def _tell(
    tenancy: Tenancy,
    condition: Condition,
    error: ConnectorError | None,
    writes: int,
    *,
    repaired: bool,
) -> None:
    """One event when something became true or failed for a new reason; none for an idle look or a repair."""
    details: dict[str, Any]
    if error is None and (not tenancy.is_settled or (writes and not repaired)):
        kind, details = (
            Kind.TENANCY_CONVERGED,
            {"generation": tenancy.generation, "writes": writes},
        )
    elif error is not None and tenancy.ready["message"] != condition["message"]:
        kind, details = (
            Kind.TENANCY_FAILED,
            {"reason": condition["reason"], "message": error.message},
        )
    else:
        return
    record(
        kind,
        actor=PORTAL,
        subject=("tenancy", tenancy.pk),
        team_id=tenancy.team_id,
        **details,
    )


def _ready(
    tenancy: Tenancy,
    error: ConnectorError | None,
    said: Said | None,
    drifts: Drifts | None,
    now: datetime,
) -> list[Condition]:
    """The tenancy's conditions with how the pass ended."""
    if said is not None:
        status, reason, message = said.status, said.reason, said.message
    elif error is None and drifts is not None and drifts.left:
        many = (
            f"{len(drifts.left)} objects that were"
            if len(drifts.left) > 1
            else "1 object that was"
        )
        message = f"Everything stands as wanted, but for {many} changed from elsewhere."
        status, reason = "True", "Drifted"
    elif error is None:
        status, reason, message = (
            "True",
            "AllObjectsTrue",
            "Every object stands as wanted.",
        )
    elif isinstance(error, PermanentError):
        status, reason, message = "False", "Refused", error.message
    else:
        status, reason, message = "False", "WillTryAgain", error.message
    return upsert(
        tenancy.conditions,
        READY,
        status=status,
        reason=reason,
        message=message,
        now=now,
    )


def _since_kept(
    before: Sequence[dict[str, str]], seen: Sequence[Seen]
) -> list[dict[str, str]]:
    """The lines with the time since when each has been in its state."""
    since = {(o["kind"], o["name"], o["state"]): o["since"] for o in before}
    return [
        {**vars(s), "since": since.get((s.kind, s.name, s.state), s.since)}
        for s in seen
    ]
