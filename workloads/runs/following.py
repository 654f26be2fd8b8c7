"""What becomes of runs, read from the watched copy; that one is gone is believed only when its cluster says so, too."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Min, OuterRef, Q, Subquery

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError
from connectors.kubernetes import ref_of
from fleet.models import Cluster
from provisioning.delivery import client_for
from provisioning.desired.kueue_form import VOLCANO_JOB
from provisioning.stages import Stage
from reconciling.sweeping import for_each
from workloads import listing, observed
from workloads.failures.causes import Code
from workloads.freshness import COPIES_LAG
from workloads.grouping import Piece, pieces_of
from workloads.listing import Around, Work, work_of
from workloads.models import ClusterObject, Feed
from workloads.observed import Condition, Facts, Nodes, Viewer
from workloads.reading.pods import has_begun, is_over
from workloads.reading.values import Object, moment, part, text
from workloads.reading.work import job_of, workload_of
from workloads.reasons.sources import NEVER_FETCHED
from workloads.reasons.stops import is_for_good, why_stopped
from workloads.runs import attempts
from workloads.runs.ending import end
from workloads.runs.enqueue import enqueue_on_commit
from workloads.runs.models import Attempt, Run
from workloads.runs.sending import Clock
from workloads.runs.states import State
from workloads.templates.time_limits import timed_job
from workloads.watching.kept import JOBS, kinds_of

# The database's largest; a Job may have any.
LONGEST_LIMIT = 2**31 - 1
# Of pods that are about to begin, or have begun: nothing holds them up.
MOVING = frozenset({"starting", "running", "recovering"})
# Conditions of a Workload that it loses when it is stopped, or one of its pods is.
LOST = ("QuotaReserved", "Admitted", "PodsReady")
# Those that tell of an earlier stop of one that was let in again since.
LET_IN_AGAIN = ("Evicted", "Requeued", "Admitted")
CAUSES = frozenset(Code)
UNSEEN = "It was let in again; nobody saw why it had been stopped."
CLUSTER_GONE = "It ended with its cluster, which is gone for good."
NAMESPACE_GONE = "It ended with its namespace, which the team has left."
STATES: Mapping[listing.State, State] = {
    listing.State.WAITING: State.WAITING,
    listing.State.STARTING: State.STARTING,
    listing.State.RUNNING: State.RUNNING,
    # Made inactive on the cluster: it waits until somebody makes it active again.
    listing.State.STOPPED: State.WAITING,
    listing.State.FINISHED: State.FINISHED,
    listing.State.FAILED: State.FAILED,
}


def follow(
    *,
    now: Clock,
    gone: Callable[[int], object],
    sent_back: Callable[[int], object] = lambda run_id: None,
) -> None:
    """Write down what became of every run that is on a cluster; `gone` takes each that no copy has any more.

    `sent_back` takes each that its queue has stopped, again and again while its pods have their grace.
    What was on a cluster that is written off ended when that went away, and what was to be sent into a namespace that
    is gone ends now. A run or a cluster at which it fails keeps no other from being followed.
    """
    live = Run.objects.live().select_related("tenancy__cluster", "team")
    is_lost = Q(tenancy__cluster__written_off_at__isnull=False)
    has_no_place = Q(tenancy__stage=Stage.GONE, sent_at=None)
    lost = live.filter(is_lost | has_no_place)
    for_each(lost.order_by("pk"), lambda run: _lose(run, now=now()))
    goes_on = Attempt.objects.filter(run=OuterRef("pk"), ended_at=None)
    rows = (
        live.filter(sent_at__isnull=False)
        .exclude(is_lost)
        .annotate(admitted_at=Subquery(goes_on.values("admitted_at")))
    )
    runs = defaultdict[int, list[Run]](list)
    for run in rows.order_by("pk"):
        runs[run.tenancy.cluster_id].append(run)
    for_each(
        runs,
        lambda cluster_id: _follow(
            cluster_id, runs[cluster_id], now(), gone, sent_back
        ),
    )


def _lose(run: Run, *, now: datetime) -> None:
    if run.cluster.written_off_at is None:
        end(run.pk, State.GONE, now=now, message=NAMESPACE_GONE)
        return
    end(run.pk, State.GONE, now=now, at=run.cluster.away_since, message=CLUSTER_GONE)


def _follow(
    cluster_id: int,
    runs: Sequence[Run],
    now: datetime,
    gone: Callable[[int], object],
    sent_back: Callable[[int], object],
) -> None:
    pieces = _pieces(cluster_id, {run.tenancy.namespace for run in runs})
    jobs = {one.key.uid: one.key for one in pieces.values()}
    called = {(run.tenancy.namespace, run.name): run.title for run in runs}
    row = runs[0].cluster
    heard = _heard(row)
    cluster = observed.Cluster(title=row.title, maintenance=row.last_maintenance)

    def follow_one(run: Run) -> None:
        piece = pieces.get((run.tenancy.namespace, run.name))
        if piece is not None:
            # Who made it stop is named to those of its namespace.
            viewer = Viewer(namespaces=frozenset({run.tenancy.namespace}))
            known = Facts(jobs=jobs, called=called, viewer=viewer, cluster=cluster)
            seen = work_of(piece, _alone(run), {}, now=now)
            _know(run, piece, seen, known, now=now)
            is_waiting = STATES[seen.state] is State.WAITING
            if is_waiting and run.started_at is not None and _is_leaving(piece):
                sent_back(run.pk)
        elif (
            heard is not None
            and run.sent_at is not None
            and heard > run.sent_at + COPIES_LAG
        ):
            gone(run.pk)

    # What somebody wrote into an object of theirs must not keep others from knowing how their runs are.
    for_each(runs, follow_one)


def check(run_id: int, *, now: Clock) -> bool:
    """Ask the cluster itself for a run that no copy has; True when it is gone, and its end is written down."""
    run = (
        Run.objects.live().select_related("tenancy__cluster").filter(pk=run_id).first()
    )
    if run is None or run.sent_at is None:
        return False
    try:
        there = client_for(run.cluster).get(
            ref_of(run.main), run.name, run.tenancy.namespace
        )
    except ConnectorError:
        return False
    if there is not None:
        return False
    is_stopped = run.stop_asked_at is not None
    return end(run.pk, State.STOPPED if is_stopped else State.GONE, now=now())


def _know(run: Run, piece: Piece, seen: Work, known: Facts, *, now: datetime) -> None:
    """Carry over what was seen of one run; nothing is written where nothing changed."""
    state = STATES[seen.state]
    if state is State.FAILED and _is_behind(piece, seen, now):
        return
    if state is State.RUNNING and piece.workload is None:
        # Its pods come by a watch of their own, before that which tells since when all of them are ready.
        return
    _know_limit(run, piece, state, now=now)
    goes_on = state is State.RUNNING or state.is_over
    if run.running_since is not None and not (goes_on and _is_same(run, piece)):
        _finish(run, piece, seen, known, now=now)
    never_began = state is State.FAILED and _never_began(run, piece, seen)
    if state is State.RUNNING or (state.is_over and not never_began):
        _start(run, piece, seen, is_over=state.is_over, now=now)
    if state.is_over:
        held_up = run.held_up if never_began else ""
        words = " ".join(filter(None, (held_up, seen.why.what, seen.why.detail)))
        end(
            run.pk,
            state,
            now=now,
            at=seen.why.since,
            message="" if state is State.FINISHED else words,
            cause=seen.why.code if seen.why.code in CAUSES else "",
        )
        return
    _hold_up(run, piece, seen, state)
    if state != run.state:
        Run.objects.live().filter(pk=run.pk, state=run.state).update(state=state)


def _know_limit(run: Run, piece: Piece, state: State, *, now: datetime) -> None:
    """Write down which time limit the cluster has and from when it counts; a worker makes it that of the run.

    A JobSet that begins anew makes its Jobs with the limit that it was created with, and members may change a Job.
    """
    if run.running_since is None:
        since = _limit_since(piece) if state is State.STARTING else None
        if since != run.limit_since:
            waiting = Run.objects.live().filter(pk=run.pk, running_since=None)
            waiting.update(limit_since=since)
            run.limit_since = since
    job = _timed_job(run, piece)
    if job is None or run.limit_seconds is None:
        return
    limit = job_of(job).limit or timedelta(0)
    seconds = min(int(limit.total_seconds()), LONGEST_LIMIT)
    if seconds == run.limit_on_cluster:
        return
    as_it_was = Run.objects.live().filter(
        pk=run.pk, limit_on_cluster=run.limit_on_cluster
    )
    if as_it_was.update(limit_on_cluster=seconds, requeue_at=now):
        enqueue_on_commit(run.pk)


def _timed_job(run: Run, piece: Piece) -> Object | None:
    """The Job by which Kubernetes counts a run's time limit; None where that cannot be changed, and without one."""
    name = timed_job(run.main)
    jobs = (one for one in (piece.job, *piece.parts) if one is not None)
    return next(
        (one for one in jobs if text(part(one, "metadata"), "name") == name), None
    )


