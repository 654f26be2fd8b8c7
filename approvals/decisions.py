"""Deciding: approve, approve less, reject, ask. The request is locked and judged again at the moment of the vote."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction

from accounts.models import User
from accounts.refusals import BadInput, Conflict, NoRight, Stale
from approvals.actions import Judged, Wanted, close, grant, judge, lock_money_and_gpus, move, save_evaluation
from approvals.models import RIGHT_OF, Decision, Request, Step
from approvals.policy import Seat
from approvals.states import State
from audit.events import Kind
from audit.log import record


@transaction.atomic
def approve(
    request_id: int,
    *,
    by: User,
    expected_version: int,
    gpus: int | None = None,
    reason: str = "",
    now: datetime,
) -> Request:
    """Approve the open step, for fewer GPUs if `gpus` says so; the last step grants.

    Raises NoRight, Stale, BadInput, or Conflict when money or GPUs are gone by now.
    """
    request, step = _locked(request_id, by=by, expected_version=expected_version)
    asked = asked_for(request)
    wanted = asked if gpus is None else gpus
    if not 1 <= wanted <= asked:
        raise BadInput(f"Approve between 1 and {asked} GPUs.", code="out_of_range", field="gpus")
    judged = _judge_again(request, gpus=wanted, now=now)
    _vote(request, step, by=by, verdict=Decision.Verdict.APPROVE, gpus=wanted, usd=judged.answer.usd,
          reason=reason, now=now)  # fmt: skip
    Step.objects.filter(pk=step.pk).update(done_at=now)
    following = _open_next(request, step, judged, now=now)
    if following is None:
        grant(request, judged, gpus=wanted, actor=by.as_actor(), now=now)
    else:
        move(request, now=now, turn=Request.Turn.APPROVER)
    kind = Kind.REQUEST_APPROVED if following is None else Kind.REQUEST_STEP_DONE
    _tell(kind, request, by, gpus=wanted, asked=request.gpus, seat=step.seat, reason=reason)
    return request


@transaction.atomic
def reject(request_id: int, *, by: User, expected_version: int, reason: str, now: datetime) -> Request:
    """Reject a request, which needs a reason; its money is let go."""
    request, step = _locked(request_id, by=by, expected_version=expected_version)
    if not reason.strip():
        raise BadInput(
            "Say why, so that they know what would be possible.", code="reason_needed", field="reason"
        )
    _vote(request, step, by=by, verdict=Decision.Verdict.REJECT, reason=reason, now=now)
    Step.objects.filter(pk=step.pk).update(done_at=now)
    close(request, State.REJECTED, now=now)
    _tell(Kind.REQUEST_REJECTED, request, by, reason=reason, seat=step.seat)
    return request


@transaction.atomic
def ask_back(request_id: int, *, by: User, expected_version: int, question: str, now: datetime) -> Request:
    """Ask the requester something, which hands them the turn; the request keeps waiting."""
    request, step = _locked(request_id, by=by, expected_version=expected_version)
    if not question.strip():
        raise BadInput("Write the question.", code="required", field="reason")
    Decision.objects.create(
        request=request, requester_id=request.requester_id, by=by, step=step,
        content_version=request.content_version, verdict=Decision.Verdict.ASK, reason=question.strip(), at=now,
    )  # fmt: skip
    move(request, now=now, turn=Request.Turn.REQUESTER)
    _tell(Kind.REQUEST_ASKED_BACK, request, by, question=question)
    return request


def may_decide(request: Request, user: User) -> str:
    """Why this person may not decide the request now; empty when they may."""
    if request.state != State.WAITING:
        return f"It is already {State(request.state).words.lower()}."
    if request.requester_id == user.pk:
        return "Nobody decides their own request."
    step = open_step(request)
    if step is None or not user.may(RIGHT_OF[Seat(step.seat)]):
        return f"This step is for {step.words if step else 'nobody'}."
    voted = any(
        decision.by_id == user.pk and decision.verdict in Decision.VOTES
        for decision in request.decisions.all()
        if decision.content_version == request.content_version
    )
    return "You have decided a step of it already; somebody else takes this one." if voted else ""


def open_step(request: Request) -> Step | None:
    """The step that waits for a decision."""
    # Chosen here and not by the database: pages have the steps at hand already.
    steps = [s for s in request.steps.all() if s.version == request.content_version and s.done_at is None]
    return min(steps, key=lambda step: step.position, default=None)


def _locked(request_id: int, *, by: User, expected_version: int) -> tuple[Request, Step]:
    request = (
        Request.objects.select_for_update(of=("self",), no_key=True)
        .select_related("team", "requester", "flavor__cluster", "tenancy__team", "tenancy__cluster")
        .get(pk=request_id)
    )
    if request.requester_id == by.pk:
        raise NoRight("Nobody decides their own request.", code="self_approval")
    step = open_step(request)
    if request.state != State.WAITING or step is None:
        raise Conflict(
            f"The request is already {State(request.state).words.lower()}.", code="already_decided"
        )
    if not by.may(RIGHT_OF[Seat(step.seat)]):
        raise NoRight(f"This step is for {step.words}.", code="not_an_approver")
    if request.version != expected_version:
        raise Stale(
            "The request has changed since you looked at it. Look again before you decide.", code="stale"
        )
    return request, step


def asked_for(request: Request) -> int:
    """How many GPUs are asked for now: what the steps before have left of it."""
    given = [
        decision.gpus
        for decision in request.decisions.all()
        if decision.content_version == request.content_version
        and decision.verdict == Decision.Verdict.APPROVE
    ]
    return given[-1] if given and given[-1] is not None else request.gpus


def _judge_again(request: Request, *, gpus: int, now: datetime) -> Judged:
    if request.until <= now:
        raise Conflict(
            "The end that was asked for has passed. Reject it or ask for a later one.", code="too_late"
        )
    flavor = lock_money_and_gpus(tenancy=request.tenancy, flavor=request.flavor, until=request.until, now=now)
    wanted = Wanted(
        tenancy=request.tenancy, flavor=flavor, gpus=gpus, until=request.until, purpose=request.purpose
    )
    judged = judge(wanted, now=now, own=request.reference)
    for rule in judged.answer.rules:
        if rule.code in ("exists", "free", "budget") and not rule.holds:
            raise Conflict(f"Not possible now: {rule.text}, {rule.limit}.", code=f"not_enough_{rule.code}")
    save_evaluation(request, judged, now=now)
    return judged


def _open_next(request: Request, step: Step, judged: Judged, *, now: datetime) -> Step | None:
    """Open the next step that the ask, as it now is, still needs; steps it no longer needs are dropped."""
    later = request.steps.filter(version=request.content_version, position__gt=step.position)
    later.exclude(seat__in=judged.answer.route).delete()
    following = later.order_by("position").first()
    if following is not None:
        Step.objects.filter(pk=following.pk).update(opened_at=now)
    return following


def _vote(
    request: Request, step: Step, *, by: User, verdict: str, now: datetime, reason: str, gpus: int | None = None,
    usd: Decimal = Decimal(0),
) -> None:  # fmt: skip
    try:
        with transaction.atomic():
            Decision.objects.create(
                request=request, requester_id=request.requester_id, by=by, step=step,
                content_version=request.content_version, verdict=verdict, gpus=gpus, usd=usd,
                reason=reason.strip(), at=now,
            )  # fmt: skip
    except IntegrityError as error:
        raise Conflict("You have decided a step of this request already.", code="voted_already") from error


def _tell(kind: Kind, request: Request, by: User, **details: Any) -> None:
    record(kind, actor=by.as_actor(), subject=("request", request.pk), team_id=request.team_id, **details)
