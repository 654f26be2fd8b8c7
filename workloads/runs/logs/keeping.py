"""Keeping the last lines of runs' logs: Kubernetes deletes a log with its pod, and people ask for it afterwards."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain

from django.conf import settings
from django.db import transaction

from connectors.errors import ConnectorError
from provisioning.delivery import client_for
from reconciling.sweeping import for_each
from web.refusals import Away, Conflict
from workloads.freshness import COPIES_LAG
from workloads.runs import telling
from workloads.runs.logs.causes import learn_cause
from workloads.runs.logs.reading import TAIL, KeptSource, Line, Source, read_log
from workloads.runs.models import Attempt, KeptLog, Run
from workloads.runs.pods import PodSeen, pods_of
from workloads.runs.states import State

# Of a run of hundreds of pods nobody reads more: those that failed come first.
MAX_PODS = 8
MAX_CHARACTERS = 64 * 1024
LONGEST_LINE = 4_000
# A day less than Kubernetes keeps the pods of what has ended.
WITHIN = timedelta(days=6)
LONGEST_PASS_SECONDS = 12.0
MAX_OF_A_CLUSTER = 100
MAX_FORGOTTEN = 1_000
# What a stop may wait for it.
WHILE_STOPPING_SECONDS = 2.0
# Two passes, of which one may be late.
BEFORE_THE_LIMIT = timedelta(seconds=35)
# While pods have their grace they write what matters most: that a checkpoint is saved.
AGAIN = timedelta(seconds=5)


def keep_before_it_goes(run: Run, *, now: datetime) -> None:
    """Keep what the pods of a run that is being stopped have written, again every five seconds of their grace.

    A log that cannot be read keeps no run from being stopped.
    """
    if run.logs_kept_at is not None and now < run.logs_kept_at + AGAIN:
        return
    with suppress(Away, ConnectorError):
        _keep(run, now=now, seconds=WHILE_STOPPING_SECONDS)
    Run.objects.filter(pk=run.pk).update(logs_kept_at=now)


def keep_of_sent_back(run_id: int, *, now: datetime) -> None:
    """Keep what the pods of an attempt that was stopped on the cluster write, again every five seconds of their grace.

    Kubernetes has no log of a pod that is gone: what ends within a look of the portal, or while its cluster is away, is
    lost.
    """
    run = Run.objects.select_related("tenancy__cluster").get(pk=run_id)
    last = run.run_attempts.last()
    # Pods of an attempt that begins are not those of the one before it.
    if run.state != State.WAITING or last is None or last.ended_at is None:
        return
    if last.kept_logs.filter(kept_at__gt=now - AGAIN).exists():
        return
    with suppress(Away, ConnectorError):
        _keep(run, now=now, seconds=WHILE_STOPPING_SECONDS, attempt=last)


def keep_of_ended(*, now: Callable[[], datetime]) -> None:
    """Keep the logs of the runs that have ended by themselves.

    A cluster that is away is asked again at the next pass, and a run at which it fails keeps no other from its turn.
    """
    due = Run.objects.filter(
        state__in=(State.FINISHED, State.FAILED),
        started_at__isnull=False,
        logs_kept_at=None,
        ended_at__range=(now() - WITHIN, now() - COPIES_LAG),
    )
    clusters = due.order_by().values_list("tenancy__cluster", flat=True).distinct()
    rows = due.select_related("tenancy__cluster").order_by("ended_at")
    of_each = (rows.filter(tenancy__cluster=one)[:MAX_OF_A_CLUSTER] for one in clusters)
    _keep_each(
        chain.from_iterable(of_each),
        now=now,
        each=LONGEST_PASS_SECONDS,
        kept=lambda run: _note_kept(run, now=now()),
    )


@transaction.atomic
def _note_kept(run: Run, *, now: datetime) -> None:
    learn_cause(run.pk)
    Run.objects.filter(pk=run.pk).update(logs_kept_at=now)
    telling.tell_waiting(run.pk, now=now)


def keep_of_ending(*, now: Callable[[], datetime]) -> None:
    """Keep the logs of the runs that reach their time limit within two passes: Kubernetes then deletes their pods.

    What they write in their last seconds may be missing. A cluster that is away, or a run at which it fails, keeps no
    other run from its turn.
    """
    running = Run.objects.filter(
        state=State.RUNNING, limit_seconds__isnull=False, running_since__isnull=False
    ).only("running_since", "limit_since", "limit_seconds")
    soon = now() + BEFORE_THE_LIMIT
    ending = [
        run.pk for run in running if run.limit_at is not None and run.limit_at <= soon
    ]
    runs = Run.objects.filter(pk__in=ending).select_related("tenancy__cluster")
    _keep_each(runs, now=now, each=WHILE_STOPPING_SECONDS, kept=lambda _: None)


def _keep_each(
    runs: Iterable[Run],
    *,
    now: Callable[[], datetime],
    each: float,
    kept: Callable[[Run], object],
) -> None:
    """Keep the logs of runs, for `each` seconds of one at most, and call `kept` with those of which all is kept."""
    until = time.monotonic() + LONGEST_PASS_SECONDS
    away: set[int] = set()

    def keep_of(run: Run) -> None:
        left = min(until - time.monotonic(), each)
        if left <= 0 or run.tenancy.cluster_id in away:
            return
        try:
            is_kept = _keep(run, now=now(), seconds=left)
        except (Away, ConnectorError):
            away.add(run.tenancy.cluster_id)
        else:
            if is_kept:
                kept(run)

    for_each(runs, keep_of)


def forget(*, now: datetime) -> None:
    """Delete what was kept longer ago than the settings say."""
    before = now - timedelta(days=settings.ENV.logs_kept_days)
    old = KeptLog.objects.filter(kept_at__lte=before).order_by("kept_at")
    KeptLog.objects.filter(
        pk__in=list(old.values_list("pk", flat=True)[:MAX_FORGOTTEN])
    ).delete()


def kept_source(run: Run, pod: str, *, attempt: int | None = None) -> KeptSource | None:
    """What is kept of the log of a pod, or of the first of which something is; None without any.

    Of several attempts it is the last one's unless told otherwise.
    """
    rows = run.kept_logs.filter(pod=pod) if pod else run.kept_logs.all()
    kept = (rows if attempt is None else rows.filter(attempt__number=attempt)).first()
    if kept is None:
        return None
    return KeptSource(kept.pod, [Line(*each) for each in kept.placed])


def _keep(
    run: Run, *, now: datetime, seconds: float, attempt: Attempt | None = None
) -> bool:
    """Keep the last lines of each pod as they are now; False when it takes longer. Raises Away, or ConnectorError.

    They are those of an attempt that was interrupted where that is told, or else of the one that goes on or that the
    run ended with: what was let in again and never ran has none.
    """
    if not settings.ENV.logs_kept_days:
        return True
    until = time.monotonic() + seconds
    cluster = run.cluster
    client = client_for(cluster)
    attempt = attempt or run.last_attempt
    for pod in _chosen(pods_of(run)):
        if time.monotonic() > until:
            return False
        source = Source(cluster.name, run.tenancy.namespace, pod.name, lambda: client)
        try:
            lines = bounded(read_log(source, tail=TAIL))
        except Conflict:
            continue  # it has not begun, or is gone
        if lines:
            KeptLog.objects.update_or_create(
                run=run,
                attempt=attempt,
                pod=pod.name,
                defaults={"number": pod.number, "lines": lines, "kept_at": now},
            )
    return True


def _chosen(pods: Sequence[PodSeen]) -> Sequence[PodSeen]:
    return sorted(pods, key=lambda one: one.word != "Failed")[:MAX_PODS]


def bounded(lines: Sequence[Line]) -> str:
    """The last lines as they are stored, as many as there is room for, without what PostgreSQL takes in no text."""
    found: list[str] = []
    room = MAX_CHARACTERS
    for one in reversed(lines):
        text = one.text.replace("\x00", "\ufffd").replace("\n", " ")[:LONGEST_LINE]
        line = f"{one.place} {text}"
        room -= len(line) + 1
        if room < 0:
            break
        found.append(line)
    return "\n".join(reversed(found))
