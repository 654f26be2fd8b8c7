"""A run as people look at it: why it is where it is, and its pods, from the portal's own copy."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from accounts.models import User
from allocations.use.words import stop_of
from provisioning.delivery import client_for
from web.refusals import Conflict, Missing
from workloads.board import work_of_team
from workloads.explanations import Explanation
from workloads.freshness import Seen
from workloads.reading.pods import label_of
from workloads.runs.blocked import explain_blocked, explain_not_taken
from workloads.runs.logs.keeping import kept_source
from workloads.runs.logs.reading import GONE, KeptSource, Source
from workloads.runs.models import Attempt, Run
from workloads.runs.pods import PodSeen, pods_of

NO_POD = "The run has no pod yet."
# Somebody who looks at all teams has no use for each run's reason.
MOST_TEAMS = 10
NOT_KEPT = "No log of that attempt is kept."
NEVER_BEGAN = "It ended before a pod of it began: there is no log."
SENT_BACK = "The run has no pod now: its pods were stopped. It begins anew, and the log of its new pods comes then."


@dataclass(frozen=True)
class KeptPod:
    """A pod of whose log the last lines are kept."""

    name: str
    label: str


@dataclass(frozen=True)
class AttemptSeen:
    """One time that a run ran, and of which of its pods the last lines are kept."""

    attempt: Attempt
    kept: Sequence[KeptPod]


@dataclass(frozen=True, kw_only=True)
class RunSeen:
    """A run with its reason and pods; `why` is None while it is sent without trouble and after its end.

    `sent_back_at` is when its queue stopped it, until it starts again; `stop_at` when it is stopped for GPUs that are
    no longer held, before its time limit ends it. `attempts` may be left out of one that was never
    interrupted (`with_past`): the run itself tells of its only one.
    """

    run: Run
    why: Explanation | None
    pods: Sequence[PodSeen]
    seen: Seen | None
    sent_back_at: datetime | None = None
    stop_at: datetime | None = None
    attempts: Sequence[AttemptSeen] = ()


def seen_run(run: Run, *, by: User, now: datetime) -> RunSeen:
    """What the copy says about one run; six queries however large the cluster is, and one for a past (`with_past`)."""
    found, seen, stop_at = None, None, None
    why = _not_sent(run, now=now)
    if run.sent_at is not None and not run.is_over:
        board = work_of_team(run.team, by=by, now=now)
        here = (run.cluster.name, run.tenancy.namespace, run.name)
        found = next(
            (
                one
                for one in board.work
                if (one.cluster, one.key.namespace, one.key.name) == here
            ),
            None,
        )
        seen = next(
            (one for one in board.clusters if one.cluster.pk == run.tenancy.cluster_id),
            None,
        )
        stop_at = _stop_of(run) if found and found.held else None
        why = found.why if found is not None else None
    return RunSeen(
        run=run,
        why=why,
        pods=pods_of(run) if run.sent_at is not None else (),
        seen=seen,
        sent_back_at=found.sent_back_at if found is not None else None,
        stop_at=stop_at,
        attempts=attempts_of(run) if getattr(run, "has_past", True) else (),
    )


def attempts_of(run: Run) -> list[AttemptSeen]:
    """Each time that it ran, in one query."""
    rows = run.run_attempts.annotate(
        kept_pod=F("kept_logs__pod"), kept_number=F("kept_logs__number")
    ).order_by("number", F("kept_number").asc(nulls_last=True), "kept_pod")
    found: dict[int, Attempt] = {}
    kept = defaultdict[int, list[KeptPod]](list)
    for one in rows:
        found.setdefault(one.number, one)
        if one.kept_pod is not None:
            label = label_of(one.kept_pod, one.kept_number)
            kept[one.number].append(KeptPod(one.kept_pod, label))
    return [AttemptSeen(one, kept[number]) for number, one in found.items()]


def reasons_of(
    runs: Collection[Run], *, by: User, now: datetime
) -> dict[int, Explanation]:
    """Why runs are where they are that wait for another one, that their cluster does not take, or that are there.

    The others are left out. A few queries for each of the first teams of those that were sent, and none for the rest.
    """
    not_sent = {
        one.pk: why for one in runs if (why := _not_sent(one, now=now)) is not None
    }
    wanted = {one.pk for one in runs if one.sent_at is not None and not one.is_over}
    teams = {one.team_id: one.team for one in runs if one.pk in wanted}
    return not_sent | {
        each.run: each.why
        for team in [*teams.values()][:MOST_TEAMS]
        for each in work_of_team(team, by=by, now=now).work
        if each.run is not None and each.run in wanted
    }


def _not_sent(run: Run, *, now: datetime) -> Explanation | None:
    return explain_blocked(run, now=now) or explain_not_taken(run)


def _stop_of(run: Run) -> datetime | None:
    at = stop_of(run.tenancy_id, f"{run.main['kind']} {run.name}")
    if at is None or run.limit_at is None:
        return at
    return at if at < run.limit_at else None


def _goes_on(run: Run, number: int) -> bool:
    """Whether an attempt is the one that runs; raises Missing for one that never was."""
    found = run.run_attempts.filter(number=number).first()
    if found is None:
        raise Missing("The run never had such an attempt.", code="no_such_attempt")
    return found.ended_at is None


def source_of(run: Run, pod: str, *, attempt: int | None = None) -> Source | KeptSource:
    """The log of a pod of the run, or of its first one, or what was kept of it when it went.

    With an attempt that is over it is what was kept of that one. Raises Conflict while it has none, or none any more,
    and Missing for a pod or an attempt that never was of the run.
    """
    if attempt is not None and not _goes_on(run, attempt):
        kept = kept_source(run, pod, attempt=attempt)
        if kept is None:
            raise Conflict(NOT_KEPT, code="log_gone")
        return kept
    pods = pods_of(run)
    chosen = next((one for one in pods if not pod or one.name == pod), None)
    if chosen is None:
        # Of one that begins anew the log to come is meant, and not what is kept of an earlier attempt.
        is_to_come = not (
            pod or run.is_over or run.is_being_stopped or run.running_since
        )
        if not is_to_come and (kept := kept_source(run, pod)) is not None:
            return kept
        if pod and not pod.startswith(f"{run.name}-"):
            raise _no_such_pod(pods)
        raise refusal_of_log(run, pod)
    cluster = run.cluster
    return Source(
        cluster.name,
        run.tenancy.namespace,
        chosen.name,
        lambda: client_for(cluster),
        is_over=chosen.is_over,
    )


def _no_such_pod(pods: Sequence[PodSeen]) -> Missing:
    names = ", ".join(one.name for one in pods) or "none now"
    return Missing(
        f"The run never had such a pod. It has: {names}.", code="no_such_pod"
    )


def refusal_of_log(run: Run, pod: str = "") -> Conflict:
    """Why there is no log of a run that has no pod, or not the one that is asked for: not yet, no more, or never."""
    if pod or (run.is_over and run.started_at is not None):
        return Conflict(GONE, code="log_gone")
    if run.is_over:
        return Conflict(NEVER_BEGAN, code="log_never_begun")
    words = NO_POD if run.started_at is None else SENT_BACK
    return Conflict(words, code="log_not_started")
