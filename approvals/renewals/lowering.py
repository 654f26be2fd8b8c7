"""What would keep longer more than is held since a part was given back: it goes on as a renewal of what is held."""

from datetime import datetime

from django.db import transaction

from allocations.budgets import balances as budgets
from approvals import notices
from approvals.events import record_event
from approvals.judging.again import judged_again
from approvals.models import Request
from approvals.renewals import renewing
from approvals.requests.actions import move, save_evaluation, set_less_aside
from approvals.states import State
from audit.actors import PORTAL
from audit.events import Kind
from ui.amounts import gpus

WHY = "given back in part"


@transaction.atomic
def lower(request_id: int, *, now: datetime) -> bool:
    """Have a waiting renewal ask for no more than is held, with the money set aside for that.

    Its requester is told, and who was asked to decide it. Its votes stay: who approved more approved these, too. False
    where it asks for no more, or was decided in between.
    """
    rows = Request.objects.locked().for_judging().select_related("hold")
    request = rows.get(pk=request_id)
    if request.renews is None or request.state != State.WAITING:
        return False
    held, before = renewing.held_under(request.renews, now=now), request.gpus_now
    if held is None or held.gpus >= before:
        return False
    count = max(1, held.gpus // (request.gpus // request.count))
    if count >= request.count_now:
        return False
    move(request, now=now, cut_to=count)
    judged = judged_again(request, now=now)
    if judged is None:
        # Nobody may grant it as it is; whatever becomes of it, it costs less than was set aside.
        budgets.settle(request.hold, parts={}, now=now, why=WHY)
    else:
        save_evaluation(request, judged, now=now)
        set_less_aside(request, judged, now=now, why=WHY)
    lead = (
        f"{gpus(before)} were to be kept longer, and {gpus(held.gpus)} {'is' if held.gpus == 1 else 'are'} held since "
        "others were given back: it asks for no more than that."
    )
    to = [request.requester, *notices.asked_to_decide(request)]
    notices.changed(request, lead, to=to, now=now)
    words = [f"GPUs: {before} → {request.gpus_now}"]
    record_event(Kind.REQUEST_EDITED, request, actor=PORTAL, changed=words)
    return True
