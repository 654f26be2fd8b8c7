"""A request that waits, judged by the policy in force while everything that granting it takes is locked."""

from datetime import datetime

from approvals.judging.asked import wanted_of
from approvals.models import Request
from approvals.renewals import renewing
from approvals.requests.actions import Judged, check, judge, locked
from approvals.states import State
from audit import clock
from web.refusals import Refused


def judged_again(request: Request, *, now: datetime) -> Judged | None:
    """What the policy says to a locked request by now; None where nobody may grant it as it is.

    The moment at which all locks are held is its `standing.now`. Locks are taken in the order of
    approvals.requests.actions: an ask that is sent meanwhile waits for the flavor, or is waited for, and either sees
    the other.
    """
    is_over = request.state != State.WAITING or request.until_now <= now
    if is_over or not request.requester.is_active:
        return None
    asked = wanted_of(request, request.count_now, request.until_now)
    try:
        check(asked, by=request.requester, now=now)
        wanted = locked(asked, person=request.requester, now=now)
        now = clock.after_waiting(now)
        renewing.check(wanted, now=now, own=request.pk)
        renewing.check_held(wanted, now=now)
        return judge(wanted, person=request.requester, now=now, own=request.hold_id)
    except Refused:
        return None
