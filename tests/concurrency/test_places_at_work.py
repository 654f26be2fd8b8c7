"""Workers that want a place at work on one cluster, or its budget, at the same moment."""

from functools import partial

import pytest
from django.utils import timezone

from provisioning import throttle
from provisioning.controller import acquire
from provisioning.models import ClusterThrottle, Tenancy
from tests import factories
from tests.concurrency.together import together

WORKERS, ROUNDS = 8, 5


@pytest.mark.slow
@pytest.mark.usefixtures("transactional_db")
def test_as_many_workers_as_there_are_places_each_find_one_at_once() -> None:
    cluster = factories.cluster(most_at_once=WORKERS)
    tenancies = [factories.tenancy(on=cluster).pk for _ in range(WORKERS)]
    for _ in range(ROUNDS):
        Tenancy.objects.update(lease_until=None, slot=None)
        now = timezone.now()
        together(*(partial(acquire, tenancy, now=now) for tenancy in tenancies))
        assert set(Tenancy.objects.values_list("slot", flat=True)) == set(
            range(WORKERS)
        )


@pytest.mark.usefixtures("transactional_db")
def test_the_first_writes_to_a_cluster_are_paid_for_by_all_who_come_at_once() -> None:
    cluster = factories.cluster(writes_per_second=1000)
    refused = list[object]()

    def work() -> None:
        wait = throttle.reserve(cluster, 10, on_boarding=True, now=timezone.now())
        if wait is not None:
            refused.append(wait)

    for _ in range(ROUNDS):
        ClusterThrottle.objects.all().delete()
        together(*[work] * WORKERS)
        assert refused == []