def _never_began(run: Run, piece: Piece, seen: Work) -> bool:
    """Whether no program of a run that has failed ever began, as far as its pods were seen.

    Of pods that went before anybody looked nothing is known: they are taken to have run.
    """
    # It had its GPUs, and its program never began for want of its source.
    if seen.why.code == NEVER_FETCHED:
        return True
    if _has_begun(piece):
        return False
    # A Job deletes the pods that its time limit ends, so what they waited for was written down while they stood.
    return bool(run.held_up) or (bool(piece.pods) and all(map(is_over, piece.pods)))


def _has_begun(piece: Piece) -> bool:
    queued = piece.queued
    is_ready = queued is not None and queued.holds("PodsReady") is not None
    return is_ready or any(map(has_begun, piece.pods))


def _hold_up(run: Run, piece: Piece, seen: Work, state: State) -> None:
    """Write down why no pod of a run begins, for as long as none has: when they are gone, nothing tells it any more."""
    words = run.held_up
    if state is not State.STARTING or _has_begun(piece):
        words = ""
    elif piece.pods and seen.why.code not in MOVING:
        words = seen.why.what[:600]
    if words != run.held_up:
        Run.objects.live().filter(pk=run.pk).update(held_up=words)
        run.held_up = words


def _is_behind(piece: Piece, seen: Work, now: datetime) -> bool:
    """Whether the copies of a failed run's pods and Jobs, which come by other watches, may not tell yet of what."""
    if now - seen.why.since > COPIES_LAG:
        return False
    if any(job_of(one).outcome is None for one in piece.parts):
        return True
    return _has_live_pods(piece)


