"""Which tenancies and clusters are to be worked on next; clusters take turns."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from fleet.models import Cluster
from provisioning import throttle
from provisioning.models import Tenancy

# A sweep fills the queue up to this many messages, and adds a few where it is full. More would be mostly about what has
# a message already, and delay whatever changes meanwhile: each is a task, though the tenancy is true by then.
MAX_WAITING = 50
MIN_ENQUEUED = 10


def next_due(after: int, *, now: datetime) -> int | None:
    """The tenancy that has waited longest on the cluster of this one and is to be worked on by itself."""
    same = Tenancy.objects.filter(pk=after).values("cluster")
    due = Tenancy.objects.due(now).filter(cluster__in=same).exclude(pk=after)
    return (
        _by_themselves(due).order_by("requeue_at").values_list("pk", flat=True).first()
    )


def in_turns(*, now: datetime, waiting: int = 0) -> Sequence[int]:
    """Tenancies to enqueue, clusters taking turns, each with twice what it may be worked on at once.

    A cluster with ten thousand that are due comes no more often than one with three. The more messages wait already,
    the fewer are added, but one of each cluster in any case: who is left out is found by whoever ends a pass on its
    cluster, or by a later sweep.
    """
    turn = Window(
        RowNumber(), partition_by=F("cluster"), order_by=F("requeue_at").asc()
    )
    due = _by_themselves(Tenancy.objects.due(now)).annotate(turn=turn)
    rows = due.filter(turn__lte=throttle.MAX_CONCURRENT * 2).order_by(
        "turn", "requeue_at"
    )
    room = max(MAX_WAITING - waiting, MIN_ENQUEUED)
    found = enumerate(rows.values_list("pk", "turn"))
    return [pk for place, (pk, turn) in found if turn == 1 or place < room]


def are_all(enqueued: Sequence[int], *, now: datetime) -> bool:
    """Whether nothing is due but these."""
    return (
        not _by_themselves(Tenancy.objects.due(now)).exclude(pk__in=enqueued).exists()
    )


def clusters_to_sweep(*, now: datetime) -> Sequence[int]:
    """Clusters with converged tenancies that are due, which nobody sweeps and nobody leaves alone."""
    due = Tenancy.objects.due(now).converged().filter(cluster=OuterRef("pk"))
    busy = Q(throttle__claimed_until__gt=now) | Q(throttle__open_until__gt=now)
    standing = Cluster.objects.not_written_off()
    rows = standing.filter(Exists(due), delivery=Cluster.Delivery.APPLY).exclude(busy)
    return list(rows.order_by("throttle__swept_at", "pk").values_list("pk", flat=True))


def _by_themselves(due: QuerySet[Tenancy]) -> QuerySet[Tenancy]:
    """Those that a pass of their own looks at: what has converged is swept with its whole cluster."""
    swept = Q(
        is_true=True,
        observed_generation=F("generation"),
        cluster__delivery=Cluster.Delivery.APPLY,
        cluster__written_off_at=None,
    )
    return due.exclude(swept)
