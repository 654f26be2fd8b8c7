"""Conditions as Kubernetes has them: type, status, reason, message, and since when the status is what it is. Pure."""

from collections.abc import Sequence
from datetime import datetime

Condition = dict[str, str]
# What sums up the others; it stands first wherever there is one, so that a query finds it there.
READY = "Ready"


def find(conditions: Sequence[Condition], type_: str) -> Condition | None:
    """The condition of a type; None where there is none."""
    return next((each for each in conditions if each["type"] == type_), None)


def upsert(
    conditions: Sequence[Condition],
    type_: str,
    *,
    status: str,
    reason: str,
    message: str,
    now: datetime,
) -> list[Condition]:
    """The conditions with this one; `since` stays what it was while the status does, whatever else is new."""
    before = find(conditions, type_)
    since = (
        before["since"] if before and before["status"] == status else now.isoformat()
    )
    new = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "since": since,
    }
    others = without(conditions, type_)
    return [new, *others] if type_ == READY else [*others, new]


def without(conditions: Sequence[Condition], type_: str) -> list[Condition]:
    """The conditions but for those of a type."""
    return [each for each in conditions if each["type"] != type_]