def _is_leaving(piece: Piece) -> bool:
    """Whether pods of it have been told to end, and have not."""
    return any("deletionTimestamp" in part(one, "metadata") for one in piece.pods)


def _has_live_pods(piece: Piece) -> bool:
    return not all(map(is_over, piece.pods))


def _start(run: Run, piece: Piece, seen: Work, *, is_over: bool, now: datetime) -> None:
    """Write down since when it runs; of one that was over before anybody looked, since when it had its GPUs."""
    if run.running_since is not None:
        return
    admitted_at = _let_in(piece)
    last = run.run_attempts.last() if is_over and run.started_at is not None else None
    if last is not None and last.admitted_at == admitted_at:
        return  # it ended before it ran again
    is_dated = not is_over and seen.why.code == "running"
    began = seen.why.since if is_dated else _admitted(piece)
    at = min(max(began or now, run.created_at), now)
    is_first = run.started_at is None
    with transaction.atomic():
        is_mine = attempts.begin(
            run, at=at, admitted_at=admitted_at, limit_since=_limit_since(piece)
        )
        if is_mine and is_first:
            record(
                Kind.RUN_STARTED,
                actor=PORTAL,
                subject=("run", run.pk),
                team_id=run.team_id,
                name=run.name,
            )


def _finish(run: Run, piece: Piece, seen: Work, known: Facts, *, now: datetime) -> None:
    """Write down that it runs no more, or has begun anew since: in its place, or because its queue stopped it."""
    why, is_sent_back = "", False
    conditions = list[Condition | None]()
    if (workload := piece.queued) is not None:
        is_same, eviction = _is_same(run, piece), workload.holds("Evicted")
        conditions = [eviction, *map(workload.lacks, LOST)]
        if not is_same:
            conditions += map(workload.conditions.get, LET_IN_AGAIN)
        if not is_same or eviction is not None or not workload.holds("Admitted"):
            why = why_stopped(workload, known)
            is_sent_back = bool(why) and not is_for_good(workload)
            why = why or ("" if is_same else UNSEEN)
    times = [one.since for one in conditions if one is not None and one.since]
    began = run.running_since
    at = min([*(one for one in times if began is not None and one > began), now])
    attempts.finish(run, at=at, why=why or seen.why.what, is_sent_back=is_sent_back)


