"""What is appended to the audit log about a request."""

from typing import Any

from approvals.models import Request
from audit.actors import Actor
from audit.events import Kind
from audit.log import record


def record_event(kind: Kind, request: Request, *, actor: Actor, **details: Any) -> None:
    """Append an event about a request; `what` is what was granted of it, or is asked for, unless told otherwise."""
    record(
        kind,
        actor=actor,
        subject=("request", request.pk),
        team_id=request.team_id,
        **{"what": request.given_name, **details},
    )
