"""Opening, pausing and going on with the steps of a route; their moments are dates, and a sweep looks at them."""

from collections.abc import Container, Iterable, Sequence
from datetime import datetime, timedelta

from django.db.models import F

from accounts import people
from accounts.models import User
from approvals.decisions.seats import seat_of_person
from approvals.judging.inputs import derive
from approvals.models import Request, Step
from policy.document import LEADS, MANAGERS, StepPlan
from policy.evaluation import Evaluation

Key = tuple[str, int]
MOMENTS = ("remind_at", "due_at", "escalate_at")


def open_route(request: Request, answer: Evaluation, *, now: datetime) -> list[Step]:
    """Write the steps of a waiting request's version, the first of them open."""
    steps = []
    for position, plan in enumerate(answer.route):
        step = planned(request, plan, position=position)
        if position == 0:
            start(step, now=now)
        step.save()
        steps.append(step)
    return steps


def planned(request: Request, plan: StepPlan, *, position: int) -> Step:
    """A step as the policy plans it, not yet open. The caller saves it."""
    seat, label = seat_of(plan, request.requester)
    hours = {
        "remind": plan.remind_hours,
        "target": plan.target_hours,
        "escalate": plan.escalate_hours,
    }
    return Step(
        request=request,
        version=request.content_version,
        position=position,
        seat=seat,
        label=label,
        quorum=plan.quorum,
        escalate_to=plan.escalate_to,
        plan={**hours, "by": plan.by, "level": plan.level},
    )


def key_of(plan: StepPlan) -> Key:
    """What makes a step of one route the same as that of another: who decides it, whatever the hours."""
    return plan.by, plan.level


def keys_of(request: Request, steps: Iterable[Step]) -> dict[int, Key]:
    """The keys of a request's steps, by id; those that were written before they kept it have it of the told route."""
    keys = {
        step.pk: (step.plan["by"], step.plan["level"])
        for step in steps
        if "by" in step.plan
    }
    older = [step for step in steps if step.pk not in keys]
    if older:
        told = request.evaluations.filter(
            content_version=request.content_version
        ).select_related("policy")
        first = told.earliest("id")
        route = derive(first.inputs, first.policy.policy).route
        keys |= {step.pk: key_of(route[step.position]) for step in older}
    return keys


def seat_of(plan: StepPlan, requester: User) -> tuple[str, str]:
    """The seat of a planned step and its words; platform leads take the place of a manager nobody knows of."""
    if plan.by != MANAGERS:
        return plan.by, plan.words
    chain: Sequence[str] = requester.managers
    if len(chain) < plan.level:
        return LEADS.by, f"{LEADS.words} (no manager is known)"
    oid = str(chain[plan.level - 1])
    known = people.of_oids([oid])
    return (
        seat_of_person(oid),
        f"{known[0].name}, manager" if known else "the requester’s manager",
    )


def open_step(request: Request) -> Step | None:
    """The step that waits for a decision."""
    # Chosen here and not by the database: pages have the steps at hand already.
    steps = [step for step in request.current_steps if step.done_at is None]
    return min(steps, key=lambda step: step.position, default=None)


def start(step: Step, *, now: datetime) -> None:
    """Open a step: from now on its time runs. The caller saves it."""
    step.opened_at = now
    step.remind_at = now + timedelta(hours=step.plan["remind"])
    step.due_at = now + timedelta(hours=step.plan["target"])
    step.escalate_at = now + timedelta(hours=step.plan["escalate"])


def pause(step: Step, *, now: datetime) -> None:
    """Stop the clock of an open step while the requester has the turn."""
    Step.objects.filter(pk=step.pk, paused_at=None).update(paused_at=now)


def go_on(request: Request, *, now: datetime) -> None:
    """Let the clock of a paused step run again: its moments and the lapse move by as long as it stood still.

    No request waits past the end that was asked for.
    """
    for step in request.steps.filter(
        version=request.content_version, paused_at__isnull=False
    ):
        stood = now - (step.paused_at or now)
        moved = {name: F(name) + stood for name in MOMENTS}
        Step.objects.filter(pk=step.pk).update(paused_at=None, **moved)
        request.lapses_at = min(request.until_now, request.lapses_at + stood)
        request.save(update_fields=["lapses_at"])


def took(step: Step) -> timedelta | None:
    """How long the deciders of a done step took, without the time in which the requester had the turn."""
    if step.opened_at is None or step.due_at is None or step.done_at is None:
        return None
    # What the due date moved by is how long the clock stood; what is decided over a question stopped it there.
    stood = step.due_at - step.opened_at - timedelta(hours=step.plan["target"])
    return max((step.paused_at or step.done_at) - step.opened_at - stood, timedelta(0))


def open_next(
    request: Request, step: Step, needed: Container[Key] | None, *, now: datetime
) -> Step | None:
    """Open the step after a decided one; those whose key is not `needed` are dropped, None keeps all."""
    later = Step.objects.undecided().filter(
        request=request, version=request.content_version, position__gt=step.position
    )
    if needed is not None:
        keys = keys_of(request, later)
        later.filter(
            pk__in=[pk for pk, key in keys.items() if key not in needed]
        ).delete()
    following = later.order_by("position").first()
    if following is not None:
        start(following, now=now)
        following.save()
    return following
