"""What people are told about runs."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.urls import reverse

from notices.actions import tell
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message
from ui.amounts import gpus, moment, span, usd
from workloads.runs.blocked import explain_blocked
from workloads.runs.models import Run
from workloads.runs.states import State

# Whoever looks at it sees the end of a shorter one.
WORTH_TELLING = timedelta(minutes=5)
LAST_LINES = "The page of the run shows its last lines."
# As many as a mail has room for.
MOST_TOLD = 10


def tell_ended(run: Run, *, now: datetime) -> None:
    """Tell who submitted a run how it ended: of a long one, of one that never began, and of one that others stopped.

    Who stopped it themselves knows.
    """
    is_stopped = run.state == State.STOPPED
    if is_stopped and run.stop_asked_by_id == run.requester_id:
        return
    is_short = (run.ended_at or now) - run.created_at < WORTH_TELLING
    if run.started_at is not None and is_short and not is_stopped:
        return
    tell(
        NoticeKind.RUN_ENDED,
        to=[run.requester],
        subject=("run", run.pk),
        link=reverse("run", args=[run.pk]),
        message=ended_message(run, now=now),
        now=now,
    )


def tell_skipped(runs: Sequence[Run], *, because_of: Run, now: datetime) -> None:
    """Tell everybody once which of their runs were skipped because another run did not finish."""
    of_each = defaultdict[int, list[Run]](list)
    for run in runs:
        of_each[run.requester_id].append(run)
    for skipped in of_each.values():
        first, *others = skipped
        if not others:
            tell_ended(first, now=now)
            continue
        tell(
            NoticeKind.RUN_ENDED,
            to=[first.requester],
            subject=("run", first.pk),
            link=reverse("run", args=[because_of.pk]),
            message=skipped_message(skipped, because_of),
            now=now,
        )


def tell_blocked(runs: Sequence[Run], *, now: datetime) -> None:
    """Tell who submitted these runs that they still wait for others; take `listed` ones of one person."""
    tell(
        NoticeKind.RUN_BLOCKED,
        to=[runs[0].requester],
        subject=("run", runs[0].pk),
        link=reverse("run", args=[runs[0].pk]),
        message=blocked_message(runs, now=now),
        now=now,
    )


def blocked_message(runs: Sequence[Run], *, now: datetime) -> Message:
    """What runs wait for, in the words of their pages."""
    found = [
        (run, why) for run in runs if (why := explain_blocked(run, now=now)) is not None
    ]
    if len(found) == 1:
        [(run, why)] = found
        return Message(
            title=f"{run.title} still waits for another run",
            sentence=f"{why.what} {why.when}",
            facts=(*_place_facts(run), ("Waits since", moment(why.since, now))),
            action="Open the run",
        )
    facts = [(run.title, why.what) for run, why in found[:MOST_TOLD]]
    if len(found) > MOST_TOLD:
        facts.append(("And", f"{len(found) - MOST_TOLD} more"))
    return Message(
        title=f"{len(found)} runs still wait for others",
        sentence="They wait for a day or longer. Stop those that you no longer need.",
        facts=tuple(facts),
        action="Open the first of them",
    )


def skipped_message(runs: Sequence[Run], because_of: Run) -> Message:
    """Which runs were skipped, and what each of them waited for."""
    how = because_of.word.lower()
    facts = [("Team", because_of.team.name)]
    facts += [(one.title, one.message) for one in runs[:MOST_TOLD]]
    if len(runs) > MOST_TOLD:
        facts.append(("And", f"{len(runs) - MOST_TOLD} more"))
    return Message(
        title=f"{len(runs)} runs were skipped",
        sentence=f"Run {because_of.pk}, {because_of.title}, did not finish: {how}. What waited for it did not run.",
        facts=tuple(facts),
        action="Open that run",
    )


def tell_ending(run: Run, *, now: datetime) -> None:
    """Tell who submitted a run that it is about to reach its time limit, and how to give it more where that can be."""
    page = "run-limit" if run.can_change_limit else "run"
    tell(
        NoticeKind.RUN_ENDING,
        to=[run.requester],
        subject=("run", run.pk),
        link=reverse(page, args=[run.pk]),
        message=ending_message(run, now=now),
        now=now,
    )


def tell_parked(run: Run, *, now: datetime) -> None:
    """Tell the platform leads of a run that ended every worker which tried it."""
    message = Message(
        f"{run.title} is parked",
        run.message,
        facts=(("Team", run.team.name), ("Cluster", run.cluster.title)),
        action="Open the run",
    )
    about, link = ("run", run.pk), reverse("run", args=[run.pk])
    tell_leads(
        NoticeKind.RUN_PARKED, subject=about, link=link, message=message, now=now
    )


def ending_message(run: Run, *, now: datetime) -> Message:
    """When the time limit ends a run, and what can be done before."""
    assert run.limit_at is not None  # noqa: S101 - told of what runs with a limit
    at = moment(run.limit_at, now)
    advice = (
        "Give it more time if it needs more: it goes on meanwhile."
        if run.can_change_limit
        else "Its limit cannot be changed: see that it writes a checkpoint before."
    )
    return Message(
        title=f"{run.title} reaches its time limit in {span(run.limit_at - now)}",
        sentence=f"It is stopped on {at}. {advice}",
        facts=(
            *_place_facts(run),
            ("Ran for", span(run.ran(now))),
            ("Cost", usd(run.cost(now))),
        ),
        action="Give it more time" if run.can_change_limit else "Open the run",
    )


def _place_facts(run: Run) -> list[tuple[str, str]]:
    facts = [("Team", run.team.name), ("Cluster", run.cluster.title)]
    if run.flavor is not None:
        facts.append(("GPUs", gpus(run.gpus, run.flavor.kind)))
    return facts


def _end_words(run: Run) -> str:
    """How it ended; of one that was stopped, who had it stopped."""
    if run.state == State.STOPPED and run.stop_asked_by is not None:
        return f"{run.stop_asked_by.name} stopped it."
    return run.end_words


def ended_message(run: Run, *, now: datetime) -> Message:
    """How a run ended, how long it took, what it cost and how well it used its GPUs."""
    state = State(run.state)
    facts = _place_facts(run)
    if run.started_at is not None and run.ended_at is not None:
        facts += [
            ("Ran for", span(run.ran(now))),
            ("Cost", usd(run.cost(now))),
        ]
    if use := run.overall_use(now).words:
        facts.append(("GPU use", use))
    if run.message and not run.says_how_it_ended:
        facts.append(("Reason", run.message[:200]))
    if run.advice:
        facts.append(("What to do", run.advice))
    has_lines = state is State.FAILED and run.started_at is not None
    return Message(
        title=f"{run.title}: {state.words.lower()}",
        sentence=" ".join([_end_words(run), *([LAST_LINES] if has_lines else [])]),
        facts=tuple(facts),
        action="Open the run",
    )
