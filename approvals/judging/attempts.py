"""What a sweep tries to do for one request: whatever stops it stops no other one, and it is not tried again at once."""

from collections.abc import Callable
from datetime import datetime

import structlog

from approvals.models import Request
from reconciling.sweeping import ENDS_THE_TASK
from web.refusals import Refused

logger = structlog.get_logger(__name__)

FAILED = "The portal failed at it. Its operators find why in the log."


def succeeds(attempt: Callable[[], bool], request_id: int, *, now: datetime) -> bool:
    """Whether an attempt at one request came to something; False, with nothing changed, when it could not be made.

    The attempt is a transaction of its own. What the policy approves cannot always be granted, such as one notebook
    more than a person may run: the request waits on and says why, and the sweeps leave it out for a while.
    """
    try:
        return attempt()
    except Refused as refusal:
        because = refusal.message
        logger.info("request not granted", request=request_id, reason=because)
    except ENDS_THE_TASK:
        raise
    except Exception:
        # A mistake of ours with one request must not keep all the others waiting.
        because = FAILED
        logger.exception("request not judged again", request=request_id)
    Request.objects.filter(pk=request_id).update(
        not_granted_at=now, not_granted_because=because
    )
    return False
