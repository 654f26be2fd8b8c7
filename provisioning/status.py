"""What a pass saw, as conditions and a line per object; written once per pass under the lease's number."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError, PermanentError
from provisioning.doorbell import ring_on_commit
from provisioning.lease import Lease
from provisioning.models import Tenancy
from provisioning.plan import Key


@dataclass(frozen=True)
class Seen:
    """One line of the checklist: `state` is `true`, `failed` or `waiting`; `since` an ISO time."""

    kind: str
    name: str
    namespace: str
    state: str
    since: str
    message: str = ""

    @classmethod
    def true(cls, key: Key, *, now: datetime) -> "Seen":
        """An object that stands as wanted."""
        return cls(key.kind, key.name, key.namespace, "true", now.isoformat())

    @classmethod
    def failed(cls, key: Key, message: str, *, now: datetime) -> "Seen":
        """The object at which the pass ended."""
        return cls(key.kind, key.name, key.namespace, "failed", now.isoformat(), message)

    @classmethod
    def waiting(cls, key: Key, *, now: datetime) -> "Seen":
        """An object that the pass did not come to."""
        return cls(key.kind, key.name, key.namespace, "waiting", now.isoformat())


def write_status(
    tenancy: Tenancy,
    lease: Lease,
    *,
    seen: Sequence[Seen],
    error: ConnectorError | None,
    writes: int,
    now: datetime,
    next_look_at: datetime,
    used: Mapping[str, int] | None = None,
) -> bool:
    """End a pass: record the generation that was read, release the lease, and tell the audit log of a change.

    `used` is what the queue said of its use in this pass, None where it was not read or says nothing.

    Returns False, and changes nothing, when the lease is no longer the newest.
    """
    condition = _ready(tenancy, error, now)
    fields = _outcome(tenancy, is_true=error is None, used=used, now=now) | {
        "objects_seen": _since_kept(tenancy.objects_seen, seen),
        "conditions": [condition],
        "next_look_at": next_look_at,
        "lease_until": None,
    }
    with transaction.atomic():
        # By its own key: the usual order looks at team and cluster, and would lock their rows too.
        rows = Tenancy.objects.select_for_update(no_key=True).filter(pk=tenancy.pk, lease_no=lease.number)
        newest = rows.order_by().first()
        if newest is None:
            return False
        if newest.generation != tenancy.generation:
            fields["next_look_at"] = now
            ring_on_commit(tenancy.pk)
        lease.write(**fields)
        _tell(tenancy, condition, error, writes)
    return True


def _outcome(
    tenancy: Tenancy, *, is_true: bool, used: Mapping[str, int] | None, now: datetime
) -> dict[str, Any]:  # fmt: skip
    """What a pass found out, as fields of the tenancy."""
    fields: dict[str, Any] = {"is_true": is_true, "last_looked_at": now}
    if used is not None:
        fields |= {"used": dict(used), "used_at": now}
    if is_true:
        fields |= {"observed_generation": tenancy.generation, "attempts": 0}
        if not tenancy.is_settled:
            fields["true_since"] = now
    return fields


def _tell(tenancy: Tenancy, condition: dict[str, str], error: ConnectorError | None, writes: int) -> None:
    """One event when something became true, was repaired or failed for a new reason; none for an idle look."""
    details: dict[str, Any]
    if error is None and not tenancy.is_settled:
        kind, details = Kind.TENANCY_CONVERGED, {"generation": tenancy.generation, "writes": writes}
    elif error is None and writes:
        kind, details = Kind.DRIFT_REPAIRED, {"generation": tenancy.generation, "writes": writes}
    elif error is not None and tenancy.ready["message"] != condition["message"]:
        kind, details = Kind.TENANCY_FAILED, {"reason": condition["reason"], "message": error.message}
    else:
        return
    record(kind, actor=PORTAL, subject=("tenancy", tenancy.pk), team_id=tenancy.team_id, **details)


def _ready(tenancy: Tenancy, error: ConnectorError | None, now: datetime) -> dict[str, str]:
    if error is None:
        status, reason, message = "True", "AllObjectsTrue", "Every object stands as wanted."
    elif isinstance(error, PermanentError):
        status, reason, message = "False", "Refused", error.message
    else:
        status, reason, message = "False", "WillTryAgain", error.message
    before = tenancy.ready
    kept = before["status"] == status and before["reason"] == reason
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "since": before["since"] if kept else now.isoformat(),
    }


def _since_kept(before: Sequence[dict[str, str]], seen: Sequence[Seen]) -> list[dict[str, str]]:
    """The lines with the time since when each has been in its state."""
    since = {(o["kind"], o["name"], o["state"]): o["since"] for o in before}
    return [asdict(s) | {"since": since.get((s.kind, s.name, s.state), s.since)} for s in seen]
