"""Deciding: approve, approve fewer or for a shorter time, reject, ask.

The request is locked and judged again at the moment of the vote.
"""

from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from django.db import IntegrityError, transaction

from accounts.directory import freshness
from accounts.models import Delegation, User
from approvals import notices
from approvals.decisions import escalation
from approvals.decisions.deciders import has_voted, seat_for
from approvals.decisions.routing import Key, go_on, key_of, open_next, open_step, pause
from approvals.decisions.shortening import approved_end
from approvals.events import record_event
from approvals.judging.asked import wanted_of
from approvals.judging.inputs import policy_in_force, policy_of
from approvals.models import Decision, Request, Step
from approvals.renewals.renewing import check_held, check_not_given_back
from approvals.requests.actions import (
    Judged,
    check,
    close,
    grant,
    judge,
    locked,
    move,
    save_evaluation,
    set_less_aside,
)
from approvals.requests.wanted import Wanted
from approvals.states import State
from audit import clock
from audit.events import Kind
from audit.log import together
from policy.evaluation import Ask, Rule, evaluate
from web.refusals import BadInput, Conflict, NoRight, Refused, Stale

# What no vote can grant: more GPUs than are free, or money that is not there.
NEEDED_NOW = frozenset({"exists", "free", "budget", "budget_hours"})


def stops(rule: Rule) -> bool:
    """Whether a rule is one that no vote gets past: what is not there, or what the policy lets nobody approve."""
    return not rule.holds and (rule.code in NEEDED_NOW or rule.blocks)


@transaction.atomic
def approve(
    request_id: int,
    *,
    by: User,
    expected_version: int,
    count: int | None = None,
    until: datetime | None = None,
    reason: str = "",
    now: datetime,
) -> Request:
    """Approve the open step, for fewer units if `count` says so, and until an earlier end if `until` does.

    Its quorum closes it, and the last step grants.

    Raises NoRight, Stale, BadInput, or Conflict when money or GPUs are gone by now.
    """
    request, step, seat_of = _locked(
        request_id, by=by, expected_version=expected_version, now=now
    )
    wanted = _approved(request, count)
    ends = approved_end(request, until, now=now)
    judged = _judge_again(request, count=wanted, until=ends, now=now)
    now = judged.standing.now
    _vote(
        request,
        step,
        by=by,
        seat_of=seat_of,
        verdict=Decision.Verdict.APPROVE,
        count=wanted,
        until=ends,
        usd=judged.answer.usd,
        reason=reason,
        now=now,
    )
    passed = []
    record_approval = partial(
        record_event,
        actor=by.as_actor(),
        count=wanted,
        asked=request.count,
        until=ends.isoformat(),
        asked_until=request.until.isoformat(),
        seat=step.seat,
        policy=judged.version.number,
        usd=str(judged.answer.usd),
        reason=reason,
        stands_in_for=seat_of.name if seat_of != by else "",
    )
    if not _has_quorum(step):
        _wait_on(request, judged, now=now)
    else:
        go_on(request, now=now)
        Step.objects.filter(pk=step.pk).update(done_at=now)
        needed = still_needed(request, judged.ask, judged)
        following = open_next(request, step, needed, now=now)
        if following is None:
            with together():
                # What was decided stands before what came of it.
                what = request.name(wanted)
                record_approval(Kind.REQUEST_APPROVED, request, what=what)
                grant(request, judged, count=wanted, actor=by.as_actor(), now=now)
                notices.decided(
                    request,
                    "approved",
                    by=by,
                    reason=reason,
                    now=now,
                    cost=judged.answer.usd,
                    seat_of=seat_of,
                )
            return request
        turn = Request.Turn.APPROVER
        _wait_on(request, judged, now=now, turn=turn, answer_by=None)
        notices.waits_no_more(request)
        passed = escalation.begin(request, following, now=now)
    record_approval(Kind.REQUEST_STEP_DONE, request)
    escalation.write_down(request, passed)
    return request


