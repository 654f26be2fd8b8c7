"""A run as people look at it: why it is where it is, and its pods, from the portal's own copy."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from accounts.models import User
from allocations.use.words import stop_of
from provisioning.delivery import client_for
from web.refusals import Conflict, Missing
from workloads.board import work_of_team
from workloads.explanations import Explanation
from workloads.freshness import Seen
from workloads.runs.logs.keeping import kept_source
from workloads.runs.logs.reading import GONE, KeptSource, Source
from workloads.runs.models import Run
from workloads.runs.pods import PodSeen, pods_of

NO_POD = "The run has no pod yet."
NEVER_BEGAN = "It ended before a pod of it began: there is no log."
SENT_BACK = "The run has no pod now: its pods were stopped, and their logs went with them. It begins anew."


@dataclass(frozen=True, kw_only=True)
class RunSeen:
    """A run with its reason and pods; `why` is None before it was sent and after its end.

    `sent_back_at` is when its queue stopped it, until it starts again; `stop_at` when it is stopped for GPUs that are
    no longer held, before its time limit ends it.
    """

    run: Run
    why: Explanation | None
    pods: Sequence[PodSeen]
    seen: Seen | None
    sent_back_at: datetime | None = None
    stop_at: datetime | None = None


def seen_run(run: Run, *, by: User, now: datetime) -> RunSeen:
    """What the copy says about one run; six queries however large the cluster is."""
    found, seen, stop_at = None, None, None
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
    return RunSeen(
        run=run,
        why=found.why if found is not None else None,
        pods=pods_of(run) if run.sent_at is not None else (),
        seen=seen,
        sent_back_at=found.sent_back_at if found is not None else None,
        stop_at=stop_at,
    )


def _stop_of(run: Run) -> datetime | None:
    at = stop_of(run.tenancy_id, f"{run.main['kind']} {run.name}")
    if at is None or run.limit_at is None:
        return at
    return at if at < run.limit_at else None


def source_of(run: Run, pod: str) -> Source | KeptSource:
    """The log of a pod of the run, or of its first one, or what was kept of it when it went.

    Raises Conflict while it has none, or none any more, and Missing for a pod that never was of the run.
    """
    pods = pods_of(run)
    chosen = next((one for one in pods if not pod or one.name == pod), None)
    if chosen is None:
        if (kept := kept_source(run, pod)) is not None:
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
