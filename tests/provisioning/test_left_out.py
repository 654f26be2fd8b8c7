"""Whoever ends a pass looks for the next tenancy where one was left out, and nowhere else."""

import base64
import json
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from redis import Redis

from fleet.models import Cluster
from provisioning.controller import acquire
from provisioning.models import Tenancy
from provisioning.tasks import reconcile_tenancy, sweep
from tests import factories
from web import counters

pytestmark = pytest.mark.django_db


@pytest.fixture
def broker() -> Iterator[Redis]:
    with Redis.from_url(settings.CELERY["broker_url"]) as broker:
        yield broker


def enqueued(broker: Redis) -> list[int]:
    """The tenancies of which messages tell, taken from the broker."""
    taken: Any = broker.lrange("celery", 0, -1)
    broker.delete("celery")
    return [
        json.loads(base64.b64decode(json.loads(raw)["body"]))[0][0]
        for raw in reversed(taken)
    ]


def wanted(number: int, *, most_at_once: int) -> list[Tenancy]:
    """So many tenancies of one cluster that wait for a worker, the first for longest."""
    here: Cluster = factories.cluster(most_at_once=most_at_once)
    made = [factories.tenancy(on=here) for _ in range(number)]
    since = timezone.now() - timedelta(hours=1)
    for order, tenancy in enumerate(made):
        Tenancy.objects.filter(pk=tenancy.pk).update(
            requeue_at=since + timedelta(seconds=order)
        )
    return made


def test_what_found_no_place_is_enqueued_by_whoever_frees_one(broker: Redis) -> None:
    first, second = wanted(2, most_at_once=1)
    holder = acquire(first.pk, now=timezone.now())
    assert holder is not None
    reconcile_tenancy(second.pk)
    assert enqueued(broker) == []
    assert holder.release(requeue_at=timezone.now())
    reconcile_tenancy(first.pk)
    assert enqueued(broker) == [second.pk]


def test_nobody_enqueues_what_has_a_message_of_its_own(broker: Redis) -> None:
    first, _ = wanted(2, most_at_once=2)
    reconcile_tenancy(first.pk)
    assert enqueued(broker) == []


def test_what_a_sweep_leaves_out_is_enqueued_by_whoever_ends_a_pass(
    broker: Redis,
) -> None:
    first, second, third = wanted(3, most_at_once=1)
    sweep()
    assert enqueued(broker) == [first.pk, second.pk]
    reconcile_tenancy(first.pk)
    assert enqueued(broker) == [second.pk]
    reconcile_tenancy(second.pk)
    assert enqueued(broker) == [third.pk]


def test_while_the_cache_is_away_whoever_ends_a_pass_looks_for_the_next(
    broker: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = wanted(2, most_at_once=2)
    monkeypatch.setattr(counters.breaker, "open_until", time.monotonic() + 60)
    reconcile_tenancy(first.pk)
    assert enqueued(broker) == [second.pk]
