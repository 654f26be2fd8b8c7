"""The brake: counted in the database, set once, and nothing else stops for it."""

from datetime import timedelta

import pytest

from audit.events import Kind
from audit.models import Event
from fleet.models import Cluster
from provisioning.controller import acquire
from provisioning.desired.manifests import tenancy_objects
from provisioning.desired.plan import Key, Step, Verb, plan
from provisioning.drift import brake
from provisioning.drift import reconcile as drifting
from provisioning.drift.comparing import digest
from provisioning.models import Drift, Tenancy
from tests import factories
from tests.scene import NOW, Scene
from tests.scene import scene as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def scene() -> Scene:
    return make()


def drift(tenancy: Tenancy, **fields: object) -> Drift:
    """An open difference of a tenancy's quota."""
    usual = {
        "kind": "ResourceQuota",
        "name": "team-quota",
        "what": "changed",
        "since": NOW,
        "first_seen_at": NOW,
    }
    return Drift.objects.create(tenancy=tenancy, **{**usual, **fields})


def fill(cluster: Cluster, tenancies: int) -> list[Tenancy]:
    return [factories.tenancy(on=cluster) for _ in range(tenancies)]


def now_stored(cluster: Cluster) -> Cluster:
    return Cluster.objects.get(pk=cluster.pk)


def true(tenancy: Tenancy) -> Tenancy:
    """A tenancy whose objects were all made."""
    row = factories.make_true(tenancy)
    row.rendered = digest(tenancy_objects(row.desired))
    row.save()
    return Tenancy.objects.select_related("cluster", "team").get(pk=row.pk)


def settled(row: Tenancy, live: dict[Key, dict[str, object]]) -> list[Step]:
    """What a pass may do about a cluster that stands like this."""
    held = acquire(row.pk, now=NOW)
    assert held is not None
    desired = tenancy_objects(row.desired)
    steps, _ = drifting.settle(
        row, held, desired=desired, steps=plan(desired, live), live=live, now=NOW
    )
    return steps


def test_up_to_ten_are_repaired_and_one_more_stops_everything(scene: Scene) -> None:
    cluster = scene.flavor.cluster
    tenancies = fill(cluster, 11)
    for tenancy in tenancies[:10]:
        drift(tenancy)
    assert not brake.check(cluster, now=NOW)
    drift(tenancies[10])
    assert brake.check(cluster, now=NOW)
    assert now_stored(cluster).brake_reason.startswith(
        "11 of 12 tenancies differ at once"
    )


def test_it_is_set_and_told_once(scene: Scene) -> None:
    cluster = scene.flavor.cluster
    assert brake.too_many(cluster, 11, now=NOW)
    assert brake.too_many(cluster, 12, now=NOW + timedelta(minutes=1))
    assert now_stored(cluster).braked_at == NOW
    assert Event.objects.filter(kind=Kind.CLUSTER_BRAKED).count() == 1


def test_of_a_large_cluster_a_twentieth_may_differ() -> None:
    assert [brake.most(n) for n in (0, 10, 200, 219, 220, 1000)] == [
        10,
        10,
        10,
        10,
        11,
        50,
    ]


@pytest.mark.slow
def test_only_what_would_be_repaired_unasked_counts(scene: Scene) -> None:
    cluster, old = scene.flavor.cluster, NOW - timedelta(hours=1)
    over = {"state": "repaired", "ended_at": NOW, "ended_by": "the portal"}
    tenancies = fill(cluster, 12)
    for tenancy in tenancies:
        drift(tenancy, **over, begun_at=old)
        drift(tenancy, **over)
        drift(tenancy, contested=True)
    for tenancy in fill(cluster, 12):
        drift(tenancy, repair_asked_at=NOW, repair_asked_by=scene.priya)
    for tenancy in fill(factories.cluster("other"), 12):
        drift(tenancy)
    assert not brake.check(cluster, now=NOW)
    for tenancy in tenancies:
        drift(tenancy, **over, begun_at=NOW, name=f"q-{tenancy.pk}")
    assert brake.check(cluster, now=NOW)


def test_what_a_lead_has_let_go_on_does_not_stop_it_again(scene: Scene) -> None:
    cluster = scene.flavor.cluster
    for tenancy in fill(cluster, 12):
        drift(tenancy)
    assert brake.check(cluster, now=NOW)
    brake.release(cluster.pk, by=scene.priya, now=NOW)
    assert not brake.check(cluster, now=NOW)


def test_one_look_stops_it_before_the_first_repair(scene: Scene) -> None:
    cluster = scene.flavor.cluster
    rows = [true(tenancy) for tenancy in fill(cluster, 11)]
    drifting.brake_at(cluster, [row.pk for row in rows[:10]], now=NOW)
    assert now_stored(cluster).braked_at is None
    drifting.brake_at(cluster, [row.pk for row in rows], now=NOW)
    assert now_stored(cluster).braked_at == NOW


def test_a_new_version_of_the_portal_stops_nothing(scene: Scene) -> None:
    cluster = scene.flavor.cluster
    rows = [true(tenancy) for tenancy in fill(cluster, 11)]
    Tenancy.objects.update(rendered="older")
    drifting.brake_at(cluster, [row.pk for row in rows], now=NOW)
    assert now_stored(cluster).braked_at is None


def test_nothing_is_written_while_it_is_on(scene: Scene) -> None:
    row = true(scene.tenancy)
    brake.too_many(scene.flavor.cluster, 99, now=NOW)
    assert {step.verb for step in settled(row, {})} == {Verb.KEEP}
    assert Drift.objects.open().count() == len(tenancy_objects(row.desired))


def test_asking_means_no_write(scene: Scene) -> None:
    Cluster.objects.update(on_drift=Cluster.OnDrift.ASK)
    assert {step.verb for step in settled(true(scene.tenancy), {})} == {Verb.KEEP}


def test_what_somebody_fights_for_is_not_written(scene: Scene) -> None:
    row = true(scene.tenancy)
    quota = next(
        one for one in tenancy_objects(row.desired) if one["kind"] == "ResourceQuota"
    )
    for n in range(3):
        drift(
            row,
            namespace=row.namespace,
            what="missing",
            state="repaired",
            ended_by="the portal",
            ended_at=NOW - timedelta(minutes=n),
        )
    verbs = {
        step.key.kind: step.verb
        for step in settled(row, {})
        if step.key == Key.of(quota)
    }
    assert verbs == {"ResourceQuota": Verb.KEEP}


def test_what_is_not_ours_is_never_written(scene: Scene) -> None:
    row = true(scene.tenancy)
    namespace = tenancy_objects(row.desired)[0]
    foreign = {**namespace, "metadata": {"name": row.namespace, "labels": {}}}
    verbs = [step.verb for step in settled(row, {Key.of(namespace): foreign})]
    assert verbs[0] is Verb.FOREIGN
    assert not Drift.objects.filter(kind="Namespace").exists()
