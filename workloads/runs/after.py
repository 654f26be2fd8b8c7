"""Which run has to finish before another one is sent: what can be chosen, and what is refused."""

from collections.abc import Collection, Iterator

from workloads.runs.models import Run
from workloads.runs.planning.plan import Problem
from workloads.runs.states import State

MAX_OFFERED = 50


def offered_before(team_id: int, *, named: Collection[int] = ()) -> list[Run]:
    """The newest runs of a team that may finish, and those that are named, whatever became of them."""
    rows = Run.objects.filter(team=team_id).only("title", "state", "stop_asked_at")
    found = [*rows.finishing().order_by("-pk")[:MAX_OFFERED]]
    missing = {*named} - {one.pk for one in found}
    return [*found, *rows.filter(pk__in=missing).order_by("-pk")] if missing else found


def skipped_with(run: Run) -> list[Run]:
    """What waits for a run, and for that in turn, ascending by number: it is skipped unless the run finishes.

    Once the run has ended otherwise, what was skipped with it. One query for each link of the longest chain.
    """
    rows = Run.objects.filter(state__in=[State.BLOCKED, State.SKIPPED])
    found, last = list[Run](), [run]
    while last:
        last = [*rows.filter(after__in=last).only("title", "name")]
        found += last
    return sorted(found, key=lambda one: one.pk)


def live_after(run: Run) -> int | None:
    """The run that a run was to begin after, while that may finish: once more after it makes sense only then."""
    if run.after_id is None:
        return None
    rows = Run.objects.finishing().filter(pk=run.after_id)
    return rows.values_list("pk", flat=True).first()


def refused_after(number: int | None, before: Run | None) -> Iterator[Problem]:
    """Why a run cannot begin after the one of this number; `before` is that, None where the team has none of it."""
    if number is None:
        return
    if before is None:
        text = (
            f"Your team has no run {number}. Give the number of one that waits or runs."
        )
        yield Problem(field="after", text=text, code="no_such_run")
    elif before.is_over and before.state != State.FINISHED:
        how = before.word.lower()
        text = f"Run {number} did not finish: {how}. Nothing can begin after it."
        yield Problem(field="after", text=text, code="run_did_not_finish")
    elif before.is_being_stopped:
        text = f"Run {number} is being stopped. Nothing can begin after it."
        yield Problem(field="after", text=text, code="run_did_not_finish")
    elif not before.is_over and not before.may_finish:
        text = (
            f"Run {number} runs until it is stopped, so it never finishes. "
            "Nothing can begin after it."
        )
        yield Problem(field="after", text=text, code="run_never_finishes")
