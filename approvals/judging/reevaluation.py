"""What waits is judged again: when another policy comes into force, and when GPUs, money or a window come free.

A sweep, oldest first: what the policy approves by now is granted, and nothing else changes. Votes that were cast stay.
"""

from datetime import datetime
from functools import partial

from django.db import transaction

from approvals import notices
from approvals.judging.again import judged_again
from approvals.judging.attempts import succeeds
from approvals.judging.inputs import policy_in_force
from approvals.judging.waiting_line import MAX_READ, approves, hopeful, waiting
from approvals.models import Decision, Request, Step
from approvals.requests.actions import (
    Judged,
    grant,
    record_policy_approved,
    save_evaluation,
)
from audit.actors import POLICY
from audit.log import together
from policy.document import Policy
from policy.evaluation import Outcome
from reconciling.turns import in_turn

# How many requests are judged by one sweep; with more, the sweeps take turns.
MAX_JUDGED = 50
SWEEP_SECONDS = 5


def due(policy: Policy, *, now: datetime) -> list[Request]:
    """The requests that the policy may approve by now, oldest first, without those that it never would."""
    rows = waiting(now)[:MAX_READ]
    found = list(hopeful(rows, policy, now=now))
    # Some the policy keeps refusing, for their window or their use.
    return in_turn(found, most=MAX_JUDGED, seconds=SWEEP_SECONDS, now=now)


def sweep(now: datetime) -> list[int]:
    """Grant what waits and the policy approves by now, each in a transaction of its own; the requests granted.

    One that cannot be granted keeps no other from being granted.
    """
    _, policy = policy_in_force(now)
    return [
        row.pk
        for row in due(policy, now=now)
        if succeeds(partial(_is_granted, row, policy, now=now), row.pk, now=now)
    ]


def _is_granted(row: Request, policy: Policy, *, now: datetime) -> bool:
    # Most are refused again: whoever asks meanwhile need not wait until that is known.
    return approves(
        row, row.count_now, row.until_now, policy, now=now
    ) and grant_if_automatic(row.pk, now=now)


@transaction.atomic
def grant_if_automatic(request_id: int, *, now: datetime) -> bool:
    """Grant one request that waits if every rule holds by now; False, and nothing happens, when it does not.

    Raises Refused where every rule holds and it cannot be granted for another reason.
    """
    request = (
        Request.objects.locked().for_judging().select_related("hold").get(pk=request_id)
    )
    if request.turn != Request.Turn.APPROVER:
        return False
    judged = judged_again(request, now=now)
    if judged is None or judged.answer.outcome is not Outcome.AUTOMATIC:
        return False
    _grant(request, judged, why=_why(request, judged))
    return True


def _why(request: Request, judged: Judged) -> str:
    last = request.evaluations.filter(content_version=request.content_version).latest(
        "id"
    )
    if last.policy_id != judged.version.pk:
        return f"{judged.version} is in force now, and every rule holds."
    return f"{judged.version}: every rule holds by now."


def _grant(request: Request, judged: Judged, *, why: str) -> None:
    count, now = judged.wanted.count, judged.standing.now
    save_evaluation(request, judged, now=now)
    Decision.objects.create(
        request=request,
        requester_id=request.requester_id,
        content_version=request.content_version,
        verdict=Decision.Verdict.APPROVE,
        count=count,
        until=judged.wanted.until,
        usd=judged.answer.usd,
        at=now,
        reason=why,
    )
    # Steps on which nobody has voted are not needed any more; a vote that was cast stays with its step.
    undone = Step.objects.undecided().filter(
        request=request, version=request.content_version, decisions=None
    )
    undone.delete()
    with together():
        record_policy_approved(request, judged, count=count, reason=why)
        grant(request, judged, count=count, actor=POLICY, now=now)
        notices.freed(request, why, now=now)