@transaction.atomic
def reject(
    request_id: int,
    *,
    by: User,
    expected_version: int,
    reason: str,
    because: str = "other",
    now: datetime,
) -> Request:
    """Reject a request, which needs a reason; its money is let go.

    `because` is one of Decision.Because; what is rejected for capacity is offered again when there is some.
    """
    request, step, seat_of = _locked(
        request_id, by=by, expected_version=expected_version, now=now
    )
    if not reason.strip():
        raise BadInput(
            "Say why, so that they know what would be possible.",
            code="reason_needed",
            field="reason",
        )
    if because not in Decision.Because.values:
        raise BadInput(
            "Choose one of the reasons.", code="unknown_reason", field="reason_code"
        )
    _vote(
        request,
        step,
        by=by,
        seat_of=seat_of,
        verdict=Decision.Verdict.REJECT,
        reason=reason,
        because=because,
        now=now,
    )
    Step.objects.filter(pk=step.pk).update(done_at=now)
    close(request, State.REJECTED, now=now)
    notices.decided(request, "rejected", by=by, reason=reason, now=now, seat_of=seat_of)
    record_event(
        Kind.REQUEST_REJECTED,
        request,
        actor=by.as_actor(),
        reason=reason,
        because=because,
        seat=step.seat,
    )
    return request


@transaction.atomic
def ask_back(
    request_id: int, *, by: User, expected_version: int, question: str, now: datetime
) -> Request:
    """Ask the requester something, which hands them the turn; the request keeps waiting and its clock stands still.

    Unanswered it lapses after as long as one that nobody decides.
    """
    request, step, seat_of = _locked(
        request_id, by=by, expected_version=expected_version, now=now
    )
    if not question.strip():
        raise BadInput("Write the question.", code="required", field="reason")
    Decision.objects.create(
        request=request,
        requester_id=request.requester_id,
        by=by,
        seat_of=seat_of,
        step=step,
        content_version=request.content_version,
        verdict=Decision.Verdict.ASK,
        reason=question.strip(),
        at=now,
    )
    pause(step, now=now)
    answer_by = min(
        request.until_now, now + timedelta(days=policy_in_force(now)[1].lapse_days)
    )
    move(request, now=now, turn=Request.Turn.REQUESTER, answer_by=answer_by)
    notices.asked_back(request, question.strip(), by=by, now=now)
    record_event(
        Kind.REQUEST_ASKED_BACK, request, actor=by.as_actor(), question=question
    )
    return request


def may_decide(request: Request, user: User, *, now: datetime) -> str:
    """Why this person may not decide the request now; empty when they may."""
    if request.state != State.WAITING:
        return f"It is already {State(request.state).words.lower()}."
    if request.requester_id == user.pk:
        return "Nobody decides their own request."
    step = open_step(request)
    seat_of = seat_for(user, step, request, now=now) if step else None
    if seat_of is None:
        return f"This step is for {step.words if step else 'nobody'}."
    if has_voted(request, user, seat_of):
        return "You have decided a step of it already; somebody else takes this one."
    return ""


def _locked(
    request_id: int, *, by: User, expected_version: int, now: datetime
) -> tuple[Request, Step, User]:
    """The request, its open step and whose seat the person decides in; their rights are those of this moment."""
    request = (
        Request.objects.locked().for_judging().select_related("hold").get(pk=request_id)
    )
    if request.requester_id == by.pk:
        raise NoRight("Nobody decides their own request.", code="self_approval")
    step = open_step(request)
    if request.state != State.WAITING or step is None:
        raise Conflict(
            f"The request is already {State(request.state).words.lower()}.",
            code="already_decided",
        )
    # Whose seat it may be, too; in one order, so that two deciders for each other never wait for each other.
    freshness.hold(
        [
            by.pk,
            *Delegation.objects.in_force(now)
            .filter(to=by)
            .values_list("giver", flat=True),
        ]
    )
    freshness.check(by, now=now)
    person = User.objects.get(pk=by.pk)
    seat_of = seat_for(person, step, request, now=now)
    if seat_of is None:
        raise NoRight(f"This step is for {step.words}.", code="not_an_approver")
    if request.version != expected_version:
        raise Stale(
            "The request has changed since you looked at it. Look again before you decide.",
            code="stale",
        )
    return request, step, seat_of


def _approved(request: Request, count: int | None) -> int:
    """How many units a vote is for: all that are asked for now, or fewer; raises BadInput."""
    asked = request.count_now
    wanted = asked if count is None else count
    if not 1 <= wanted <= asked:
        raise BadInput(
            f"Approve between 1 and {asked}.",
            code="out_of_range",
            field="count",
        )
    return wanted


