"""What changes about requests: asked, previewed, withdrawn, answered.

Locks are taken in one order: request, budgets, flavor, tenancy, audit chain.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction

from accounts.models import User
from accounts.refusals import BadInput, Conflict, NoRight
from accounts.roles import Permission
from allocations import actions as allocations
from allocations import budgets, money
from approvals.models import Decision, Evaluation, PolicyVersion, Request, Step
from approvals.policy import Ask, Outcome, Standing, Thresholds, evaluate, nearest_automatic
from approvals.policy import Evaluation as Answer
from approvals.standing import answer_of, gather, inputs_of, policy_in_force
from approvals.states import State
from audit.actors import POLICY, PORTAL, Actor
from audit.events import Kind
from audit.log import record
from fleet.models import Flavor
from provisioning.models import Tenancy

LEAST_REASON = 10
MOST_GPUS = 9_999
FURTHEST = timedelta(days=400)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a form or an API call asks for; `tenancy` is one that the person may see."""

    tenancy: Tenancy
    flavor: Flavor
    gpus: int
    until: datetime
    purpose: str
    reason: str = ""

    def ask(self) -> Ask:
        """As the policy sees it."""
        return Ask(
            gpus=self.gpus, until=self.until, environment=self.tenancy.environment, flavor=self.flavor.name
        )


@dataclass(frozen=True, kw_only=True)
class Judged:
    """An ask with the policy's answer and what it looked at."""

    ask: Ask
    standing: Standing
    answer: Answer
    policy: PolicyVersion
    thresholds: Thresholds

    @property
    def nearest(self) -> Ask | None:
        """The nearest ask that would be automatic."""
        return nearest_automatic(self.ask, self.standing, self.thresholds)


def judge(wanted: Wanted, *, now: datetime, own: str = "") -> Judged:
    """What the policy says to an ask now; writes nothing. The preview and the stored verdict both come from here.

    `own` is the reference of the request being judged again. Raises BadInput for an ask that makes no sense whatever
    the policy says.
    """
    check_sense(gpus=wanted.gpus, until=wanted.until, now=now)
    policy, thresholds = policy_in_force(now)
    standing = gather(
        tenancy=wanted.tenancy,
        flavor=wanted.flavor,
        until=wanted.until,
        thresholds=thresholds,
        now=now,
        own=own,
    )
    ask = wanted.ask()
    return Judged(
        ask=ask,
        standing=standing,
        answer=evaluate(ask, standing, thresholds),
        policy=policy,
        thresholds=thresholds,
    )


def check(wanted: Wanted, *, by: User, now: datetime) -> None:
    """Refuse what no policy could make sense of; raises NoRight, BadInput or Conflict."""
    if wanted.tenancy.team_id not in by.team_ids and not by.may(Permission.ONBOARD_ANY_GROUP):
        raise NoRight(
            "Members of the team and platform leads ask for its GPUs.", code="not_of_the_team", field="team"
        )
    if wanted.flavor.cluster_id != wanted.tenancy.cluster_id:
        raise BadInput(
            "The team is not on the cluster that has this kind of GPU.", code="not_there", field="flavor"
        )
    if not wanted.flavor.is_offered or not wanted.flavor.cluster.enabled:
        raise Conflict(
            "This kind of GPU is not offered now. Choose another.", code="not_offered", field="flavor"
        )
    check_sense(gpus=wanted.gpus, until=wanted.until, now=now)


def check_sense(*, gpus: int, until: datetime, now: datetime) -> None:
    """Refuse numbers that no policy should have to look at; raises BadInput."""
    if not 1 <= gpus <= MOST_GPUS:
        raise BadInput(
            f"Write a whole number of GPUs from 1 to {MOST_GPUS:,}.", code="out_of_range", field="gpus"
        )
    if until <= now:
        raise BadInput("The end must lie in the future.", code="in_the_past", field="until")
    if until - now > FURTHEST:
        raise BadInput(
            f"The end lies too far ahead: at most {FURTHEST.days} days.", code="too_far_ahead", field="until"
        )


