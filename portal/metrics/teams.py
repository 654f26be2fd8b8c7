"""Figures of what workers make true for teams, and of what they gave up."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db.models import CharField, QuerySet, Value

from capacity.models import (
    ModelAccount,
    Orphan,
    QuotaIncrease,
    RegistryAccess,
    Reservation,
)
from notebooks.models import NotebookServer
from notices.models import Delivery
from portal.metrics.families import Family, age_of
from portal.metrics.moment import Moment
from provisioning.models import Tenancy
from workloads.models import Run


def tenancies(moment: Moment) -> Iterator[Family]:
    """Whose desired state is not true on its cluster yet."""
    since = defaultdict[int, list[datetime]](list)
    rows = Tenancy.objects.not_true().order_by()
    # Without what is wanted of each and what was seen of it, which is long.
    for row in rows.only("cluster", "changed_at", "created_at", "conditions"):
        since[row.cluster_id].append(row.not_true_since)
    yield moment.by_cluster(
        "quartermaster_tenancies_not_true",
        "Tenancies whose desired state is not true on the cluster.",
        lambda one: len(since[one.pk]),
    )
    yield moment.by_cluster(
        "quartermaster_tenancies_oldest_not_true_seconds",
        "For how long the first of these tenancies has not been true, in seconds; 0 where all are.",
        lambda one: age_of(min(since[one.pk], default=None), now=moment.now),
    )


def parked(moment: Moment) -> Iterator[Family]:
    """What is tried no more until a person has it tried again."""
    first, *others = (
        rows.order_by().values_list(Value(kind, CharField()))
        for kind, rows in parked_rows().items()
    )
    counted = dict.fromkeys(parked_rows(), 0)
    for (kind,) in first.union(*others, all=True):
        counted[kind] += 1
    yield Family(
        name="quartermaster_parked_rows",
        words="What workers gave up, by kind, until a person sees to it.",
        labels=["kind"],
        samples={(kind,): number for kind, number in counted.items()},
    )


def parked_rows() -> Mapping[str, "QuerySet[Any]"]:
    """What is parked, by kind: of everything that workers work on, and that is not over."""
    return {
        "model_account": ModelAccount.objects.in_azure().parked(),
        "notebook": NotebookServer.objects.live().parked(),
        "notice": Delivery.objects.parked(),
        "orphan": Orphan.objects.parked(),
        "quota_increase": QuotaIncrease.objects.in_progress().parked(),
        "registry_access": RegistryAccess.objects.unfinished().parked(),
        "reservation": Reservation.objects.in_azure().parked(),
        "run": Run.objects.live().parked(),
        "tenancy": Tenancy.objects.present().parked(),
    }
