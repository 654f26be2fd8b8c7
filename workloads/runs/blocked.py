"""Why a run is not on its cluster yet: another one has to finish first, the cluster does not take it, or nobody tries.

What its page says, the API says.
"""

from datetime import datetime

from provisioning.clusters.explaining import AGAIN, NOTHING_TO_DO, explain
from ui.amounts import moment
from workloads.explanations import Action, Explanation, Outlook, Step
from workloads.runs.models import Run
from workloads.runs.states import State

NO_LINE = "It is sent to the cluster then, and takes its place in the line."


def explain_blocked(run: Run, *, now: datetime) -> Explanation | None:
    """Why a run waits for another one and until when at the latest; None for one that does not. Asks no query.

    Take it from `described` rows, which have the other run.
    """
    before = run.waits_for
    if before is None:
        return None
    is_stopped = before.is_being_stopped
    return Explanation(
        code="waits_for_stopped_run" if is_stopped else "waits_for_run",
        outlook=Outlook.CHANGE if is_stopped else Outlook.WAIT,
        what=f"It begins when run {before.pk}, {before.title}, has finished.",
        # Nothing becomes blocked later: it is from its submission on, or never.
        since=run.created_at,
        line=NO_LINE,
        when=_when(before, now),
        do=_advice(before),
        step=Step(Action.OPEN_RUN, f"Open run {before.pk}", {"run": before.pk}),
    )


def explain_not_taken(run: Run) -> Explanation | None:
    """Why a run that is to be sent is not on the cluster, in words; None for one that has met nothing. No query.

    Take it from `described` rows, too.
    """
    if run.state != State.SUBMITTED or run.is_being_stopped or not run.message:
        return None
    if run.parked_at is not None:
        return _parked(run.parked_at)
    found = explain(run.message, will_try_again=True)
    return Explanation(
        code="not_on_cluster",
        outlook=Outlook.WAIT if found.do == NOTHING_TO_DO else Outlook.ESCALATE,
        what=f"It is not on the cluster yet. {found.means}",
        since=_to_be_sent_since(run),
        line="It takes its place in the line once the cluster has it.",
        when=AGAIN,
        do=found.do,
        detail=run.message,
    )


def _to_be_sent_since(run: Run) -> datetime:
    """Its submission, or the end of the run that it waited for."""
    before = run.after.ended_at if run.after is not None else None
    return run.created_at if before is None else max(run.created_at, before)


def _parked(since: datetime) -> Explanation:
    """Of what ended every worker that tried to send it, whatever the cluster would say."""
    return Explanation(
        code="run_parked",
        outlook=Outlook.ESCALATE,
        what="It is not on the cluster: each try to send it ended the portal's worker, so it is tried no more.",
        since=since,
        line="It has no place in the line.",
        when="Not by itself.",
        do="Platform leads were told. Stop it, and submit it again when they have seen to it.",
    )


def _when(before: Run, now: datetime) -> str:
    name = f"Run {before.pk}"
    if before.is_being_stopped:
        return f"Never, unless run {before.pk} finishes before it is stopped."
    if before.state == State.BLOCKED:
        return f"{name} waits for another run itself, so nobody can say when."
    if before.running_since is None or before.limit_at is None:
        return f"{name} does not run now, so nobody can say when."
    if before.limit_at <= now:
        return f"{name} has reached its time limit, and is about to end."
    return f"{name} runs until {moment(before.limit_at, now)} at the latest."


def _advice(before: Run) -> str:
    if before.is_being_stopped:
        return f"Rerun run {before.pk}, and submit this one after that: it is skipped when run {before.pk} has stopped."
    return f"Wait: it is sent by itself. If run {before.pk} does not finish, this one is skipped."