def check_answer(answer_: Answer, *, reason: str) -> None:
    """Refuse what nobody could approve as it stands, and what people decide without a reason; raises BadInput."""
    blocking = next((rule for rule in answer_.rules if rule.blocks), None)
    if blocking is not None:
        field = "until" if blocking.code == "days" else "gpus"
        raise BadInput(f"{blocking.text}: {blocking.limit}.", code=f"impossible_{blocking.code}", field=field)
    if answer_.outcome is Outcome.PEOPLE and len(reason.strip()) < LEAST_REASON:
        raise BadInput(
            "A person decides this. Say in a sentence what it is for.", code="reason_needed", field="reason"
        )


@transaction.atomic
def submit(wanted: Wanted, *, by: User, now: datetime) -> Request:
    """Ask for GPUs: request, evaluation, verdict or open step, money set aside and audit event in one transaction.

    Raises Refused, with nothing saved, for what nobody could approve as it stands.
    """
    check(wanted, by=by, now=now)
    wanted = _locked(wanted, now=now)
    judged = judge(wanted, now=now)
    check_answer(judged.answer, reason=wanted.reason)
    request = Request.objects.create(
        team=wanted.tenancy.team,
        tenancy=wanted.tenancy,
        requester=by,
        flavor=wanted.flavor,
        gpus=wanted.gpus,
        until=wanted.until,
        purpose=wanted.purpose,
        reason=wanted.reason.strip(),
        usd=judged.answer.usd,
        created_at=now,
        updated_at=now,
    )
    save_evaluation(request, judged, now=now)
    if judged.answer.outcome is Outcome.AUTOMATIC:
        _approve_by_policy(request, judged, now=now)
    else:
        _open_route(request, judged, now=now)
    _tell(Kind.REQUEST_SUBMITTED, request, by, answer=judged.answer.outcome.value, usd=str(judged.answer.usd))
    return request


@transaction.atomic
def withdraw(request_id: int, *, by: User, now: datetime) -> Request:
    """Take a request back while it waits; raises NoRight for others than its requester, Conflict once decided."""
    request = (
        Request.objects.select_for_update(of=("self",), no_key=True)
        .select_related("team", "requester")
        .get(pk=request_id)
    )
    if request.requester_id != by.pk:
        raise NoRight("Who asked can withdraw.", code="not_the_requester")
    close(request, State.WITHDRAWN, now=now)
    _tell(Kind.REQUEST_WITHDRAWN, request, by)
    return request


@transaction.atomic
def lapse(request_id: int, *, now: datetime) -> bool:
    """End a request that nobody decided before its end, and let its money go; False when it is not such a one."""
    locked = Request.objects.select_for_update(of=("self",), no_key=True)
    request = locked.select_related("team", "requester", "flavor").get(pk=request_id)
    if request.state != State.WAITING or request.until > now:
        return False
    close(request, State.LAPSED, now=now)
    record(Kind.REQUEST_LAPSED, actor=PORTAL, subject=("request", request.pk), team_id=request.team_id,
           gpus=request.gpus, flavor=request.flavor.name)  # fmt: skip
    return True


@transaction.atomic
def answer(request_id: int, *, by: User, text: str, now: datetime) -> Request:
    """Answer an approver's question, which hands the turn back; raises NoRight, Conflict or BadInput."""
    request = (
        Request.objects.select_for_update(of=("self",), no_key=True)
        .select_related("team", "requester")
        .get(pk=request_id)
    )
    if request.requester_id != by.pk:
        raise NoRight("Who asked can answer.", code="not_the_requester")
    if request.state != State.WAITING or request.turn != Request.Turn.REQUESTER:
        raise Conflict("There is no open question.", code="nothing_asked")
    if not text.strip():
        raise BadInput("Write an answer.", code="required", field="reason")
    Decision.objects.create(
        request=request, requester_id=request.requester_id, by=by, content_version=request.content_version,
        verdict=Decision.Verdict.ANSWER, reason=text.strip(), at=now,
    )  # fmt: skip
    move(request, now=now, turn=Request.Turn.APPROVER)
    _tell(Kind.REQUEST_ANSWERED, request, by)
    return request


