"""A run as people look at it: why it is where it is, and its pods, from the portal's own copy."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.models import User
from allocations.use.words import stop_of
from provisioning.delivery import client_for
from web.refusals import Conflict, Missing
from workloads.board import work_of_team
from workloads.explanations import Explanation
from workloads.freshness import Seen
from workloads.models import ClusterObject
from workloads.reading.pods import pod_of
from workloads.reading.values import Object, items, moment, part, text, whole
from workloads.runs.logs.reading import GONE, Source
from workloads.runs.models import Run
from workloads.templates.pods import RUN_LABEL

# Where a pod of an indexed job (alone, or a JobSet's only one) and of a LeaderWorkerSet says which one it is.
NUMBERS = (
    "batch.kubernetes.io/job-completion-index",
    "training.kubeflow.org/replica-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
)

NO_POD = "The run has no pod yet."
NEVER_BEGAN = "It ended before a pod of it began: there is no log."
SENT_BACK = "The run has no pod now: its pods were stopped, and their logs went with them. It begins anew."


@dataclass(frozen=True, kw_only=True)
class PodSeen:
    """A pod of a run as it was last seen; `number` is None where it has none."""

    name: str
    number: int | None
    word: str
    node: str
    gpus: int
    started_at: datetime | None
    restarts: int
    ended_as: str

    @property
    def label(self) -> str:
        """What people call it: its number where it is one of several of a kind."""
        return self.name if self.number is None else f"worker {self.number}"


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
    if at is None or run.running_since is None or run.limit_seconds is None:
        return at
    return at if at < run.running_since + timedelta(seconds=run.limit_seconds) else None


def pods_of(run: Run) -> list[PodSeen]:
    """The run's pods that the cluster still has, by their number."""
    rows = ClusterObject.objects.filter(
        cluster=run.tenancy.cluster_id, namespace=run.tenancy.namespace, kind="Pod"
    )
    found = [
        _pod(body)
        for body in rows.values_list("body", flat=True)
        if part(body, "metadata", "labels").get(RUN_LABEL) == run.name
    ]
    return sorted(found, key=lambda one: (one.number is None, one.number, one.name))


def source_of(run: Run, pod: str) -> Source:
    """The log of a pod of the run, or of its first one; raises Conflict while it has none, or none any more.

    Raises Missing for a pod that never was of the run.
    """
    pods = pods_of(run)
    chosen = next((one for one in pods if not pod or one.name == pod), None)
    if chosen is None:
        if pod and not pod.startswith(f"{run.name}-"):
            raise _no_such_pod(pods)
        raise refusal_of_log(run, pod)
    cluster = run.cluster
    return Source(
        cluster.name, run.tenancy.namespace, chosen.name, lambda: client_for(cluster)
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


def _pod(body: Object) -> PodSeen:
    pod, meta, status = pod_of(body), part(body, "metadata"), part(body, "status")
    marks = {**part(meta, "annotations"), **part(meta, "labels")}
    number = next(
        (marks[name] for name in NUMBERS if str(marks.get(name, "")).isdigit()), None
    )
    containers = items(status, "containerStatuses")
    states = [
        part(one, "state", kind)
        for one in containers
        for kind in ("running", "terminated")
    ]
    started = [at for one in states if (at := moment(one.get("startedAt")))]
    return PodSeen(
        name=pod.name,
        number=int(str(number)) if number is not None else None,
        word=_word(
            pod.phase,
            is_ready=bool(started),
            is_stopping=pod.is_stopping,
            is_placed=bool(pod.node),
        ),
        node=text(part(body, "spec"), "nodeName"),
        gpus=pod.gpus,
        started_at=min(started, default=None),
        restarts=sum(whole(one.get("restartCount")) for one in containers),
        ended_as=pod.ended_as,
    )


def _word(phase: str, *, is_ready: bool, is_stopping: bool, is_placed: bool) -> str:
    if phase in ("Succeeded", "Failed"):
        return {"Succeeded": "Finished", "Failed": "Failed"}[phase]
    if is_stopping:
        return "Being stopped"
    if is_ready:
        return "Running"
    return "Starting" if is_placed else "Waiting"
