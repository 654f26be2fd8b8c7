"""Who decides what waits, when a policy comes into force that names other people.

A sweep, oldest first and once for each policy. A step that both routes have goes on as it is, with its votes and its
dates; one that only the new policy has begins when its turn comes; one that it does not have is no longer needed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import transaction

from accounts import people
from accounts.models import User
from approvals import notices
from approvals.decisions import deciders, escalation
from approvals.decisions.actions import stops
from approvals.decisions.route_words import upper
from approvals.decisions.routing import (
    MOMENTS,
    Key,
    go_on,
    key_of,
    keys_of,
    open_step,
    planned,
    start,
)
from approvals.events import record_event
from approvals.judging.again import judged_again
from approvals.judging.attempts import succeeds
from approvals.judging.inputs import policy_in_force, policy_of
from approvals.models import Decision, Request, Rerouting, Step
from approvals.requests.actions import (
    Judged,
    grant,
    move,
    record_policy_approved,
    save_evaluation,
)
from approvals.states import State
from audit.actors import POLICY
from audit.events import Kind
from audit.log import together
from policy.document import StepPlan
from policy.evaluation import Outcome, evaluate
from reconciling.turns import in_turn

# How many requests are locked and judged by one sweep; with more, the sweeps take turns.
MAX_REROUTED = 50
SWEEP_SECONDS = 5


@dataclass(frozen=True)
class Route:
    """The steps of a request under another policy: those that decide, in order, and those that need not any more.

    `reopened` were decided by as many as were needed then, and need more votes now.
    """

    steps: tuple[Step, ...]
    dropped: tuple[Step, ...]
    reopened: frozenset[int]

    @property
    def undecided(self) -> list[Step]:
        """The steps that wait, the one that is decided next first: one that is open already stays open."""
        rows = [step for step in self.steps if step.done_at is None]
        return sorted(rows, key=lambda step: step.opened_at is None)


def due(now: datetime) -> list[int]:
    """The requests that wait on the route of another policy than the one in force, oldest first.

    What could not be granted a moment ago is left out.
    """
    version, _ = policy_in_force(now)
    waiting = Request.objects.not_tried_lately(now).filter(
        state=State.WAITING, until__gt=now
    )
    rows = waiting.exclude(routed_by=version)
    found = list(rows.order_by("created_at", "pk").values_list("pk", flat=True))
    return in_turn(found, most=MAX_REROUTED, seconds=SWEEP_SECONDS, now=now)


def sweep(now: datetime) -> list[int]:
    """Route what waits by the policy in force, each in a transaction of its own; the requests that others decide.

    One that everybody has approved and that cannot be granted keeps no other from being routed.
    """
    return [
        request_id
        for request_id in due(now)
        if succeeds(partial(reroute, request_id, now=now), request_id, now=now)
    ]


@transaction.atomic
def reroute(request_id: int, *, now: datetime) -> bool:
    """Let the people decide whom the policy in force names; False, and nobody is told, when they are the same.

    What the policy approves is left to approvals.judging.reevaluation. What it lets nobody approve keeps its route,
    and its requester is told once. Votes stay: where every step of the new route has its own, the request is granted.
    Raises Refused where that is so and it cannot be granted.
    """
    request = (
        Request.objects.locked()
        .for_judging()
        .select_related("routed_by", "hold")
        .get(pk=request_id)
    )
    judged = judged_again(request, now=now)
    if (
        judged is None
        or request.routed_by_id == judged.version.pk
        or judged.answer.outcome is Outcome.AUTOMATIC
    ):
        return False
    now = judged.standing.now
    if judged.answer.outcome is Outcome.IMPOSSIBLE:
        return _refuse(request, judged, now=now)
    return _route(request, judged, now=now)


def _route(request: Request, judged: Judged, *, now: datetime) -> bool:
    old = request.current_steps
    keys = keys_of(request, old)
    if not _is_other(request, judged, old, keys):
        Request.objects.filter(pk=request.pk).update(routed_by=judged.version)
        return False
    route = _planned(request, judged.answer.route, old, keys, now=now)
    if not route.undecided and any(stops(rule) for rule in judged.answer.rules):
        return False  # everybody has approved it, and there is nothing to grant yet
    asked_before = _asked_now(request, now=now)
    _write(route, now=now)
    changed = _written_down(request, judged, route, now=now)
    if not route.undecided:
        _grant(request, judged, changed, now=now)
    else:
        _go_on(request, judged, route, changed, asked_before, now=now)
    return True


def _is_other(
    request: Request, judged: Judged, steps: Sequence[Step], keys: dict[int, Key]
) -> bool:
    """Whether it is the policy that names other people, or wants more or fewer of them.

    What the team was granted since may make the ask part of a larger sum: that alone changes nobody's route.
    """
    new = [(key_of(plan), plan.quorum) for plan in judged.answer.route]
    if new == [(keys[step.pk], step.quorum) for step in steps]:
        return False
    if request.routed_by is None:
        return True
    before = evaluate(judged.ask, judged.standing, policy_of(request.routed_by)).route
    return new != [(key_of(plan), plan.quorum) for plan in before]


def _planned(
    request: Request,
    plans: Iterable[StepPlan],
    old: Sequence[Step],
    keys: dict[int, Key],
    *,
    now: datetime,
) -> Route:
    """The new route out of the steps that are there; nothing is saved yet."""
    left, found, reopened = list(old), [], set()
    for plan in plans:
        step = next((each for each in left if keys[each.pk] == key_of(plan)), None)
        if step is None:
            found.append(planned(request, plan, position=0))
            continue
        left.remove(step)
        votes = step.decisions.filter(verdict=Decision.Verdict.APPROVE).count()
        if step.done_at is not None and votes < plan.quorum:
            reopened.add(step.pk)
            step.done_at = step.opened_at = None
        elif step.done_at is None and step.opened_at and votes >= plan.quorum:
            step.done_at = now  # fewer votes are needed than before, and they are there
        step.quorum = plan.quorum
        found.append(step)
    dropped = tuple(step for step in left if step.done_at is None)
    route = Route(tuple(found), dropped, frozenset(reopened))
    free = max(step.position for step in request.steps.all()) + 1
    for position, step in enumerate(route.undecided, start=free):
        step.position = position
    return route


def _asked_now(request: Request, *, now: datetime) -> dict[int, User]:
    """Who was told that the request waits for them, and may decide it until now."""
    step = open_step(request)
    told = notices.asked(request.pk)
    may = deciders.candidates(step, request, now=now) if step is not None else []
    return {user.pk: user for user in may if user.pk in told}


def _write(route: Route, *, now: datetime) -> None:
    """Save the steps: first those that are not needed, then the others in their order."""
    Step.objects.filter(pk__in=[step.pk for step in route.dropped]).update(
        dropped_at=now
    )
    for step in route.steps:
        if step.pk in route.reopened:
            for name in (
                *MOMENTS,
                "reminded_at",
                "escalated_at",
                "paused_at",
                "stand_in",
            ):
                setattr(step, name, None)
        step.save()


def _written_down(
    request: Request, judged: Judged, route: Route, *, now: datetime
) -> Rerouting:
    """Keep the answer and what it changed, for the timeline."""
    return Rerouting.objects.create(
        request=request,
        policy=judged.version,
        evaluation=save_evaluation(request, judged, now=now),
        content_version=request.content_version,
        at=now,
        now_decide=[_words(step) for step in route.undecided],
        dropped=[_words(step) for step in route.dropped],
        votes_stay=request.decisions.filter(
            verdict=Decision.Verdict.APPROVE, content_version=request.content_version
        ).exists(),
    )


def _words(step: Step) -> str:
    return step.words if step.quorum == 1 else f"{step.quorum} of {step.words}"


def _go_on(
    request: Request,
    judged: Judged,
    route: Route,
    changed: Rerouting,
    asked_before: dict[int, User],
    *,
    now: datetime,
) -> None:
    """Open the step that is next, tell who is asked now and who is not any more, and put it into the audit log."""
    step = route.undecided[0]
    fields: dict[str, object] = {"routed_by": judged.version}
    if step.paused_at is None and request.turn == Request.Turn.REQUESTER:
        # Who asked the question does not decide any more: it need not be answered.
        go_on(request, now=now)
        fields |= {"turn": Request.Turn.APPROVER, "answer_by": None}
    move(request, now=now, **fields)
    passed = []
    if step.opened_at is None:
        start(step, now=now)
        step.save()
        passed = escalation.pass_over(request, step, now=now, tell=False)
        everybody = deciders.candidates(step, request, now=now)
        at_work = people.at_work(everybody, now=now)
        lead = f"{upper(str(judged.version))} is in force now, and has you decide."
        new = [user for user in at_work if user.pk not in asked_before]
        notices.waits(request, step, to=new, lead=lead, now=now)
    decide = {user.pk for user in deciders.candidates(step, request, now=now)}
    notices.rerouted(request, changed, now=now)
    notices.not_needed(
        request,
        changed,
        to=[user for pk, user in asked_before.items() if pk not in decide],
        now=now,
    )
    notices.seats_empty(request, now=now)
    _record(Kind.REQUEST_REROUTED, request, changed)
    escalation.write_down(request, passed)


def _grant(
    request: Request, judged: Judged, changed: Rerouting, *, now: datetime
) -> None:
    """Grant what everybody has approved whom the policy in force names."""
    count = judged.wanted.count
    Request.objects.filter(pk=request.pk).update(routed_by=judged.version)
    why = notices.rerouting_words(changed)
    with together():
        _record(Kind.REQUEST_REROUTED, request, changed)
        record_policy_approved(request, judged, count=count, reason=why)
        grant(request, judged, count=count, actor=POLICY, now=now)
        notices.freed(request, why, now=now)


def _refuse(request: Request, judged: Judged, *, now: datetime) -> bool:
    """Say once that nobody may approve it as it stands; it waits on, to be changed or withdrawn, until it lapses."""
    known = request.reroutings.filter(
        policy=judged.version, content_version=request.content_version
    )
    if known.exclude(refused="").exists():
        return False
    rule = next(rule for rule in judged.answer.rules if rule.blocks)
    changed = Rerouting.objects.create(
        request=request,
        policy=judged.version,
        evaluation=save_evaluation(request, judged, now=now),
        content_version=request.content_version,
        at=now,
        now_decide=[],
        dropped=[],
        refused=f"{rule.text}: {rule.limit}",
    )
    move(request, now=now)
    notices.rerouted(request, changed, now=now)
    _record(Kind.REQUEST_NOT_ALLOWED, request, changed)
    return True


def _record(kind: Kind, request: Request, changed: Rerouting) -> None:
    record_event(
        kind,
        request,
        actor=POLICY,
        policy=changed.policy.number,
        now_decide=changed.now_decide,
        no_longer_needed=changed.dropped,
        reason=changed.refused,
    )
