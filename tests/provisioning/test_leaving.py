"""A tenancy's end on its cluster: held, drained, kept, restored or deleted, and nothing of anybody else touched."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from accounts.roles import Role
from audit.actors import PORTAL
from audit.models import Event
from provisioning import leaving
from provisioning.actions import create_tenancy
from provisioning.controller import acquire
from provisioning.delivery import client_for
from provisioning.desired.manifests import KUEUE, tenancy_objects
from provisioning.models import Tenancy
from provisioning.removing import Removal, is_of, note_gone, places, still_there
from provisioning.stages import NEXT, Stage, as_left
from reconciling.lease import SECONDS, LeaseLost
from tests import factories
from tests.provisioning.conftest import Place
from tests.provisioning.specs import sample
from web.refusals import Conflict, NoRight

OURS = {"app.kubernetes.io/managed-by": "quartermaster"}

NAMESPACE, CLAIM = ("v1", "Namespace"), ("v1", "PersistentVolumeClaim")
QUEUE, LINE, QUOTA = (
    (KUEUE, "ClusterQueue"),
    (KUEUE, "LocalQueue"),
    ("v1", "ResourceQuota"),
)
BINDING = ("rbac.authorization.k8s.io/v1", "RoleBinding")
DAY = timedelta(days=1)


def announce(place: Place, *, days: float = 0, hold: bool = False) -> None:
    Tenancy.objects.filter(pk=place.tenancy.pk).update(is_protected=False)
    leaving.announce(
        place.tenancy.pk,
        leaves_at=place.time + days * DAY,
        hold=hold,
        actor=PORTAL,
        now=place.time,
    )


def retain(place: Place, *, days: float = 30) -> None:
    announce(place)
    assert leaving.drain(
        place.tenancy.pk,
        retained_until=place.time + days * DAY,
        actor=PORTAL,
        now=place.time,
    )
    # Work stops on the cluster at once.
    Tenancy.objects.filter(pk=place.tenancy.pk).update(drained_at=place.time)


def removing(place: Place) -> None:
    retain(place)
    place.later(days=31)
    assert leaving.remove(place.tenancy.pk, actor=PORTAL, now=place.time)


def gone(place: Place, passes: int = 40) -> None:
    """Passes of a worker until nothing is left; the namespace goes a moment after it is asked to."""
    for _ in range(passes):
        place.reconcile()
        if place.row.stage == Stage.GONE:
            return
        place.kubernetes.terminate()
        place.later(seconds=61)
    raise AssertionError(place.row.ready["message"])


def live(
    place: Place, ref: tuple[str, str], name: str, *, wide: bool = False
) -> dict[str, Any]:
    found = place.kubernetes.get(ref, name, None if wide else place.tenancy.namespace)
    assert found is not None
    return found


def quotas(queue: dict[str, Any]) -> set[str]:
    groups = queue["spec"]["resourceGroups"]
    return {
        r["nominalQuota"]
        for group in groups
        for f in group["flavors"]
        for r in f["resources"]
    }


def bound(place: Place) -> list[Any]:
    bindings = [
        one
        for one in tenancy_objects(place.row.desired)
        if one["kind"] == "RoleBinding"
    ]
    assert bindings
    return [
        s
        for one in bindings
        for s in live(place, BINDING, one["metadata"]["name"]).get("subjects") or []
    ]


def test_held_nothing_new_starts_and_everything_else_stays(place: Place) -> None:
    place.reconcile()
    announce(place, days=7, hold=True)
    assert place.reconcile() == 1
    assert (
        live(place, QUEUE, place.tenancy.namespace, wide=True)["spec"]["stopPolicy"]
        == "Hold"
    )
    assert bound(place)
    assert (place.row.is_settled, place.reconcile()) == (True, 0)


def test_drained_the_queue_is_emptied_access_is_gone_and_the_claims_stay(
    place: Place,
) -> None:
    place.reconcile()
    claim = live(place, CLAIM, "datasets")["metadata"]["uid"]
    retain(place)
    place.reconcile()
    queue = live(place, QUEUE, place.tenancy.namespace, wide=True)
    assert (queue["spec"]["stopPolicy"], quotas(queue)) == ("HoldAndDrain", {"0"})
    assert set(live(place, QUOTA, "team-quota")["spec"]["hard"].values()) == {"0"}
    assert bound(place) == []
    assert live(place, CLAIM, "datasets")["metadata"]["uid"] == claim
    assert (place.row.is_settled, place.reconcile()) == (True, 0)


def test_restored_everything_is_as_it_was_and_protected(place: Place) -> None:
    place.reconcile()
    before = place.row.spec
    people = bound(place)
    retain(place)
    place.reconcile()
    # The cluster's budget of writes is used up by then, and comes back with time.
    place.later(seconds=10)
    leaving.restore(place.tenancy.pk, actor=PORTAL, now=place.time)
    place.reconcile()
    row = place.row
    assert (row.stage, row.is_protected, row.leaves_at, row.retained_until) == (
        Stage.HERE,
        True,
        None,
        None,
    )
    assert (row.spec, bound(place)) == (before, people)
    assert live(place, QUEUE, row.namespace, wide=True)["spec"]["stopPolicy"] == "None"
    assert (row.is_settled, place.reconcile()) == (True, 0)


def test_nothing_is_deleted_before_its_date_and_everything_after(place: Place) -> None:
    place.reconcile()
    name = place.tenancy.namespace
    retain(place)
    place.later(days=29, hours=23)
    assert leaving.remove(place.tenancy.pk, actor=PORTAL, now=place.time) is False
    place.later(hours=1)
    assert leaving.remove(place.tenancy.pk, actor=PORTAL, now=place.time) is True
    gone(place)
    assert place.kubernetes.get(NAMESPACE, name) is None
    assert place.kubernetes.get(QUEUE, name) is None
    assert place.row.gone_at is not None
    assert (
        Event.objects.about("tenancy", place.tenancy.pk).latest("seq").kind
        == "tenancy.gone"
    )
    written = place.kubernetes.writes
    assert place.reconcile() == 0
    assert place.kubernetes.writes == written


def test_the_team_comes_again_under_the_same_name(place: Place) -> None:
    place.reconcile()
    removing(place)
    again: dict[str, Any] = {
        "team": place.tenancy.team,
        "cluster": place.cluster,
        "project": place.tenancy.project,
    }
    with pytest.raises(Conflict, match="is leaving Training"):
        create_tenancy(**again, environment="dev", now=place.time)
    gone(place)
    new = factories.tenancy(place.tenancy.team, place.cluster)
    assert (new.namespace, new.pk != place.tenancy.pk) == (
        place.tenancy.namespace,
        True,
    )
    place.tenancy = new
    place.reconcile()
    assert place.row.is_settled


def test_a_namespace_that_is_not_ours_is_never_deleted(place: Place) -> None:
    place.reconcile()
    removing(place)
    name = place.tenancy.namespace
    place.kubernetes.patch(
        NAMESPACE,
        name,
        None,
        {"metadata": {"labels": {"quartermaster.io/tenancy": "4711"}}},
    )
    before, written = place.kubernetes.get(NAMESPACE, name), place.kubernetes.writes
    place.reconcile()
    assert place.kubernetes.get(NAMESPACE, name) == before
    assert place.kubernetes.writes == written
    assert (
        place.row.ready["message"]
        == f"Namespace {name} stands there and is not ours; it was not touched."
    )
    assert place.row.stage == Stage.REMOVING


def test_what_others_have_on_the_cluster_stays(place: Place) -> None:
    marks = {"app.kubernetes.io/managed-by": "quartermaster"}
    place.kubernetes.create(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "theirs", "labels": marks},
        }
    )
    before = place.kubernetes.get(NAMESPACE, "theirs")
    place.reconcile()
    removing(place)
    gone(place)
    assert place.kubernetes.get(NAMESPACE, "theirs") == before


def test_a_stuck_finalizer_is_said_and_tried_again(place: Place) -> None:
    place.reconcile()
    removing(place)
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    place.kubernetes.patch(CLAIM, "datasets", place.tenancy.namespace, hold)
    for _ in range(3):
        place.reconcile()
        place.kubernetes.terminate()
        place.later(seconds=61)
    row = place.row
    assert (row.stage, row.ready["reason"]) == (Stage.REMOVING, "WillTryAgain")
    assert "example.com/hold in 1 resource instances" in row.ready["message"]
    assert row.requeue_at <= place.time + timedelta(seconds=90)
    place.kubernetes.patch(
        CLAIM, "datasets", place.tenancy.namespace, {"metadata": {"finalizers": None}}
    )
    gone(place)


def test_killed_in_the_middle_the_next_worker_goes_on(place: Place) -> None:
    place.reconcile()
    removing(place)
    place.kubernetes.fail(
        where=f"/api/v1/namespaces/{place.tenancy.namespace}$",
        method="DELETE",
        times=1,
        status=503,
    )
    place.reconcile()
    assert place.kubernetes.get(QUEUE, place.tenancy.namespace) is None
    assert place.kubernetes.get(NAMESPACE, place.tenancy.namespace) is not None
    place.later(seconds=61)
    gone(place)


def test_a_worker_that_lost_its_lease_deletes_nothing(place: Place) -> None:
    place.reconcile()
    removing(place)
    written = place.kubernetes.writes
    row = place.row
    lease = acquire(row.pk, now=place.time)
    assert lease is not None
    place.later(seconds=SECONDS)
    assert acquire(row.pk, now=place.time) is not None, "another worker takes over"
    stale = Removal(
        row,
        client_for(place.cluster),
        pay=lambda steps: None,
        check=lambda: lease.check(now=place.time),
    )
    with pytest.raises(LeaseLost):
        stale.run()
    assert note_gone(row, lease, writes=0, now=place.time) is False
    assert place.row.stage == Stage.REMOVING
    assert place.kubernetes.writes == written


def test_each_action_does_its_work_once(place: Place) -> None:
    place.reconcile()
    removing(place)
    generation, events = place.row.generation, Event.objects.count()
    until = place.time + DAY
    assert leaving.remove(place.tenancy.pk, actor=PORTAL, now=place.time) is False
    assert (
        leaving.drain(
            place.tenancy.pk, retained_until=until, actor=PORTAL, now=place.time
        )
        is False
    )
    with pytest.raises(Conflict):
        leaving.restore(place.tenancy.pk, actor=PORTAL, now=place.time)
    assert (place.row.generation, Event.objects.count()) == (generation, events)


def test_what_is_protected_does_not_leave_and_platform_leads_take_it_off(
    place: Place,
) -> None:
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    with pytest.raises(Conflict, match="protected"):
        leaving.announce(
            place.tenancy.pk,
            leaves_at=place.time,
            hold=False,
            actor=PORTAL,
            now=place.time,
        )
    with pytest.raises(NoRight):
        leaving.protect(place.tenancy.pk, on=False, by=place.ada)
    leaving.protect(place.tenancy.pk, on=False, by=priya)
    leaving.protect(place.tenancy.pk, on=False, by=priya)
    kinds = Event.objects.about("tenancy", place.tenancy.pk).values_list(
        "kind", flat=True
    )
    assert list(kinds).count("tenancy.unprotected") == 1
    leaving.announce(
        place.tenancy.pk, leaves_at=place.time, hold=False, actor=PORTAL, now=place.time
    )
    with pytest.raises(Conflict, match="restore it first"):
        leaving.protect(place.tenancy.pk, on=True, by=priya)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("what_is_protected_does_not_leave", {"is_protected": True}),
        (
            "who_leaves_has_a_date",
            {
                "stage": "leaving",
                "is_protected": False,
                "leaves_at": None,
                "retained_until": None,
            },
        ),
        ("what_is_kept_is_kept_until_a_date", {"retained_until": None}),
        ("what_is_gone_went_at_a_time", {"stage": "gone"}),
        ("a_queue_stops_as_its_stage_says", {"stop": "None"}),
    ],
)
def test_the_database_refuses_a_stage_that_cannot_be(
    place: Place, name: str, fields: dict[str, Any]
) -> None:
    # From the stage before, or the table of moves would refuse it first.
    if fields.get("stage") != "leaving":
        retain(place)
    if fields.get("stage") == "gone":
        leaving.remove(place.tenancy.pk, actor=PORTAL, now=place.time + 31 * DAY)
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        Tenancy.objects.filter(pk=place.tenancy.pk).update(**fields)


def test_a_project_has_an_environment_on_a_cluster_once_until_it_is_gone(
    place: Place,
) -> None:
    new = {
        "team": place.tenancy.team,
        "cluster": place.cluster,
        "project": place.tenancy.project,
    }
    fields = new | {
        "environment": "dev",
        "namespace": "qm-other",
        "requeue_at": place.time,
    }
    with (
        pytest.raises(
            IntegrityError, match="a_project_has_an_environment_on_a_cluster_once"
        ),
        transaction.atomic(),
    ):
        Tenancy.objects.create(**fields)


def test_what_is_kept_is_looked_at_and_what_is_gone_is_not(place: Place) -> None:
    retain(place)
    assert Tenancy.objects.due(place.time).filter(pk=place.tenancy.pk).exists()
    removing_at = place.time + 31 * DAY
    leaving.remove(place.tenancy.pk, actor=PORTAL, now=removing_at)
    Tenancy.objects.filter(pk=place.tenancy.pk).update(
        stage="gone", gone_at=removing_at
    )
    assert not Tenancy.objects.due(removing_at).filter(pk=place.tenancy.pk).exists()


def test_stages_lead_to_gone_and_never_back_from_deleting() -> None:
    assert NEXT[Stage.GONE] == frozenset()
    assert NEXT[Stage.REMOVING] == {Stage.GONE}
    assert {stage for stage, after in NEXT.items() if Stage.HERE in after} == {
        Stage.LEAVING,
        Stage.RETAINED,
    }


def test_leaving_changes_only_queue_quota_and_binding() -> None:
    objects = tenancy_objects(sample())
    left = as_left(objects, stop="HoldAndDrain", access=False)
    stays = [one for one in objects if one["kind"] != "PersistentVolumeClaim"]
    changed = {a["kind"] for a, b in zip(stays, left, strict=True) if a != b}
    assert changed == {"ClusterQueue", "ResourceQuota", "RoleBinding"}
    assert as_left(objects, stop="None", access=True) == objects


def test_the_line_goes_before_the_queue_and_nothing_in_the_namespace_is_named() -> None:
    found = places(sample())
    assert found[0] == (LINE, sample().namespace)
    assert (QUEUE, None) in found
    assert all(namespace != sample().namespace for _, namespace in found[1:])


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"quartermaster.io/tenancy": "7"},
        {"app.kubernetes.io/managed-by": "quartermaster"},
        {
            "app.kubernetes.io/managed-by": "quartermaster",
            "quartermaster.io/tenancy": "8",
        },
        {
            "app.kubernetes.io/managed-by": "Helm",
            "quartermaster.io/tenancy": "7",
            "quartermaster.io/installation": "b2",
        },
        {
            "app.kubernetes.io/managed-by": "quartermaster",
            "quartermaster.io/tenancy": "7",
        },
        OURS | {"quartermaster.io/tenancy": "7", "quartermaster.io/installation": "a1"},
        OURS | {"quartermaster.io/tenancy": "8", "quartermaster.io/installation": "b2"},
    ],
)
def test_only_both_marks_make_an_object_ours(labels: dict[str, str]) -> None:
    assert not is_of(
        {"metadata": {"labels": labels}}, replace(sample(), installation="b2")
    )


def test_what_holds_an_object_is_said_in_words() -> None:
    queue = {
        "kind": "ClusterQueue",
        "metadata": {"name": "q", "finalizers": ["kueue.x-k8s.io/resource-in-use"]},
    }
    assert (
        still_there([queue])
        == "ClusterQueue q is being deleted; kueue.x-k8s.io/resource-in-use holds it."
    )
    assert (
        still_there([{"kind": "Namespace", "metadata": {"name": "n"}}])
        == "Namespace n is being deleted."
    )


def test_a_place_that_was_never_made_whole_can_be_left(place: Place) -> None:
    # Its quota is of nothing by then: a claim that is not there yet would be refused for ever.
    retain(place)
    place.reconcile()
    assert place.row.is_settled, place.row.ready["message"]
    assert place.kubernetes.get(CLAIM, "datasets", place.tenancy.namespace) is None
    leaving.restore(place.tenancy.pk, actor=PORTAL, now=place.time)
    place.reconcile()
    assert place.row.is_settled, place.row.ready["message"]
    assert place.kubernetes.get(CLAIM, "datasets", place.tenancy.namespace) is not None
