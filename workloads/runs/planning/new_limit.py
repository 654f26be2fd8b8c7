"""Another time limit for a run that was submitted: whether it can have it, and what follows."""

from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from ui.amounts import duration, span
from web.refusals import BadInput, Conflict
from workloads.runs.models import Run
from workloads.runs.planning.early_stops import early_stop_words
from workloads.runs.states import State
from workloads.template_desk.offered import offered
from workloads.templates.library import MINUTES
from workloads.templates.parameters import Parameter, check
from workloads.templates.run import MINUTE

# A run that were to end sooner than this is stopped instead, which gives it its grace.
SOONEST = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class NewLimit:
    """A run's other time limit. `ends_at` is when it ends at the latest; None while it waits.

    `usd_at_limit` is the most USD that it can cost then; `early_stops` says what can stop it before.
    """

    seconds: int
    ends_at: datetime | None
    usd_at_limit: Decimal
    early_stops: str


def new_limit_of(run: Run, minutes: int, *, now: datetime) -> NewLimit:
    """What another time limit makes of a run; raises as `checked_limit`."""
    changed = copy(run)
    changed.limit_seconds = checked_limit(run, minutes, now=now)
    return NewLimit(
        seconds=changed.limit_seconds,
        ends_at=changed.limit_at,
        usd_at_limit=changed.usd_at_limit or Decimal(0),
        early_stops=early_stop_words(changed, now),
    )


def checked_limit(run: Run, minutes: int, *, now: datetime) -> int:
    """Another time limit of a run, in seconds.

    Raises Conflict for a run that keeps its limit, BadInput for one that its template refuses or that it has reached.
    """
    refuse_fixed(run)
    if problem := check([minutes_of(run)], {"minutes": minutes}).problems.get(
        "minutes"
    ):
        raise BadInput(problem, code="bad_limit", field="minutes")
    changed = copy(run)
    changed.limit_seconds = minutes * MINUTE
    ends = changed.limit_at
    if ends is not None and ends < now + SOONEST:
        limit = timedelta(minutes=minutes)
        counted = span(now - (ends - limit))
        raise BadInput(
            f"Its limit has counted for {counted}: one of {duration(limit)} ends it at once. Allow more, or stop it.",
            code="limit_is_reached",
            field="minutes",
        )
    return changed.limit_seconds


def minutes_of(run: Run) -> Parameter:
    """What its template says of a time limit, as it is offered now; as shipped where it is offered no more."""
    template = offered().get(run.template)
    found = (one for one in (template.parameters if template else ()))
    return next((one for one in found if one.name == MINUTES.name), MINUTES)


def refuse_fixed(run: Run) -> None:
    """Raise Conflict for a run whose time limit stays as it is."""
    if run.is_over:
        state = State(run.state).words.lower()
        raise Conflict(f"The run is over: {state}.", code="run_is_over")
    if run.stop_asked_at is not None:
        raise Conflict(
            "The run is being stopped. Rerun it with more time.", code="run_is_stopping"
        )
    if run.limit_seconds is None:
        raise Conflict(
            "The run has no time limit: it runs until you stop it.", code="no_limit"
        )
    if not run.can_change_limit:
        kind = run.main["kind"]
        raise Conflict(
            f"Kubernetes gives a {kind} no other time limit once it is there. Stop the run, and rerun it with another.",
            code="limit_is_fixed",
        )