def close(request: Request, state: State, *, now: datetime) -> None:
    """End a locked, waiting request without granting it, and let its money go; raises Conflict once decided."""
    if request.state != State.WAITING:
        raise Conflict(
            f"The request is already {State(request.state).words.lower()}.", code="already_decided"
        )
    move(request, now=now, state=state, decided_at=now)
    budgets.settle(reference=request.reference, parts={}, now=now, why=state.words.lower())


def move(request: Request, *, now: datetime, **fields: object) -> None:
    """Save changed fields of a locked request and count its version up."""
    for name, value in {**fields, "version": request.version + 1, "updated_at": now}.items():
        setattr(request, name, value)
    request.save(update_fields=[*fields, "version", "updated_at"])


def save_evaluation(request: Request, judged: Judged, *, now: datetime) -> Evaluation:
    """Store an answer with its inputs for ever."""
    inputs, digest = inputs_of(judged.ask, judged.standing, judged.policy)
    return Evaluation.objects.create(
        request=request,
        policy=judged.policy,
        content_version=request.content_version,
        at=now,
        outcome=judged.answer.outcome,
        answer=answer_of(judged.answer),
        inputs=inputs,
        input_hash=digest,
    )


def grant(request: Request, judged: Judged, *, gpus: int, actor: Actor, now: datetime) -> None:
    """Set the money aside and issue the allocation of a locked request, as its last step; raises Conflict."""
    parts = money.by_month(gpus=gpus, price=judged.standing.price_per_gpu_hour, start=now, end=request.until)
    budgets.settle(reference=request.reference, parts={}, now=now, why="judged again")
    budgets.hold(request.team, reference=request.reference, parts=parts, now=now)
    move(request, now=now, state=State.APPROVED, approved_gpus=gpus, decided_at=now)
    allocations.issue(
        tenancy=request.tenancy, flavor=request.flavor, gpus=gpus, reference=request.reference,
        until=request.until, actor=actor, now=now,
    )  # fmt: skip


def lock_money_and_gpus(*, tenancy: Tenancy, flavor: Flavor, until: datetime, now: datetime) -> Flavor:
    """Lock the team's budgets, then the flavor; returns the flavor as it is under the lock."""
    budgets.lock_all(tenancy.team, sorted(money.by_month(gpus=1, price=Decimal(1), start=now, end=until)))
    return (
        Flavor.objects.select_for_update(of=("self",), no_key=True)
        .select_related("cluster")
        .get(pk=flavor.pk)
    )


def _locked(wanted: Wanted, *, now: datetime) -> Wanted:
    flavor = lock_money_and_gpus(tenancy=wanted.tenancy, flavor=wanted.flavor, until=wanted.until, now=now)
    return Wanted(
        tenancy=wanted.tenancy, flavor=flavor, gpus=wanted.gpus, until=wanted.until, purpose=wanted.purpose,
        reason=wanted.reason,
    )  # fmt: skip


def _approve_by_policy(request: Request, judged: Judged, *, now: datetime) -> None:
    Decision.objects.create(
        request=request, requester_id=request.requester_id, content_version=request.content_version,
        verdict=Decision.Verdict.APPROVE, gpus=request.gpus, usd=judged.answer.usd, at=now,
        reason=f"{judged.policy}: every rule holds.",
    )  # fmt: skip
    grant(request, judged, gpus=request.gpus, actor=POLICY, now=now)


def _open_route(request: Request, judged: Judged, *, now: datetime) -> None:
    """Open the first step, and set the money aside while people decide if it is there."""
    for position, seat in enumerate(judged.answer.route):
        Step.objects.create(
            request=request, version=request.content_version, position=position, seat=seat,
            opened_at=None if position else now,
        )  # fmt: skip
    if all(rule.holds for rule in judged.answer.rules if rule.code == "budget"):
        parts = money.by_month(
            gpus=request.gpus, price=judged.standing.price_per_gpu_hour, start=now, end=request.until
        )
        budgets.hold(request.team, reference=request.reference, parts=parts, now=now)


def _tell(kind: Kind, request: Request, by: User, **details: Any) -> None:
    record(kind, actor=by.as_actor(), subject=("request", request.pk), team_id=request.team_id,
           gpus=request.gpus, flavor=request.flavor.name, **details)  # fmt: skip
