"""What happened to a request and what comes: entries for the timeline, oldest first, the future last."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from allocations.models import Allocation
from allocations.words import gpus, usd
from approvals.document import seat_words
from approvals.models import Decision, Evaluation, Request, Step, Task
from approvals.states import State

Part = dict[str, Any]


def entries(
    request: Request,
    *,
    state: State,
    evaluation: Evaluation,
    decisions: Sequence[Decision],
    steps: Sequence[Step],
    allocations: Sequence[Allocation],
) -> list[Part]:
    """Past, now and future of a request that came from `with_holding()`."""
    past = [_asked(request, evaluation), *map(_decided, decisions), *_held(request, allocations)]
    if state in (State.WITHDRAWN, State.LAPSED):
        past.append(_past(state.words, request.decided_at, tone="past"))
    past.sort(key=lambda entry: entry["at"])
    return [*past, *_coming(request, state, steps, getattr(request, "held_until", None))]


def _asked(request: Request, evaluation: Evaluation) -> Part:
    what = f"Asked for {request.name()}"
    why = f"{request.requester.name} asked; {evaluation.policy} answered: {evaluation.answer['sentence']}"
    return _past(what, request.created_at, why=why, tone="moving")


def _decided(decision: Decision) -> Part:
    verdict = Decision.Verdict(decision.verdict)
    title = "Asked back" if verdict is Decision.Verdict.ASK else str(verdict.label).capitalize()
    if verdict is Decision.Verdict.APPROVE and decision.step is not None:
        title = f"Approved {decision.count} of {decision.request.count} as {decision.step.words}"
    tones = {Decision.Verdict.APPROVE: "good", Decision.Verdict.REJECT: "bad"}
    who = decision.by.name if decision.by else "The policy"
    return _past(title, decision.at, who=who, why=decision.reason, tone=tones.get(verdict, "waiting"))


def _held(request: Request, allocations: Sequence[Allocation]) -> Iterator[Part]:
    """What was held: set up, given back in part or whole, ended."""
    tenancy, flavor = request.tenancy, request.flavor
    if tenancy is None or flavor is None:
        return
    if allocations and tenancy.true_since and request.decided_at and tenancy.true_since >= request.decided_at:
        where = f"on {flavor.cluster.name}"
        yield _past(f"Set up {where}", tenancy.true_since, why="Every object stands as wanted.", tone="good")
    for allocation in allocations:
        if allocation.ended_at is None:
            continue
        rest = next((a.gpus for a in allocations if a.starts_at == allocation.ended_at), 0)
        if allocation.end_reason == Allocation.End.EXPIRED:
            yield _past("Ended", allocation.ended_at, why="The end date came.", tone="past")
        else:
            back = gpus(allocation.gpus - rest, flavor.product)
            yield _past(f"Gave back {back}", allocation.ended_at, who=allocation.ended_by, tone="ending")


def _coming(
    request: Request, state: State, steps: Sequence[Step], held_until: datetime | None
) -> Iterator[Part]:
    on = f" on {request.place}" if request.place else ""
    if state is State.WAITING:
        yield from _steps(request, steps)
        yield _future("Lapses, if nobody has decided", request.lapses_at)
        yield _future(f"Ends, when approved; {usd(request.usd)} at most", request.until)
    elif state is State.SETTING_UP:
        yield _now(f"Setting up{on}", why=_task_words(request) or "Usually a few seconds.", tone="moving")
    elif state is State.FAILED:
        yield _now("Could not be set up", why=_failure(request), tone="bad")
    elif state is State.ACTIVE:
        yield _now("Running", tone="good")
    elif state is State.ENDING_SOON:
        yield _now("Ending soon", tone="ending")
    if held_until is not None:
        yield _future("Ends; the GPUs go back to the pool by themselves", held_until)


def _steps(request: Request, steps: Sequence[Step]) -> Iterator[Part]:
    for step in steps:
        if step.done_at is not None:
            continue
        if step.opened_at is None:
            yield _future(f"Then {step.words} decide", "")
        elif request.turn == Request.Turn.REQUESTER:
            yield _now(
                f"{request.requester.name} answers",
                why="The time of who decides stands still.",
                tone="waiting",
            )
        else:
            title = f"{step.words[:1].upper()}{step.words[1:]} decide"
            yield _now(title, tone="waiting") | {"at": ""}
            yield from _clock(step)


def _clock(step: Step) -> Iterator[Part]:
    """What happens by itself while a step waits, with its dates."""
    if step.reminded_at is None and step.remind_at:
        yield _future(f"{step.words[:1].upper()}{step.words[1:]} are reminded", step.remind_at)
    if step.due_at:
        yield _future("Should be decided by", step.due_at)
    if step.escalated_at is None and step.escalate_at and step.escalate_to != step.seat:
        yield _future(f"Then {seat_words(step.escalate_to)} may decide it, too", step.escalate_at)


def _task_words(request: Request) -> str:
    """Who carries it out, where a person does."""
    task = getattr(request, "task", None)
    if task is None:
        return ""
    return f"{task.assignee.name} carries it out." if task.assignee else "A platform lead takes it from here."


def _failure(request: Request) -> str:
    task = getattr(request, "task", None)
    if task is not None and task.state == Task.State.FAILED:
        return str(task.note)
    return str(request.tenancy.ready["message"]) if request.tenancy else ""


def _past(title: str, at: datetime | None, *, who: str = "", why: str = "", tone: str = "past") -> Part:
    return {"phase": "past", "title": title, "at": at, "who": who, "why": why, "tone": tone}


def _now(title: str, *, why: str = "", tone: str) -> Part:
    return {"phase": "now", "title": title, "at": "now", "why": why, "tone": tone}


def _future(title: str, at: datetime | str) -> Part:
    return {"phase": "future", "title": title, "at": at}
