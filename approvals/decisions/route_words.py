"""A route in words: who decides now, and what happened and happens by itself while they are silent, with dates."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from approvals.decisions.deciders import has_voted_elsewhere
from approvals.decisions.seats import is_person
from approvals.models import Request, Step
from policy.document import seat_words
from ui.amounts import moment
from ui.parts import Entry


def who(step: Step) -> str:
    """Who may decide a step now: "platform leads or engineering leadership"."""
    if step.stand_in is not None:
        return f"{step.stand_in.name}, in place of {step.words}"
    if step.escalated_at is not None and step.escalate_to != step.seat:
        return f"{step.words} or {seat_words(step.escalate_to)}"
    return step.words


def in_turn(steps: Iterable[Step]) -> str:
    """ "Platform leads, then engineering leadership"."""
    return upper(", then ".join(map(who, steps)))


def decide(steps: Sequence[Step]) -> str:
    """ "Platform leads, then engineering leadership decide"."""
    is_alone = len(steps) == 1 and is_one(steps[0])
    return f"{in_turn(steps)} {'decides' if is_alone else 'decide'}"


def past(request: Request) -> Iterator[Entry]:
    """What the clock has done at the steps of a request."""
    for step in request.steps.all():
        name = upper(step.words)
        if step.reminded_at is not None:
            yield _past(
                f"{name} {_were(step)} reminded",
                step.reminded_at,
                "Nobody had decided yet.",
            )
        if step.escalated_at is None:
            continue
        early = step.escalate_at is not None and step.escalated_at < step.escalate_at
        if step.escalate_to == step.seat:
            yield _past(
                f"{name} {_were(step)} reminded again",
                step.escalated_at,
                "Nobody had decided yet.",
            )
        else:
            why = (
                f"{name} {_could_not(step, request, _were(step), by=step.escalated_at)}."
                if early
                else "Nobody had decided by then."
            )
            yield _past(
                f"Passed on to {seat_words(step.escalate_to)}, too",
                step.escalated_at,
                why,
            )


def coming(request: Request, steps: Sequence[Step]) -> Iterator[Entry]:
    """Whose turn it is, and what comes by itself until the last step is done."""
    for step in steps:
        if step.done_at is not None:
            continue
        if step.opened_at is None:
            yield _future(f"Then {step.words} {_decide(step)}", "")
        elif step.paused_at is not None:
            since = moment(step.paused_at, step.paused_at)
            still = (
                f"The clock stands still since {since}; every date moves by as long."
            )
            yield _now(f"{request.requester.name} answers", still)
        else:
            title = upper(who(step))
            yield _now(
                f"{title} {'decides' if is_one(step) else 'decide'}",
                _why(step, request),
            ) | {"at": ""}
            # What would come after the lapse does not come.
            yield from (
                _future(title, at) for title, at in _clock(step) if at <= request.lapses
            )


def due(step: Step, request: Request) -> datetime | None:
    """By when a step should be decided: at the latest when the request lapses; None for a step that is not open."""
    return None if step.due_at is None else min(step.due_at, request.lapses)


def granted_by_itself() -> Entry:
    """That the policy grants what waits for GPUs, money or a window alone, once there is enough."""
    return _future(
        "The policy approves it once every rule holds: reject what you do not want", ""
    )


def lapses(request: Request) -> Entry:
    """That it lapses by itself, and when."""
    asked = request.turn == Request.Turn.REQUESTER
    until = "it is not answered" if asked else "nobody has decided"
    return _future(f"Lapses, if {until}", request.lapses)


def _clock(step: Step) -> Iterator[tuple[str, datetime]]:
    name = upper(step.words)
    is_are = "is" if _is_one(step) else "are"
    if step.reminded_at is None and step.remind_at:
        yield f"{name} {is_are} reminded", step.remind_at
    if step.due_at:
        is_past = step.escalated_at is not None and step.escalated_at >= step.due_at
        yield f"Should {'have been' if is_past else 'be'} decided by", step.due_at
    if step.escalated_at is None and step.escalate_at:
        last = step.escalate_to == step.seat
        title = (
            f"{name} {is_are} reminded again"
            if last
            else f"If nobody has, {seat_words(step.escalate_to)} may decide in their place"
        )
        yield title, step.escalate_at


def is_one(step: Step) -> bool:
    """Whether one person alone may decide a step now."""
    return step.stand_in is not None or (_is_one(step) and step.escalated_at is None)


def _why(step: Step, request: Request) -> str:
    if step.stand_in is None:
        return ""
    return f"{upper(step.words)} {_could_not(step, request, 'is')}."


def _could_not(
    step: Step, request: Request, be: str, *, by: datetime | None = None
) -> str:
    """Why those whose step it is do not decide it themselves, or did not `by` then, as their sentence goes on."""
    if is_person(step.seat) and has_voted_elsewhere(step, request, by=by):
        return "has decided a step of it already"
    return f"{be} out of office"


def _is_one(step: Step) -> bool:
    return is_person(step.seat)


def _decide(step: Step) -> str:
    return "decides" if _is_one(step) else "decide"


def _were(step: Step) -> str:
    return "was" if _is_one(step) else "were"


def upper(words: str) -> str:
    """Words as a sentence begins with them."""
    return words[:1].upper() + words[1:]


def _past(title: str, at: datetime, why: str) -> Entry:
    return {
        "phase": "past",
        "title": title,
        "at": at,
        "who": "",
        "why": why,
        "tone": "waiting",
    }


def _now(title: str, why: str) -> Entry:
    return {"phase": "now", "title": title, "at": "now", "why": why, "tone": "waiting"}


def _future(title: str, at: datetime | str) -> Entry:
    return {"phase": "future", "title": title, "at": at}
