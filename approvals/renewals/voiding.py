"""What would keep longer what was given back since: it is withdrawn by itself, and who asked is told."""

from datetime import datetime

from django.db import transaction

from approvals import notices
from approvals.fulfilment.leaving import drop
from approvals.models import Request
from audit.actors import PORTAL

WHY = "what it would keep longer was given back"


@transaction.atomic
def withdraw_void(request_id: int, *, now: datetime) -> bool:
    """Withdraw a renewal of what was given back, and tell its requester; False when it was decided in between."""
    if not drop(request_id, actor=PORTAL, now=now, why=WHY):
        return False
    request = Request.objects.select_related("team", "requester", "flavor__cluster")
    notices.withdrawn_for(request.get(pk=request_id), now=now)
    return True