def hindrance(asked: Wanted, *, by: User, now: datetime) -> str:
    """Why no vote grants this person's ask now, though no rule stops it, as a sentence; empty when nothing does."""
    try:
        check(asked, by=by, now=now)
    except Refused as refusal:
        return _why_refused(refusal, asked, by)
    return ""


def _why_refused(refusal: Refused, asked: Wanted, by: User) -> str:
    """Why an ask is refused, for who decides it instead of who asked."""
    if refusal.code == "not_of_the_team" and not by.is_active:
        return f"{by.name} has no access to the portal any more."
    if refusal.code == "not_of_the_team":
        return f"{by.name} is no longer of {asked.team.name}."
    return refusal.message.removesuffix(" Choose another.")


def _wait_on(
    request: Request, judged: Judged, *, now: datetime, **fields: object
) -> None:
    """Let a locked request wait on for what was approved of it, with the money for that and no more."""
    count, until = judged.wanted.count, judged.wanted.until
    is_less = (count, until) != (request.count_now, request.until_now)
    left: dict[str, object] = {
        "cut_to": count if count < request.count else None,
        "cut_until": until if until < request.until else None,
        # Nothing waits past its own end, for a decision or for an answer.
        "lapses_at": min(request.lapses_at, until),
        "answer_by": min(request.answer_by, until) if request.answer_by else None,
    }
    move(request, now=now, **(left | fields))
    if is_less:
        set_less_aside(request, judged, now=now)


def _judge_again(
    request: Request, *, count: int, until: datetime, now: datetime
) -> Judged:
    """Judge so much of it at the moment at which all locks are held, which `standing.now` says; raises Conflict."""
    if request.until_now <= now:
        raise Conflict(
            "The end that was asked for has passed. Reject it or ask for a later one.",
            code="too_late",
        )
    asked = wanted_of(request, count, until)
    try:
        check(asked, by=request.requester, now=now)
        wanted = locked(asked, owner=request.requester, now=now)
        # Who gave it back meanwhile was waited for.
        check_not_given_back(wanted)
        check_held(wanted, now=now)
    except Refused as refusal:
        raise Conflict(
            f"It cannot be granted any more: {_why_refused(refusal, asked, request.requester)}",
            code=refusal.code,
        ) from refusal
    judged = judge(
        wanted,
        person=request.requester,
        now=clock.after_waiting(now),
        own=request.hold_id,
        in_line=False,
    )
    for rule in judged.answer.rules:
        if stops(rule):
            raise Conflict(
                f"Not possible now: {rule.text}, {rule.limit}.",
                code=f"not_enough_{rule.code}",
            )
    save_evaluation(request, judged, now=now)
    return judged


def still_needed(request: Request, ask: Ask, judged: Judged) -> set[Key] | None:
    """The steps of the route that an ask for less needs, too; None for all that was asked for.

    It is the route that was told, of the policy that gave it: a manager that changed on the way takes nobody's say
    away, and a policy that came into force routes the request anew by itself (approvals.decisions.rerouting).
    """
    if (ask.count, ask.until) == (request.count, request.until):
        return None
    # Mostly it is the policy in force, which is at hand.
    is_other = request.routed_by_id not in (None, judged.version.pk)
    version = request.routed_by if is_other else None
    return {
        key_of(plan)
        for plan in evaluate(
            ask, judged.standing, policy_of(version or judged.version)
        ).route
    }


def _has_quorum(step: Step) -> bool:
    """Whether enough people have approved the step."""
    return (
        step.decisions.filter(verdict=Decision.Verdict.APPROVE).count() >= step.quorum
    )


def _vote(
    request: Request,
    step: Step,
    *,
    by: User,
    seat_of: User,
    verdict: str,
    now: datetime,
    reason: str,
    count: int | None = None,
    until: datetime | None = None,
    usd: Decimal = Decimal(0),
    because: str = "",
) -> None:
    # The request is locked, so nobody is faster.
    if has_voted(request, by, seat_of):
        raise Conflict(
            "You have decided a step of this request already.", code="voted_already"
        )
    try:
        with transaction.atomic():
            Decision.objects.create(
                request=request,
                requester_id=request.requester_id,
                by=by,
                seat_of=seat_of,
                step=step,
                content_version=request.content_version,
                verdict=verdict,
                count=count,
                until=until,
                usd=usd,
                because=because,
                reason=reason.strip(),
                at=now,
            )
    except IntegrityError as error:
        raise Conflict(
            "You have decided a step of this request already.", code="voted_already"
        ) from error
