"""How hard a cluster is worked on, over all workers: tenancies at once, and writes a second. The database counts.

No worker waits for its turn: who finds no place or no budget gives the tenancy back, and it is booked again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from secrets import SystemRandom

from django.db import transaction
from django.db.models import Exists, F, FloatField, OuterRef, Q, QuerySet, Value, Window
from django.db.models.functions import Greatest, RowNumber

from connectors.errors import ConnectorError
from fleet.models import Cluster
from provisioning import breaker
from provisioning.models import Pace, Tenancy

# Steady work may be this far ahead of its budget, a team's first objects farther: on-boarding must not wait in line.
AHEAD, AHEAD_ON_BOARDING = timedelta(seconds=1), timedelta(seconds=10)
# Nobody can owe this much: a clock that went wrong wrote it, and it is forgotten.
UNBELIEVABLE = timedelta(minutes=2)
LEAST_WAIT = 0.05
LOOK_SECONDS = 60
# Longer than any call waits for a first word.
SILENCE_SECONDS = 25
MOST_RINGS = 200


def free_slot(cluster_id: int, *, most: int, now: datetime) -> int | None:
    """Any place at work on the cluster that no live lease has; None when `most` are taken.

    Any, not the first: workers that look at once would all go for the same one, and all but one of them in vain.
    """
    held = (
        Tenancy.objects.filter(cluster=cluster_id, slot__isnull=False)
        .order_by()
        .values_list("slot", "lease_until")
    )
    rows = list(held)
    live = {slot for slot, until in rows if until is not None and until > now}
    if len(live) >= most:
        return None
    if len(rows) > len(live):
        free = Q(lease_until=None) | Q(lease_until__lte=now)
        Tenancy.objects.filter(free, cluster=cluster_id, slot__isnull=False).update(slot=None)
    return SystemRandom().choice([slot for slot in range(most) if slot not in live])


def places(cluster: Cluster) -> int:
    """How many places at work a cluster has.

    One that does not answer has one, so that finding out whether it is back costs one worker, not all of them.
    """
    is_away = cluster.reachable is False or _of(cluster).left_alone_until is not None
    return 1 if is_away else cluster.most_at_once


def seconds_left(cluster: Cluster, *, now: datetime) -> float:
    """How long all workers still leave the cluster alone; 0 when it may be called."""
    until = _of(cluster).left_alone_until
    return max(0.0, (until - now).total_seconds()) if until else 0.0


def seconds_to_wait(cluster: Cluster, *, now: datetime) -> float:
    """How long this process still leaves the cluster alone: as long as all do, or as itself had to wait in vain.

    Once any worker has heard from the cluster again, nobody holds anything against it.
    """
    if _of(cluster).left_alone_until is None:
        breaker.has_answered(cluster.pk)
    return max(breaker.seconds_left(cluster.pk), seconds_left(cluster, now=now))


@contextmanager
def one_at_a_time(cluster: Cluster, *, now: Callable[[], datetime]) -> Iterator[bool]:
    """Whether the cluster may be called in the block: what last kept somebody waiting is called by one worker alone."""
    is_silent = _of(cluster).left_alone_until is not None
    mine = is_silent and begin_look(cluster.pk, now=now(), seconds=SILENCE_SECONDS)
    try:
        yield mine or not is_silent
    finally:
        if mine:
            end_look(cluster.pk, now=now(), seen=False)


def kept_waiting(cluster: Cluster, error: ConnectorError, *, seconds: float, now: datetime) -> bool:
    """Have everybody leave the cluster alone if it took so long and gave no answer at all; whether it did."""
    if not breaker.kept_waiting(cluster.pk, error, seconds=seconds):
        return False
    leave_alone(cluster, seconds=breaker.seconds_left(cluster.pk), now=now)
    return True


def leave_alone(cluster: Cluster, *, seconds: float, now: datetime) -> None:
    """Have every worker leave the cluster alone for so long: one of them has just waited for it in vain."""
    _ensure(cluster.pk)
    Pace.objects.filter(pk=cluster.pk).update(left_alone_until=now + timedelta(seconds=seconds))


def has_answered(cluster: Cluster, *, now: datetime) -> None:
    """Forget what was held against the cluster, and have what waited for it tried now.

    It asks the database nothing when there is nothing. What failed while the cluster was away was put off for up to a
    minute, each by itself, though only the cluster was at fault.
    """
    breaker.has_answered(cluster.pk)
    if _of(cluster).left_alone_until is None:
        return
    held = Pace.objects.filter(pk=cluster.pk, left_alone_until__isnull=False)
    waiting = Tenancy.objects.filter(cluster=cluster, is_true=False, slot=None, next_look_at__gt=now)
    waiting = waiting.filter(conditions__0__reason="WillTryAgain").order_by()
    with transaction.atomic():
        if held.update(left_alone_until=None):
            # Whoever holds one of them will look at it, so nobody is waited for here.
            free = list(waiting.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True))
            Tenancy.objects.filter(pk__in=free).update(next_look_at=now, attempts=0)


def pay(cluster: Cluster, writes: int, *, on_boarding: bool, now: datetime) -> timedelta | None:
    """Take so many writes from the cluster's budget at once; None when they may be done, else when to come back.

    More writes than fit are let through when nothing is owed, and owed afterwards: no tenancy is too large for ever.
    """
    if not writes:
        return None
    at, cost = now.timestamp(), writes / cluster.writes_per_second
    ahead = (AHEAD_ON_BOARDING if on_boarding else AHEAD).total_seconds()
    latest = at + max(0.0, ahead - cost)
    start = Greatest(F("paid_until"), Value(at), output_field=FloatField())
    if Pace.objects.filter(pk=cluster.pk, paid_until__lte=latest).update(paid_until=start + cost):
        return None
    _ensure(cluster.pk)
    wrong = Pace.objects.filter(pk=cluster.pk, paid_until__gt=at + UNBELIEVABLE.total_seconds())
    if wrong.update(paid_until=at + cost):
        return None
    owed = Pace.objects.values_list("paid_until", flat=True).get(pk=cluster.pk) - latest
    if owed <= 0:  # the row was not there yet, whoever made it
        return pay(cluster, writes, on_boarding=on_boarding, now=now)
    return timedelta(seconds=max(owed, LEAST_WAIT))


def next_due(after: int, *, now: datetime) -> int | None:
    """The tenancy that has waited longest on the cluster of this one and is to be worked on by itself."""
    same = Tenancy.objects.filter(pk=after).values("cluster")
    due = Tenancy.objects.due(now).filter(cluster__in=same).exclude(pk=after)
    return by_themselves(due).order_by("next_look_at").values_list("pk", flat=True).first()


def by_themselves(due: QuerySet[Tenancy]) -> QuerySet[Tenancy]:
    """Those that a pass of their own looks at: what is true already is looked through with its whole cluster."""
    settled = Q(is_true=True, observed_generation=F("generation"), cluster__delivery=Cluster.Delivery.APPLY)
    return due.exclude(settled)


def fair(*, now: datetime) -> Sequence[int]:
    """Tenancies to ring for, clusters taking turns, each with twice what it may be worked on at once.

    A cluster with ten thousand that are due comes no more often than one with three.
    """
    turn = Window(RowNumber(), partition_by=F("cluster"), order_by=F("next_look_at").asc())
    due = (
        by_themselves(Tenancy.objects.due(now))
        .annotate(turn=turn)
        .filter(turn__lte=F("cluster__most_at_once") * 2)
    )
    return list(due.order_by("turn", "next_look_at").values_list("pk", flat=True)[:MOST_RINGS])


def to_look_through(*, now: datetime) -> Sequence[int]:
    """Clusters of which something settled is due for a look, which nobody looks through and nobody leaves alone."""
    due = Tenancy.objects.due(now).converged().filter(cluster=OuterRef("pk"))
    busy = Q(pace__looked_through_until__gt=now) | Q(pace__left_alone_until__gt=now)
    mine = Cluster.objects.filter(delivery=Cluster.Delivery.APPLY).exclude(busy)
    return list(
        mine.filter(Exists(due)).order_by("pace__looked_through_at", "pk").values_list("pk", flat=True)
    )


def begin_look(cluster_id: int, *, now: datetime, seconds: int = LOOK_SECONDS) -> bool:
    """Take the right to look through a cluster; False while somebody else has it. It is lost by itself."""
    _ensure(cluster_id)
    free = Q(looked_through_until=None) | Q(looked_through_until__lte=now)
    until = now + timedelta(seconds=seconds)
    return bool(Pace.objects.filter(free, pk=cluster_id).update(looked_through_until=until))


def end_look(cluster_id: int, *, now: datetime, seen: bool) -> None:
    """Give the right back; `seen` is whether the cluster could be looked through."""
    fields = {"looked_through_at": now} if seen else {}
    Pace.objects.filter(pk=cluster_id).update(looked_through_until=None, **fields)


def _of(cluster: Cluster) -> Pace:
    """The row as it was read with the cluster; one that is not there yet holds nothing against anybody."""
    try:
        return cluster.pace
    except Pace.DoesNotExist:
        return Pace(cluster=cluster)


def _ensure(cluster_id: int) -> None:
    """Make the cluster's row if there is none yet."""
    if not Pace.objects.filter(pk=cluster_id).exists():
        Pace.objects.bulk_create([Pace(cluster_id=cluster_id)], ignore_conflicts=True)
