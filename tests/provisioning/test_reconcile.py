"""A tenancy becomes true, stays true, and what stands in the way is said."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings

from allocations.changes import refresh
from audit.models import Event
from connectors import kubernetes as connector
from connectors.patience import MOST_TRIES
from fleet.models import Cluster
from provisioning import reconcile
from provisioning.controller import acquire
from provisioning.delivery import kubeconfig_path
from provisioning.desired.manifests import tenancy_objects
from provisioning.desired.plan import Key, first_difference
from provisioning.models import Tenancy
from reconciling import lease
from reconciling.lease import LeaseLost
from tests import factories
from tests.provisioning.conftest import Place
from tests.provisioning.specs import SAMPLE

QUOTA, QUEUE = ("v1", "ResourceQuota"), ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
NAMESPACE, LIMITS = ("v1", "Namespace"), ("v1", "LimitRange")
KINDS = [manifest["kind"] for manifest in tenancy_objects(SAMPLE)]
ALL, BEFORE_QUEUE = len(KINDS), KINDS.index("ClusterQueue")
QUEUE_FAILED = (
    ["true"] * BEFORE_QUEUE + ["failed"] + ["waiting"] * (ALL - BEFORE_QUEUE - 1)
)
WEBHOOK_DOWN = (
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Internal error occurred: failed '
    'calling webhook \\"mclusterqueue.kb.io\\": failed to call webhook: Post \\"https://kueue-webhook-service.'
    'kueue-system.svc:443/mutate\\": dial tcp 10.0.0.1:443: connect: connection refused","reason":"InternalError",'
    '"code":500}'
)


def missing(place: Place) -> list[str]:
    """What of the objects does not stand on the cluster as wanted."""
    wrong = []
    for manifest in tenancy_objects(place.row.desired):
        key = Key.of(manifest)
        found = place.kubernetes.get(key.ref, key.name, key.namespace or None)
        difference = (
            "is missing" if found is None else first_difference(manifest, found)
        )
        wrong += [f"{key.kind} {key.name} {difference}"] if difference else []
    return wrong


def versions(place: Place) -> dict[Key, str]:
    keys = [Key.of(manifest) for manifest in tenancy_objects(place.row.desired)]
    found = {
        key: place.kubernetes.get(key.ref, key.name, key.namespace or None)
        for key in keys
    }
    return {
        key: live["metadata"]["resourceVersion"] for key, live in found.items() if live
    }


def newest_event(place: Place) -> Event:
    return Event.objects.about("tenancy", place.tenancy.pk).latest("seq")


def test_every_object_becomes_true_and_a_second_pass_writes_nothing(
    place: Place,
) -> None:
    assert place.reconcile() == ALL
    row = place.row
    assert missing(place) == []
    assert (row.is_settled, row.true_since, row.last_looked_at) == (
        True,
        place.time,
        place.time,
    )
    assert (row.lease_until, row.attempts, row.requeue_at) == (
        None,
        0,
        place.time + timedelta(seconds=60),
    )
    assert row.conditions == [
        {
            "type": "Ready",
            "status": "True",
            "reason": "AllObjectsTrue",
            "message": "Every object stands as wanted.",
            "since": place.time.isoformat(),
        }
    ]
    assert place.states() == ["true"] * ALL
    event = newest_event(place)
    assert (event.kind, event.details) == (
        "tenancy.converged",
        {"generation": 1, "writes": ALL},
    )
    written = place.kubernetes.writes
    assert place.reconcile() == 0
    assert place.kubernetes.writes == written == ALL
    assert newest_event(place).seq == event.seq


def test_more_gpus_write_the_quota_and_the_queue_alone(place: Place) -> None:
    place.reconcile()
    before = versions(place)
    factories.request(place.ada, place.row, place.a100, gpus=2)
    assert (place.row.is_settled, place.reconcile()) == (False, 2)
    after = versions(place)
    assert {key.kind for key in after if after[key] != before[key]} == {
        "ResourceQuota",
        "ClusterQueue",
    }
    quota = place.kubernetes.get(QUOTA, "team-quota", place.tenancy.namespace)
    assert quota is not None
    assert quota["spec"]["hard"]["requests.nvidia.com/gpu"] == "2"
    assert (place.row.is_settled, place.reconcile()) == (True, 0)


def test_a_flavor_taken_off_the_cluster_leaves_the_queue(place: Place) -> None:
    place.reconcile()
    place.h100.delete()
    refresh(place.row, actor=place.ada.as_actor(), now=place.time)
    assert place.reconcile() == 1
    queue = place.kubernetes.get(QUEUE, place.tenancy.namespace)
    assert queue is not None
    [group] = queue["spec"]["resourceGroups"]
    assert [flavor["name"] for flavor in group["flavors"]] == [
        "quartermaster-cpu",
        "a100",
    ]


def test_what_somebody_changed_by_hand_is_put_right(place: Place) -> None:
    place.reconcile()
    place.kubernetes.patch(
        QUOTA,
        "team-quota",
        place.tenancy.namespace,
        {"spec": {"hard": {"requests.nvidia.com/gpu": "64"}}},
    )
    assert missing(place) == [
        "ResourceQuota team-quota .spec.hard.requests.nvidia.com/gpu is '64', should be '0'"
    ]
    assert place.reconcile() == 1
    assert missing(place) == []
    assert (newest_event(place).kind, newest_event(place).details["writes"]) == (
        "tenancy.drift_repaired",
        1,
    )
    assert place.reconcile() == 0


def test_what_somebody_deleted_is_made_again(place: Place) -> None:
    place.reconcile()
    place.kubernetes.delete(LIMITS, "team-defaults", place.tenancy.namespace)
    place.kubernetes.delete(QUEUE, place.tenancy.namespace)
    assert len(missing(place)) == 2
    while missing(place):
        place.later(seconds=61)
        assert place.reconcile() is not None
    assert place.row.is_settled


def test_what_others_add_is_left_alone(place: Place) -> None:
    place.reconcile()
    place.kubernetes.patch(
        NAMESPACE,
        place.tenancy.namespace,
        None,
        {"metadata": {"annotations": {"backup": "daily"}}},
    )
    assert place.reconcile() == 0


@pytest.mark.parametrize("marks", [{}, {"app.kubernetes.io/managed-by": "Helm"}])
def test_a_namespace_that_is_not_ours_is_said_and_not_touched(
    place: Place, marks: dict[str, str]
) -> None:
    name = place.tenancy.namespace
    place.kubernetes.create(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": marks},
        }
    )
    before, written = place.kubernetes.get(NAMESPACE, name), place.kubernetes.writes
    assert place.reconcile() == 0
    assert place.kubernetes.get(NAMESPACE, name) == before
    assert place.kubernetes.writes == written
    assert place.row.ready["reason"] == "Refused"
    assert (
        place.row.ready["message"]
        == f"Namespace {name} exists and is not ours; it was not touched."
    )
    assert place.states() == ["failed"] + ["waiting"] * (ALL - 1)
    assert newest_event(place).kind == "tenancy.failed"


def test_another_tenancys_queue_is_not_taken_over(place: Place) -> None:
    marks = {
        "app.kubernetes.io/managed-by": "quartermaster",
        "quartermaster.io/tenancy": "999999",
    }
    queue = {
        "apiVersion": QUEUE[0],
        "kind": QUEUE[1],
        "metadata": {"name": place.tenancy.namespace, "labels": marks},
        "spec": {"namespaceSelector": {}},
    }
    place.kubernetes.create(queue)
    assert place.reconcile() == BEFORE_QUEUE
    assert "exists and is not ours" in place.row.ready["message"]
    assert place.states() == QUEUE_FAILED


def test_a_namespace_on_its_way_out_is_waited_for(place: Place) -> None:
    place.reconcile()
    claim = {"metadata": {"finalizers": ["example.com/hold"]}}
    place.kubernetes.patch(
        ("v1", "PersistentVolumeClaim"), "datasets", place.tenancy.namespace, claim
    )
    place.kubernetes.delete(NAMESPACE, place.tenancy.namespace)
    place.later(seconds=61)
    assert place.reconcile() == 0
    assert place.row.ready["reason"] == "WillTryAgain"
    assert (
        place.row.ready["message"]
        == f"Namespace {place.tenancy.namespace} is being deleted."
    )


FAULTS: dict[str, tuple[dict[str, Any], str, str, float, float]] = {
    "refused": ({"status": 403}, "Refused", "403 Forbidden", 300, 300),
    "not known": ({"status": 401}, "Refused", "401 Unauthorized", 300, 300),
    "busy": ({"status": 429, "retry_after": 17}, "WillTryAgain", "429", 17, 17),
    "busy for a moment": (
        {"status": 429, "retry_after": 1},
        "WillTryAgain",
        "429",
        1.0,
        2.0,
    ),
    "down": ({"status": 503}, "WillTryAgain", "503 ServiceUnavailable", 1.0, 2.0),
    "webhook down": (
        {"status": 500, "body": WEBHOOK_DOWN},
        "WillTryAgain",
        "failed calling webhook",
        1.0,
        2.0,
    ),
    "hanging": ({"hang": 0.6}, "WillTryAgain", "timed out", 1.0, 2.0),
    "cut": (
        {"where": "namespaces/kube-system$", "drop_after": 5},
        "WillTryAgain",
        "GET /api/v1/namespaces/kube-system",
        1.0,
        2.0,
    ),
    # A write is cut, and so is each look at what it left; that the namespace is not there yet cannot be cut.
    "cut for long": (
        {"where": "namespaces/qm-[^/]+$", "drop_after": 5, "times": 2 + MOST_TRIES},
        "WillTryAgain",
        "GET /api/v1/namespaces/qm-",
        1.0,
        2.0,
    ),
    "no JSON": (
        {"status": 502, "body": "<html>Bad gateway</html>"},
        "WillTryAgain",
        "Bad gateway",
        1.0,
        2.0,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_failure_is_said_and_tried_again_in_its_time(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, reason, words, soonest, latest = FAULTS[name]
    monkeypatch.setattr(connector, "TIMEOUT", (1.0, 0.3))
    place.kubernetes.fail(**{"times": MOST_TRIES, **fault})
    assert place.reconcile() == 0
    row = place.row
    wait = (row.requeue_at - place.time).total_seconds()
    assert (row.ready["status"], row.ready["reason"]) == ("False", reason)
    assert words in row.ready["message"]
    assert soonest <= wait <= latest
    assert (row.lease_until, row.is_true, row.attempts) == (None, False, 1)
    assert newest_event(place).kind == "tenancy.failed"


def test_each_failure_in_a_row_waits_longer_and_at_most_about_a_minute(
    place: Place,
) -> None:
    waits = []
    for _ in range(9):
        place.kubernetes.fail(times=MOST_TRIES, status=503)
        place.reconcile()
        waits.append((place.row.requeue_at - place.time).total_seconds())
        place.later(minutes=5)
    steps = [2, 4, 8, 16, 32, 60, 60, 60, 60]
    assert all(
        0.5 * step <= wait <= step for step, wait in zip(steps, waits, strict=True)
    )


def test_kueue_being_down_holds_up_the_rest_and_costs_no_write_twice(
    place: Place,
) -> None:
    place.kubernetes.fail(
        "clusterqueues", "PATCH", status=500, body=WEBHOOK_DOWN, times=MOST_TRIES
    )
    assert place.reconcile() == BEFORE_QUEUE
    assert place.states() == QUEUE_FAILED
    assert "failed calling webhook" in place.row.objects_seen[BEFORE_QUEUE]["message"]
    place.later(seconds=5)
    assert place.reconcile() == ALL - BEFORE_QUEUE
    assert place.row.is_settled


def test_a_write_whose_answer_was_lost_is_found_done(place: Place) -> None:
    place.kubernetes.fail("resourcequotas", "PATCH", drop_after=10, times=1)
    assert place.reconcile() == ALL
    assert (missing(place), place.kubernetes.writes) == ([], ALL)
    assert place.row.is_settled
    assert not place.kubernetes.cluster.faults.waiting
    place.later(seconds=5)
    assert (place.reconcile(), place.kubernetes.writes) == (0, ALL)


def test_a_write_that_nobody_could_look_at_is_found_done_by_the_next_pass(
    place: Place,
) -> None:
    place.kubernetes.fail("resourcequotas", "PATCH", drop_after=10, times=1)
    place.kubernetes.fail(
        "resourcequotas/[^/]+$", "GET", drop_after=10, times=MOST_TRIES
    )
    assert place.reconcile() == 1
    assert (place.row.is_settled, place.row.ready["reason"]) == (False, "WillTryAgain")
    assert not place.kubernetes.cluster.faults.waiting
    place.later(seconds=5)
    assert place.reconcile() == ALL - 2
    assert (missing(place), place.kubernetes.writes) == ([], ALL)


def test_a_failure_keeps_its_time_and_is_told_once(place: Place) -> None:
    began = place.time.isoformat()
    for _ in range(3):
        place.kubernetes.fail(times=1, status=403)
        place.reconcile()
        place.later(minutes=6)
    assert place.row.ready["since"] == began
    assert {line["since"] for line in place.row.objects_seen} == {began}
    assert Event.objects.filter(kind="tenancy.failed").count() == 1
    place.reconcile()
    assert place.row.ready["since"] == place.time.isoformat()


def test_an_object_keeps_the_time_since_when_it_is_true(place: Place) -> None:
    place.reconcile()
    began = place.time
    place.later(minutes=2)
    factories.request(place.ada, place.row, place.a100, gpus=1)
    place.reconcile()
    assert {line["since"] for line in place.row.objects_seen} == {began.isoformat()}
    assert (place.row.true_since, place.row.ready["since"]) == (
        place.time,
        began.isoformat(),
    )


def test_a_failure_after_success_does_not_forget_what_was_true(place: Place) -> None:
    place.reconcile()
    place.kubernetes.fail("resourcequotas", "GET", status=503, times=MOST_TRIES)
    place.later(minutes=1)
    place.reconcile()
    row = place.row
    assert (row.observed_generation, row.is_true, row.is_settled) == (1, False, False)
    assert place.reconcile() == 0
    assert place.row.is_settled


class Stealing:
    """A clock that stands still for as long as a lease holds when it is read for the n-th time: another takes over."""

    def __init__(self, place: Place, at: int) -> None:
        self.place, self.left = place, at

    def __call__(self) -> Any:
        self.left -= 1
        if self.left == 0:
            self.place.later(seconds=lease.SECONDS)
            assert acquire(self.place.tenancy.pk, now=self.place.time) is not None
        return self.place.time


@pytest.mark.parametrize(("at", "written"), [(2, 0), (4, 1), (12, 5)])
def test_a_worker_whose_lease_was_taken_writes_no_more_and_says_nothing(
    place: Place, at: int, written: int
) -> None:
    assert reconcile.reconcile(place.tenancy.pk, now=Stealing(place, at)) == written
    row = place.row
    assert place.kubernetes.writes == written
    assert (row.lease_no, row.conditions, row.objects_seen, row.is_true) == (
        2,
        [],
        [],
        False,
    )
    assert not Event.objects.filter(
        kind__startswith="tenancy.", actor_kind="portal"
    ).exists()


def test_a_stale_workers_status_is_refused(place: Place) -> None:
    place.reconcile()
    before = place.row
    place.later(minutes=1)
    # Every object is kept, and the reading after those is for the status.
    assert reconcile.reconcile(place.tenancy.pk, now=Stealing(place, ALL + 2)) == 0
    row = place.row
    assert (row.last_looked_at, row.lease_no) == (
        before.last_looked_at,
        before.lease_no + 2,
    )
    assert row.lease_until is not None


def test_only_the_newest_lease_writes(place: Place) -> None:
    first = acquire(place.tenancy.pk, now=place.time)
    assert first is not None
    assert acquire(place.tenancy.pk, now=place.time + timedelta(seconds=4)) is None
    assert place.reconcile() is None
    second = acquire(place.tenancy.pk, now=place.time + timedelta(seconds=5))
    assert second is not None
    assert second.number == first.number + 1
    assert (first.renew(now=place.time), first.write(is_true=True)) == (False, False)
    assert second.renew(now=place.time)
    assert not place.row.is_true


@pytest.mark.parametrize(("seconds", "asked"), [(0, 0), (0.9, 0), (1, 1), (-1, 1)])
def test_who_holds_a_lease_asks_again_after_a_second_and_when_a_clock_went_back(
    place: Place, django_assert_num_queries: Any, seconds: float, asked: int
) -> None:
    held = acquire(place.tenancy.pk, now=place.time)
    assert held is not None
    place.later(seconds=seconds)
    with django_assert_num_queries(asked):
        held.check(now=place.time)
    with django_assert_num_queries(0):
        held.check(now=place.time)


def test_a_clock_that_stands_still_does_not_make_a_lease_last(place: Place) -> None:
    held = acquire(place.tenancy.pk, now=place.time)
    assert held is not None
    assert acquire(place.tenancy.pk, now=place.time + timedelta(seconds=5)) is not None
    held.ticks -= 1
    with pytest.raises(LeaseLost):
        held.check(now=place.time)


def test_a_lease_that_ends_without_a_status_is_tried_later_each_time(
    place: Place,
) -> None:
    waits = []
    for _ in range(9):
        # Between them there was a pass that said how it ended: what nobody comes back from is parked (test_parking).
        Tenancy.objects.filter(pk=place.tenancy.pk).update(unfinished=0)
        assert acquire(place.tenancy.pk, now=place.time) is not None
        waits.append((place.row.requeue_at - place.time).total_seconds())
        place.later(minutes=10)
    assert waits == [5, 5, 10, 20, 40, 80, 160, 300, 300]


def test_a_change_during_the_pass_is_looked_at_at_once(place: Place) -> None:
    readings = 0

    def now() -> Any:
        nonlocal readings
        readings += 1
        if readings == 5:
            factories.request(place.ada, place.row, place.a100, gpus=2)
        return place.time

    assert reconcile.reconcile(place.tenancy.pk, now=now) == ALL
    row = place.row
    assert (row.generation, row.observed_generation, row.is_settled) == (2, 1, False)
    assert row.requeue_at == place.time
    assert place.reconcile() == 2
    assert place.row.is_settled


def test_nothing_wanted_yet_is_nothing_done(place: Place) -> None:
    Tenancy.objects.filter(pk=place.tenancy.pk).update(generation=0)
    assert place.reconcile() == 0
    row = place.row
    assert (row.lease_until, row.conditions, row.ready["status"]) == (
        None,
        [],
        "Unknown",
    )
    assert place.kubernetes.cluster.requests == {}


def test_what_is_first_wanted_while_a_worker_sees_that_nothing_is_does_not_wait_for_a_minute(
    place: Place,
) -> None:
    row = Tenancy.objects.filter(pk=place.tenancy.pk)
    row.update(generation=0)
    looks = 0

    def now() -> datetime:
        nonlocal looks
        looks += 1
        if looks == 2:
            row.update(generation=1)
        return place.time

    assert reconcile.reconcile(place.tenancy.pk, now=now) == 0
    assert (place.row.requeue_at, place.row.lease_until) == (place.time, None)


def test_a_bug_of_ours_is_said_too(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    Tenancy.objects.filter(pk=place.tenancy.pk).update(spec={})
    assert place.reconcile() == 0
    assert (
        place.row.ready["message"]
        == "The portal failed (KeyError). Its operators were told."
    )
    assert place.row.ready["reason"] == "Refused"


def test_a_cluster_that_takes_no_teams_goes_on_with_those_it_has(place: Place) -> None:
    Cluster.objects.update(enabled=False)
    assert list(Tenancy.objects.due(place.time)) == [place.row]
    place.reconcile()
    assert place.row.is_settled


def test_what_stood_stays_said_when_nobody_can_look(place: Place) -> None:
    place.reconcile()
    seen = place.row.objects_seen
    assert {each["state"] for each in seen} == {"true"}
    Cluster.objects.update(kubeconfig="gone.yaml")
    place.reconcile()
    assert place.row.ready["status"] == "False"
    assert place.row.objects_seen == seen


def test_a_missing_kubeconfig_is_said(place: Place) -> None:
    Cluster.objects.update(kubeconfig="gone.yaml")
    place.reconcile()
    assert place.row.ready["message"] == "The kubeconfig gone.yaml is not there."
    assert place.kubernetes.cluster.requests == {}


@pytest.mark.parametrize("name", ["../secret.yaml", "/etc/passwd", "a/../../b"])
def test_a_kubeconfig_lies_in_its_folder_only(place: Place, name: str) -> None:
    assert kubeconfig_path(name).parent == settings.ENV.kubeconfig_dir
