"""What happened to a request and what comes: entries for the timeline, oldest first, the future last."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter

from allocations import provisioners
from allocations.models import Allocation, Leftover
from allocations.schedule import Provisioner
from allocations.schedule import Step as Ahead
from allocations.use.words import coming_stops, leftovers_of, now_running
from approvals import notices
from approvals.decisions import route_words
from approvals.models import Decision, Evaluation, Request, Rerouting, Step
from approvals.requests.presenting import SOON, past_wish
from approvals.states import State
from audit.events import Kind
from audit.models import Event
from catalogue.offering import in_sentence
from manual.models import Task
from policy.rules import Arrival
from provisioning.models import Tenancy
from ui.amounts import gpus, moment
from ui.parts import Entry, in_time


def entries(
    request: Request,
    *,
    state: State,
    evaluation: Evaluation,
    decisions: Sequence[Decision],
    steps: Sequence[Step],
    allocations: Sequence[Allocation],
    now: datetime,
    tasks: Sequence[Task] = (),
    edits: Iterable[Entry] = (),
    reroutings: Iterable[Rerouting] = (),
) -> list[Entry]:
    """Past, now and future of a request that came from `with_allocation()`; `edits` is how it became what it is.

    `tasks` are carried out for it, `reroutings` is what policies changed about who decides.
    """
    held = next((a for a in allocations if a.ended_at is None), None)
    left = leftovers_of(request.hold_id) if any(a.ended_at for a in allocations) else []
    past = [
        *(list(edits) or [_asked(request, evaluation)]),
        *map(_decided, decisions),
        *_booked(allocations),
        *_held(request, allocations),
        *_entries_of_ends(allocations),
        *_carried_out(request, tasks),
        *route_words.past(request),
        *map(_rerouted, reroutings),
        *_stopped(left),
    ]
    if state in (State.WITHDRAWN, State.LAPSED):
        because = request.withdrawn_because
        past.append(_past(state.words, request.decided_at, why=because, tone="past"))
    ends = held.next_steps(now) if held is not None else None
    return [
        *in_time(past),
        *now_running(left, now=now),
        *coming(request, state, steps, ends, tasks),
        *coming_stops(left, now=now),
    ]


def _asked(request: Request, evaluation: Evaluation) -> Entry:
    what = past_wish(request, in_sentence(request.name()))
    why = f"{request.requester.name} asked; {evaluation.policy} answered: {evaluation.answer['sentence']}"
    return _past(what, request.created_at, why=why, tone="moving")


def _decided(decision: Decision) -> Entry:
    verdict = Decision.Verdict(decision.verdict)
    title = (
        "Asked back"
        if verdict is Decision.Verdict.ASK
        else str(verdict.label).capitalize()
    )
    void = (
        verdict in Decision.VOTES
        and decision.content_version < decision.request.content_version
    )
    if verdict is Decision.Verdict.APPROVE and decision.step is not None:
        # What was asked then is another number.
        fewer = decision.count != decision.request.count and not void
        amount = f" {decision.count} of {decision.request.count}" if fewer else ""
        title = f"Approved{amount}{_shorter(decision)} as {decision.step.words}"
    tones = {Decision.Verdict.APPROVE: "good", Decision.Verdict.REJECT: "bad"}
    who = decision.by_words
    why = (
        f"{decision.reason} Void: it was changed since.".strip()
        if void
        else decision.reason
    )
    return _past(
        title, decision.at, who=who, why=why, tone=tones.get(verdict, "waiting")
    )


def _shorter(decision: Decision) -> str:
    """That a vote was for a shorter time than was asked for; empty where it was for all of it."""
    until, asked = decision.until, decision.request.until
    # Of a void vote nobody knows here which end was asked for then.
    is_void = decision.content_version < decision.request.content_version
    if is_void or until is None or until >= asked:
        return ""
    return (
        f" until {moment(until, decision.at)} instead of {moment(asked, decision.at)}"
    )


def _rerouted(changed: Rerouting) -> Entry:
    title = (
        "Cannot be approved as it stands" if changed.refused else "Other people decide"
    )
    tone = "bad" if changed.refused else "waiting"
    return _past(title, changed.at, why=notices.rerouting_words(changed), tone=tone)


def _booked(allocations: Sequence[Allocation]) -> Iterator[Entry]:
    """That what was booked began, or was cancelled before."""
    for one in allocations:
        if (
            one.begun_at is None
            and one.ended_at is not None
            and one.end_reason != Allocation.End.FAILED
        ):
            because = one.taken_back_because
            yield _past(
                "Booking cancelled for the platform"
                if because
                else "Booking cancelled",
                one.ended_at,
                who=one.ended_by,
                why=because or "It has cost nothing.",
                tone="past",
            )


def _held(request: Request, allocations: Sequence[Allocation]) -> Iterator[Entry]:
    """What was held: set up, given back in part or whole, ended."""
    tenancy, flavor = request.tenancy, request.flavor
    on_cluster = flavor is not None or request.of.provisioner is Provisioner.KUBERNETES
    if tenancy is None or not allocations or not on_cluster:
        return
    since = _set_up_at(request, tenancy, allocations)
    if since is not None:
        title = "GPUs kept for it" if request.is_by_person else "Set up"
        yield _past(
            f"{title} on {request.where}",
            since,
            why="Every object stands as wanted.",
            tone="good",
        )
    for allocation in allocations:
        if allocation.ended_at is None or flavor is None:
            continue
        if allocation.begun_at is None:
            continue
        if allocation.end_reason == Allocation.End.EXPIRED:
            yield _past(
                "Ended", allocation.ended_at, why="The end date came.", tone="past"
            )
        elif allocation.end_reason == Allocation.End.RENEWED:
            what = gpus(allocation.gpus, flavor.kind)
            yield _past(
                f"{what} went on under a renewal",
                allocation.ended_at,
                who=allocation.ended_by,
                tone="good",
            )
        else:
            back = gpus(allocation.gpus, flavor.kind)
            because = allocation.taken_back_because
            yield _past(
                f"{back} taken back for the platform"
                if because
                else f"Gave back {back}",
                allocation.ended_at,
                who=allocation.ended_by,
                why=because,
                tone="ending",
            )


def _entries_of_ends(allocations: Sequence[Allocation]) -> Iterator[Entry]:
    """How what takes no GPUs of a pool came to its end: by its date, or by whom, and why if not by its team."""
    for one in allocations:
        if one.flavor_id is not None or one.ended_at is None or one.begun_at is None:
            continue
        if one.end_reason == Allocation.End.EXPIRED:
            yield _past("Its time was over", one.ended_at, tone="past")
        if one.end_reason != Allocation.End.RETURNED:
            continue
        because = one.taken_back_because
        # A part of reserved machines ends under its own row.
        part = one.reservation_id is not None and len(allocations) > 1
        title = "Taken back for the platform" if because else "Let go early"
        yield _past(
            f"{title}: {one.what}" if part else title,
            one.ended_at,
            who=one.ended_by,
            why=because,
            tone="ending",
        )


def _set_up_at(
    request: Request, tenancy: Tenancy, allocations: Sequence[Allocation]
) -> datetime | None:
    """When everything was true for the first time after the grant; None where it was over before that.

    The tenancy knows the last time only; the audit log knows the first.
    """
    generations = [a.generation for a in allocations if a.generation is not None]
    if (
        request.decided_at is None
        or tenancy.true_since is None
        or tenancy.true_since < request.decided_at
        or not generations
        or tenancy.observed_generation < min(generations)
    ):
        return None
    # What was true meanwhile may have been an older generation, which has nothing of it yet.
    made_true = Event.objects.about("tenancy", tenancy.pk).filter(
        kind=Kind.TENANCY_CONVERGED, details__generation__gte=min(generations)
    )
    first = made_true.filter(at__gte=request.decided_at).order_by("seq").first()
    since = first.at if first is not None else tenancy.true_since
    ends = [a.ended_at for a in allocations]
    known = [end for end in ends if end is not None]
    return None if len(known) == len(ends) and since > max(known) else since


def coming(
    request: Request,
    state: State,
    steps: Sequence[Step],
    ends: Iterable[Ahead] | None,
    tasks: Sequence[Task],
) -> Iterator[Entry]:
    """What it is doing now and what happens next, with dates where they are known.

    `ends` is what comes of what is held under it; None when nothing is. `tasks` are carried out for it.
    """
    on = f" on {request.where}" if request.where else ""
    if state is State.WAITING:
        yield from _while_it_waits(request, steps)
    elif state is State.BOOKED and request.allocation is not None:
        yield _now("Booked", why=request.allocation.hindrance, tone="moving")
        yield _future("Begins by itself", request.allocation.starts_at)
    elif state is State.SETTING_UP:
        task = task_of(tasks, Task.Kind.SET_UP)
        is_open = task is not None and not task.is_over
        who = _who(task) if task is not None and is_open else soon(request)
        yield _now(f"Setting up{on}", why=who, tone="moving")
        yield from _ahead(task)
    elif (
        state is State.ENDED
        and (task := task_of(tasks, Task.Kind.TAKE_DOWN))
        and not task.is_over
    ):
        yield _now(
            "Being taken down" if task.assignee else "To be taken down",
            why=_who(task),
            tone="ending",
        )
        yield from _ahead(task)
    elif state is State.FAILED:
        yield _now("Could not be set up", why=told_by(request), tone="bad")
    elif state is State.ACTIVE:
        yield _now("Held" if request.flavor_id else "In place", tone="good")
    elif state is State.ENDING_SOON:
        yield _now("Ending soon", tone="ending")
    if ends is not None:
        yield from (_future(step.words, step.at) for step in ends)


def _while_it_waits(request: Request, steps: Sequence[Step]) -> Iterator[Entry]:
    yield from route_words.coming(request, steps)
    lapses = route_words.lapses(request)
    found = [
        (request.lapses, lapses["title"]),
        (request.until_now, "Ends, when approved"),
    ]
    if request.starts_at is not None:
        found.append((request.starts_at, "Begins, when approved"))
    if request.renews is not None:
        rows = Allocation.objects.live().of_gpus()
        held = rows.filter(hold=request.renews.hold_id).first()
        if held is not None:
            found.append((held.until, "What is held goes back, if not approved"))
    in_order = sorted(found, key=itemgetter(0))
    yield from (_future(words, at) for at, words in in_order)


def _ahead(task: Task | None) -> Iterator[Entry]:
    """What comes while nobody has carried it out."""
    if task is None or task.is_over or task.due_at is None or task.escalate_at is None:
        return
    if task.reminded_at is None:
        who = f"{task.assignee.name} is" if task.assignee else "platform leads are"
        yield _future(f"Should be carried out, else {who} reminded", task.due_at)
    if task.escalated_at is None:
        yield _future(
            "Engineering leadership is told, if it is not carried out", task.escalate_at
        )


def _who(task: Task) -> str:
    if task.assignee is None or task.taken_at is None:
        return "A platform lead takes it from here."
    return f"{task.assignee.name} has had it since {task.taken_at.day} {task.taken_at:%b, %H:%M} UTC."


def task_of(tasks: Iterable[Task], kind: str) -> Task | None:
    """The task of a kind among these; None when nobody was asked."""
    return next((task for task in tasks if task.kind == kind), None)


NOT_TAKEN_DOWN = (
    "Not to be taken down any more",
    "It was asked for again, or deleted with its namespace.",
)
NOT_CARRIED_OUT = ("Over before it was carried out", "It has cost nothing.")


def _carried_out(request: Request, tasks: Iterable[Task]) -> Iterator[Entry]:
    """What people did for it: asked to, done or not with their note, not needed any more."""
    for task in tasks:
        is_down = task.kind == Task.Kind.TAKE_DOWN
        if is_down:
            yield _past(
                "To be taken down",
                task.created_at,
                why="Platform leads were asked to.",
                tone="past",
            )
        yield from _asked_after(task)
        who = task.assignee.name if task.assignee else ""
        if task.state == Task.State.DONE:
            title = "Taken down" if is_down else "Carried out"
            yield _past(
                title,
                task.done_at,
                who=who,
                why=task.note,
                tone="past" if is_down else "good",
            )
        elif task.state == Task.State.FAILED:
            title = "Could not be taken down" if is_down else "Could not be carried out"
            yield _past(title, task.done_at, who=who, why=task.note, tone="bad")
        elif task.state == Task.State.DROPPED:
            title, why = NOT_TAKEN_DOWN if is_down else NOT_CARRIED_OUT
            yield _past(title, task.done_at, why=why, tone="past")


def _asked_after(task: Task) -> Iterator[Entry]:
    why = "It was not carried out yet."
    if task.reminded_at is not None:
        yield _past(
            "Reminded of what is to be carried out",
            task.reminded_at,
            why=why,
            tone="waiting",
        )
    if task.escalated_at is not None:
        yield _past(
            "Engineering leadership was told",
            task.escalated_at,
            why=why,
            tone="waiting",
        )


def soon(request: Request) -> str:
    """When what the portal makes is there, or what its provisioner says of it."""
    if request.arrival is Arrival.WHEN_IT_ANSWERS:
        return SOON[request.arrival]
    return told_by(request) or SOON[request.arrival]


def told_by(request: Request) -> str:
    """What whoever makes it says of how far it has come; mostly nothing."""
    return (
        provisioners.status(request.allocation).message
        if request.allocation is not None
        else ""
    )


def _stopped(left: Iterable[Leftover]) -> Iterator[Entry]:
    for row in left:
        for work in row.stopped.all():
            if work.done_at is not None:
                why = f"It used {gpus(work.gpus)} that were no longer held."
                yield _past(f"Stopped {work.job}", work.done_at, why=why, tone="ending")


def _past(
    title: str, at: datetime | None, *, who: str = "", why: str = "", tone: str = "past"
) -> Entry:
    return {
        "phase": "past",
        "title": title,
        "at": at,
        "who": who,
        "why": why,
        "tone": tone,
    }


def _now(title: str, *, why: str = "", tone: str) -> Entry:
    return {"phase": "now", "title": title, "at": "now", "why": why, "tone": tone}


def _future(title: str, at: datetime | str) -> Entry:
    return {"phase": "future", "title": title, "at": at}