def _is_same(run: Run, piece: Piece) -> bool:
    """Whether the cluster let it in last for the attempt that runs; else it was back in the line while nobody looked.

    What is not let in any more is told by its state.
    """
    workload, known = piece.queued, getattr(run, "admitted_at", None)
    condition = workload.holds("Admitted") if workload is not None else None
    if condition is None or condition.since is None or known is None:
        return True
    return bool(known == condition.since)


def _let_in(piece: Piece) -> datetime | None:
    """When its queue let it in last; None where nothing is known of its Workload."""
    if piece.workload is None:
        return None
    condition = workload_of(piece.workload).conditions.get("Admitted")
    return condition.since if condition is not None else None


def _admitted(piece: Piece) -> datetime | None:
    """When it had its GPUs: since its queue let it in, or its Job began."""
    if piece.workload is not None or piece.job is None:
        return _let_in(piece)
    return moment(part(piece.job, "status").get("startTime"))


def _limit_since(piece: Piece) -> datetime | None:
    """From when Kubernetes counts its time limit: since its Job began last; None where its pods have the limit."""
    if piece.key.kind == VOLCANO_JOB:
        return None
    jobs = [one for one in (piece.job, *piece.parts) if one is not None]
    begun = [
        moment(part(one, "status").get("startTime"))
        for one in jobs
        if job_of(one).limit is not None
    ]
    return max(filter(None, begun), default=_admitted(piece))


def _pieces(cluster_id: int, namespaces: set[str]) -> dict[tuple[str, str], Piece]:
    """The pieces of work of these namespaces, by namespace and name."""
    by_namespace = defaultdict[str, dict[str, list[Object]]](lambda: defaultdict(list))
    rows = ClusterObject.objects.filter(
        cluster=cluster_id,
        namespace__in=namespaces,
        kind__in=("Workload", "Pod", *JOBS),
    )
    for kind, body in rows.values_list("kind", "body").iterator():
        found = by_namespace[text(part(body, "metadata"), "namespace")]
        found["Job" if kind in JOBS else kind].append(body)
    return {
        (one.key.namespace, one.key.name): one
        for found in by_namespace.values()
        for one in pieces_of(found["Workload"], found["Job"], found["Pod"])
    }


def _heard(cluster: Cluster) -> datetime | None:
    """When the oldest of a cluster's copies was known to be true; None before all were read, or in a silence."""
    feeds = Feed.objects.filter(
        cluster=cluster, listed_at__isnull=False, silent_since=None
    )
    if feeds.count() < len(kinds_of(cluster.queueing)):
        return None
    oldest: datetime | None = feeds.aggregate(at=Min("heard_at"))["at"]
    return oldest


def _alone(run: Run) -> Around:
    """Around a run whose state alone is asked for: its queue and nodes only say why."""
    return Around(
        cluster=run.tenancy.cluster.name,
        queues={},
        team_queues={},
        nodes=Nodes(),
        known=lambda queue: {},
    )
