"""Everything that is settled on a cluster is looked at by one list of each kind, and only what differs is worked on."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.sync import keep_in_step
from connectors import kubernetes as connector
from fleet.models import Cluster
from provisioning import reconcile
from provisioning.controller import acquire
from provisioning.drift import cluster_sweep
from provisioning.models import ClusterThrottle, Tenancy
from tests import factories
from tests.provisioning.conftest import Place

QUOTA, QUEUE = ("v1", "ResourceQuota"), ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
NAMESPACE, CONFIG = ("v1", "Namespace"), ("v1", "ConfigMap")


@pytest.fixture
def both(place: Place) -> list[Tenancy]:
    """Two tenancies that are true, a minute ago."""
    cluster_sweep.forget(place.cluster.pk)
    made = [place.tenancy, factories.tenancy(on=place.cluster)]
    for tenancy in made:
        assert reconcile.reconcile(tenancy.pk, now=place.now)
    place.later(seconds=60)
    place.kubernetes.cluster.requests.clear()
    return [Tenancy.objects.get(pk=tenancy.pk) for tenancy in made]


def look(place: Place) -> list[int]:
    return list(cluster_sweep.sweep(place.cluster.pk, now=place.now))


def kinds(of: Tenancy) -> int:
    return len({line["kind"] for line in of.objects_seen})


def test_what_is_as_wanted_costs_one_list_a_kind_and_no_write(
    place: Place, both: list[Tenancy]
) -> None:
    assert look(place) == []
    # And one that asks which cluster it is.
    assert dict(place.kubernetes.cluster.requests) == {"reads": kinds(both[0]) + 1}
    for tenancy in Tenancy.objects.all():
        assert (tenancy.last_looked_at, tenancy.is_settled) == (place.time, True)
        assert tenancy.requeue_at == place.time + timedelta(seconds=60)
        assert tenancy.used_at == place.time


def test_a_dashboard_that_is_no_longer_wanted_goes_and_does_not_come_back(
    place: Place, both: list[Tenancy]
) -> None:
    dashboard = place.kubernetes.get(
        CONFIG, "quartermaster-dashboard", place.tenancy.namespace
    )
    assert dashboard is not None
    Cluster.objects.filter(pk=place.cluster.pk).update(dashboards=False)
    keep_in_step(now=place.now)
    assert reconcile.reconcile(place.tenancy.pk, now=place.now) == 1
    assert (
        place.kubernetes.get(CONFIG, "quartermaster-dashboard", place.tenancy.namespace)
        is None
    )
    assert reconcile.reconcile(both[1].pk, now=place.now) == 1
    place.later(seconds=60)
    del dashboard["metadata"]["resourceVersion"]
    place.kubernetes.create(dashboard)
    assert look(place) == [place.tenancy.pk]
    assert reconcile.reconcile(place.tenancy.pk, now=place.now) == 1
    assert (
        place.kubernetes.get(CONFIG, "quartermaster-dashboard", place.tenancy.namespace)
        is None
    )


def test_looking_again_finds_the_same_and_notices_what_changed_since(
    place: Place, both: list[Tenancy]
) -> None:
    assert look(place) == []
    place.later(seconds=60)
    assert look(place) == []
    place.kubernetes.patch(
        QUOTA, "team-quota", both[1].namespace, {"spec": {"hard": {"pods": "1"}}}
    )
    place.later(seconds=60)
    assert look(place) == [both[1].pk]
    assert Tenancy.objects.get(pk=both[1].pk).requeue_at == place.time
    assert reconcile.reconcile(both[1].pk, now=place.now) == 1
    place.later(seconds=60)
    assert look(place) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "again", [False, True], ids=["at the first look", "at a later one"]
)
@pytest.mark.parametrize(
    "drift", ["deleted", "changed", "label gone", "left over", "going"]
)
def test_every_kind_of_drift_is_noticed(
    place: Place, both: list[Tenancy], drift: str, *, again: bool
) -> None:
    if again:
        look(place)
    cluster, namespace = place.kubernetes, both[0].namespace
    if drift == "deleted":
        cluster.delete(QUOTA, "team-quota", namespace)
    elif drift == "changed":
        cluster.patch(QUEUE, namespace, None, {"spec": {"stopPolicy": "Hold"}})
    elif drift == "label gone":
        cluster.patch(
            NAMESPACE,
            namespace,
            None,
            {"metadata": {"labels": {"quartermaster.io/tenancy": None}}},
        )
    elif drift == "left over":
        mine = (cluster.get(QUOTA, "team-quota", namespace) or {})["metadata"]["labels"]
        cluster.create(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "second", "namespace": namespace, "labels": mine},
            }
        )
    else:
        cluster.patch(
            QUOTA,
            "team-quota",
            namespace,
            {"metadata": {"finalizers": ["example.com/hold"]}},
        )
        cluster.delete(QUOTA, "team-quota", namespace)
    place.later(seconds=60)
    assert look(place) == [both[0].pk]


def test_what_the_queues_say_is_in_use_is_kept_with_its_time(
    place: Place, both: list[Tenancy]
) -> None:
    Tenancy.objects.update(used={"a100": 9}, used_at=None)
    look(place)
    assert place.row.used == {"a100": 0, "h100": 0}
    assert place.row.used_at == place.time


@pytest.mark.slow
def test_queries_are_as_many_for_two_tenancies_as_for_six(
    place: Place, both: list[Tenancy]
) -> None:
    def queries() -> int:
        place.later(seconds=60)
        with CaptureQueriesContext(connection) as seen:
            assert look(place) == []
        return len(seen)

    look(place)
    few = queries()
    for _ in range(4):
        reconcile.reconcile(factories.tenancy(on=place.cluster).pk, now=place.now)
    Tenancy.objects.update(used={})
    queries()
    assert queries() == few


def test_what_somebody_works_on_meanwhile_is_left_as_they_leave_it(
    place: Place, both: list[Tenancy]
) -> None:
    def meanwhile() -> None:
        acquire(both[0].pk, now=place.time)
        Tenancy.objects.filter(pk=both[1].pk).update(generation=2)

    clock = iter([None, meanwhile])

    def now() -> object:
        """Just before the look is written down."""
        if act := next(clock, None):
            act()
        return place.time

    booked = dict(Tenancy.objects.values_list("pk", "last_looked_at"))
    assert cluster_sweep.sweep(place.cluster.pk, now=now) == []  # type: ignore[arg-type]
    assert dict(Tenancy.objects.values_list("pk", "last_looked_at")) == booked


def test_a_pass_that_ended_meanwhile_is_newer_than_the_look(
    place: Place, both: list[Tenancy]
) -> None:
    ended = place.time + timedelta(seconds=1)
    clock = iter(
        [None, lambda: Tenancy.objects.update(last_looked_at=ended, requeue_at=ended)]
    )

    def now() -> object:
        if act := next(clock, None):
            act()
        return place.time

    assert cluster_sweep.sweep(place.cluster.pk, now=now) == []  # type: ignore[arg-type]
    assert set(Tenancy.objects.values_list("last_looked_at", "requeue_at")) == {
        (ended, ended)
    }


def test_what_is_not_settled_or_not_ours_is_not_looked_at(
    place: Place, both: list[Tenancy]
) -> None:
    Tenancy.objects.filter(pk=both[0].pk).update(is_true=False)
    place.kubernetes.patch(
        QUOTA, "team-quota", both[0].namespace, {"spec": {"hard": {"pods": "1"}}}
    )
    place.kubernetes.create(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "theirs", "labels": {"quartermaster.io/tenancy": "x"}},
        }
    )
    assert look(place) == []
    assert Tenancy.objects.get(pk=both[1].pk).last_looked_at == place.time


@pytest.mark.parametrize(
    "answer", [{"status": 503, "retry_after": 40}, {"status": 500}]
)
def test_a_cluster_that_does_not_answer_is_looked_at_later_and_what_was_true_stays_so(
    place: Place, both: list[Tenancy], answer: dict[str, Any]
) -> None:
    place.kubernetes.fail("/api", **answer)
    assert look(place) == []
    wait = timedelta(seconds=answer.get("retry_after", 15))
    assert set(Tenancy.objects.values_list("is_true", "requeue_at")) == {
        (True, place.time + wait)
    }
    throttle = ClusterThrottle.objects.get()
    assert (throttle.claimed_until, throttle.swept_at) == (None, None)


def test_a_cluster_that_keeps_waiting_is_left_alone_by_everybody(
    place: Place, both: list[Tenancy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "TIMEOUT", (1.0, 0.1))
    monkeypatch.setattr("reconciling.breaker.LONG_SECONDS", 0.05)
    place.kubernetes.fail("/api", hang=0.3)
    look(place)
    until = ClusterThrottle.objects.get().open_until
    assert until is not None
    assert timedelta(seconds=4) < until - place.time <= timedelta(seconds=5)


def test_a_refusal_is_shown_by_each_tenancy(place: Place, both: list[Tenancy]) -> None:
    place.kubernetes.fail("/limitranges", status=403)
    assert set(look(place)) == {tenancy.pk for tenancy in both}


def test_a_kueue_that_is_too_old_is_worked_on_no_more(
    place: Place, both: list[Tenancy]
) -> None:
    Cluster.objects.update(kueue_version="v0.15.1")
    assert set(look(place)) == {tenancy.pk for tenancy in both}
    assert reconcile.reconcile(both[0].pk, now=place.now) == 0
    assert (
        place.row.ready["message"]
        == "Kueue v0.15.1 is too old: the portal needs 0.16 or newer."
    )
    assert dict(place.kubernetes.cluster.requests) == {}


def test_two_do_not_sweep_a_cluster_at_once(place: Place, both: list[Tenancy]) -> None:
    ClusterThrottle.objects.update(claimed_until=place.time + timedelta(seconds=1))
    assert look(place) == []
    assert dict(place.kubernetes.cluster.requests) == {}


def test_pages_that_went_stale_are_read_again(
    place: Place, both: list[Tenancy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "PAGE", 1)
    place.kubernetes.fail("/limitranges.*continue", times=1, status=410)
    assert look(place) == []


def test_a_pass_without_budget_is_booked_again_and_nothing_is_wrong_with_it(
    place: Place,
) -> None:
    Cluster.objects.update(writes_per_second=1)
    assert place.reconcile()
    other = factories.tenancy(on=place.cluster)
    Tenancy.objects.filter(pk=place.tenancy.pk).update(
        generation=2, spec={**place.row.spec, "cost_centre": "CC-other"}
    )
    assert place.reconcile() == 0
    row = place.row
    assert (row.lease_until, row.slot, row.attempts, row.is_true) == (
        None,
        None,
        0,
        True,
    )
    assert timedelta(seconds=5) < row.requeue_at - place.time < timedelta(seconds=30)
    assert reconcile.reconcile(other.pk, now=place.now) == 0
    place.later(seconds=60)
    assert place.reconcile()
