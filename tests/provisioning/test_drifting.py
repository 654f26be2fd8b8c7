"""What a pass does about what others changed: puts it right, asks, leaves alone, stops; and writes nothing else."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from accounts.roles import Role
from audit.events import Kind
from audit.models import Event
from connectors.patience import MOST_TRIES
from fleet.models import Cluster
from notices.models import Notice
from provisioning.drift import actions as drift_actions
from provisioning.drift import brake
from provisioning.models import Drift, Tenancy
from tests import factories
from tests.provisioning.conftest import Place
from web.refusals import BadInput, Conflict, NoRight, Stale

QUOTA, QUEUE = ("v1", "ResourceQuota"), ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
LIMITS, BINDING = ("v1", "LimitRange"), ("rbac.authorization.k8s.io/v1", "RoleBinding")
GPU = "requests.nvidia.com/gpu"


@pytest.fixture
def priya(db: None) -> User:
    return factories.person("Priya Raman", Role.PLATFORM_LEAD)


@pytest.fixture
def true(place: Place) -> Place:
    """A tenancy that was made true."""
    place.reconcile()
    assert place.row.is_settled
    return place


@pytest.fixture
def asking(true: Place) -> Place:
    """The same on a cluster where a lead is asked about drift."""
    Cluster.objects.update(on_drift=Cluster.OnDrift.ASK)
    return true


def edit(place: Place, manager: str = "kubectl-edit", **hard: str | None) -> None:
    """Somebody edits the quota."""
    place.kubernetes.patch(
        QUOTA, "team-quota", place.tenancy.namespace, {"spec": {"hard": hard}}, manager
    )


def hard(place: Place) -> dict[str, str]:
    found = place.kubernetes.get(QUOTA, "team-quota", place.tenancy.namespace)
    assert found is not None
    return dict(found["spec"]["hard"])


def one() -> Drift:
    return Drift.objects.get()


def passes(place: Place) -> int | None:
    """A pass a minute later."""
    place.later(seconds=61)
    return place.reconcile()


def drifted(place: Place) -> dict[str, str]:
    return next(
        (each for each in place.row.conditions if each["type"] == "Drifted"), {}
    )


def test_it_is_put_right_in_the_same_pass_and_told_with_who(true: Place) -> None:
    edit(true, **{GPU: "64"})
    assert passes(true) == 1
    row = one()
    assert (row.state, row.ended_by, row.ended_at) == (
        "repaired",
        "the portal",
        true.time,
    )
    assert (row.who, row.operation, row.what) == ("kubectl-edit", "Update", "changed")
    assert row.sentence == "kubectl-edit changed GPUs allowed from 0 to 64"
    event = Event.objects.filter(kind=Kind.DRIFT_REPAIRED).get()
    assert event.details["objects"][0]["who"] == "kubectl-edit"
    assert (event.details["writes"], event.details["cluster"]) == (1, true.cluster.pk)
    assert (true.row.is_settled, drifted(true), hard(true)[GPU]) == (True, {}, "0")
    assert passes(true) == 0


def test_a_pass_over_what_is_true_writes_nothing_and_asks_nothing_more(
    true: Place,
) -> None:
    written = true.kubernetes.writes
    with CaptureQueriesContext(
        connection,
    ) as seen:
        assert passes(true) == 0
    assert true.kubernetes.writes == written
    assert not [query for query in seen if "provisioning_drift" in query["sql"]]


def test_asking_means_that_nothing_is_written(asking: Place, priya: User) -> None:
    edit(asking, **{GPU: "64"})
    written = asking.kubernetes.writes
    for _ in range(2):
        assert passes(asking) == 0
    assert (asking.kubernetes.writes, hard(asking)[GPU]) == (written, "64")
    row = one()
    assert (row.state, row.who) == ("open", "kubectl-edit")
    assert asking.row.ready["status"] == "True"
    assert asking.row.ready["reason"] == drifted(asking)["reason"].replace(
        "ChangedElsewhere", "Drifted"
    )
    assert drifted(asking)["message"].startswith(
        "kubectl-edit changed GPUs allowed from 0 to 64."
    )
    assert "changed" in asking.states()
    [notice] = Notice.objects.filter(kind="drift_waiting")
    assert notice.person == priya
    assert "kubectl-edit changed GPUs allowed" in notice.message["sentence"]
    assert Event.objects.filter(kind=Kind.DRIFT_FOUND).count() == 1


def test_what_is_gone_waits_too_and_comes_back_when_asked_for(
    asking: Place, priya: User
) -> None:
    asking.kubernetes.delete(LIMITS, "team-defaults", asking.tenancy.namespace)
    assert passes(asking) == 0
    row = one()
    assert (row.what, row.who, row.since) == ("missing", "", asking.time)
    assert (
        asking.kubernetes.get(LIMITS, "team-defaults", asking.tenancy.namespace) is None
    )
    drift_actions.repair(row.pk, by=priya, now=asking.time)
    assert asking.reconcile() == 1
    assert (
        asking.kubernetes.get(LIMITS, "team-defaults", asking.tenancy.namespace)
        is not None
    )
    row = one()
    assert (row.state, row.ended_by) == ("repaired", "Priya Raman")


def test_a_repair_puts_that_object_right_and_no_other(
    asking: Place, priya: User
) -> None:
    edit(asking, pods="500")
    asking.kubernetes.delete(LIMITS, "team-defaults", asking.tenancy.namespace)
    passes(asking)
    drift_actions.repair(
        Drift.objects.get(kind="ResourceQuota").pk, by=priya, now=asking.time
    )
    assert asking.row.requeue_at == asking.time
    assert asking.reconcile() == 1
    assert hard(asking)["pods"] == "50"
    assert [row.kind for row in Drift.objects.open()] == ["LimitRange"]


def test_what_somebody_puts_back_themselves_is_over(asking: Place) -> None:
    edit(asking, pods="500")
    passes(asking)
    edit(asking, pods="50")
    assert passes(asking) == 0
    row = one()
    assert (row.state, row.ended_by) == ("repaired", "somebody on the cluster")
    assert drifted(asking) == {}
    assert Event.objects.filter(kind=Kind.DRIFT_GONE).count() == 1


def test_a_second_change_joins_the_first(asking: Place) -> None:
    edit(asking, pods="500")
    passes(asking)
    first = one().first_seen_at
    edit(asking, manager="helm", **{GPU: "9"})
    passes(asking)
    row = one()
    assert {field["path"] for field in row.fields} == {
        "spec.hard.pods",
        f"spec.hard.{GPU}",
    }
    assert row.first_seen_at == first


def test_a_new_generation_goes_on_and_leaves_what_waits_alone(asking: Place) -> None:
    edit(asking, pods="500")
    passes(asking)
    factories.request(asking.ada, asking.row, asking.a100, gpus=2)
    # More GPUs want more pods, too: a decision about the same field stands above what somebody typed.
    edit(asking, **{"count/secrets": "7"})
    assert passes(asking) is not None
    assert hard(asking)[GPU] == "2"
    assert asking.row.is_settled


@pytest.mark.slow
def test_a_new_generation_leaves_an_open_field_that_it_does_not_change(
    asking: Place,
) -> None:
    edit(asking, **{"count/secrets": "7"})
    passes(asking)
    factories.request(asking.ada, asking.row, asking.a100, gpus=2)
    assert asking.reconcile() == 2
    assert (hard(asking)[GPU], hard(asking)["count/secrets"]) == ("2", "7")
    assert (asking.row.is_settled, one().state) == (True, "open")
    assert "count/secrets" in one().fields[0]["path"]


def test_a_new_version_of_the_manifests_is_no_drift(asking: Place) -> None:
    Tenancy.objects.update(rendered="what an older version made")
    edit(asking, **{"count/secrets": "7"})
    assert passes(asking) == 1
    assert not Drift.objects.exists()
    assert (
        Event.objects.about("tenancy", asking.tenancy.pk).latest("seq").kind
        == Kind.TENANCY_CONVERGED
    )


def test_who_fights_for_an_object_is_asked_about(true: Place, priya: User) -> None:
    for _ in range(3):
        edit(true, pods="500")
        assert passes(true) == 1
    edit(true, pods="500")
    assert passes(true) == 0
    row = Drift.objects.open().get()
    assert row.contested
    assert "kubectl-edit changed it back 3 times within an hour" in row.reason
    assert drifted(true)["reason"] == "Contested"
    assert Event.objects.filter(kind=Kind.DRIFT_CONTESTED).count() == 1
    assert Notice.objects.filter(kind="drift_waiting", person=priya).count() == 1
    drift_actions.repair(row.pk, by=priya, now=true.time)
    assert true.reconcile() == 1
    assert hard(true)["pods"] == "50"


def test_another_hand_or_another_hour_is_no_fight(true: Place) -> None:
    for manager in ("helm", "kubectl-edit", "kubectl-edit", "argocd"):
        edit(true, manager=manager, pods="500")
        assert passes(true) == 1
    true.later(hours=2)
    for _ in range(2):
        edit(true, pods="500")
        assert passes(true) == 1
    assert not Drift.objects.open().exists()


def test_what_is_left_alone_is_not_touched_until_its_date_and_then_taken_up(
    true: Place, priya: User
) -> None:
    Cluster.objects.update(on_drift=Cluster.OnDrift.ASK)
    edit(true, pods="500")
    passes(true)
    until = true.time + timedelta(days=1)
    drift_actions.ignore(
        one().pk, by=priya, reason="A course this week.", until=until, now=true.time
    )
    Cluster.objects.update(on_drift=Cluster.OnDrift.REPAIR)
    assert (passes(true), hard(true)["pods"]) == (0, "500")
    assert drifted(true)["reason"] == "LeftAlone"
    edit(true, **{GPU: "64"})
    assert passes(true) == 1
    assert (hard(true)["pods"], hard(true)[GPU]) == ("500", "0")
    true.later(days=1)
    assert passes(true) == 1
    assert hard(true)["pods"] == "50"
    assert [row.state for row in Drift.objects.order_by("id")] == [
        "ignored",
        "repaired",
        "repaired",
    ]


def test_what_was_left_alone_can_be_taken_up_before(asking: Place, priya: User) -> None:
    edit(asking, pods="500")
    passes(asking)
    row = one()
    drift_actions.ignore(
        row.pk,
        by=priya,
        reason="Later.",
        until=asking.time + timedelta(days=9),
        now=asking.time,
    )
    drift_actions.take_up(row.pk, by=priya, now=asking.time + timedelta(seconds=1))
    passes(asking)
    assert Drift.objects.open().count() == 1


def test_an_amount_can_be_taken_over_and_given_up_again(
    asking: Place, priya: User
) -> None:
    edit(asking, pods="500")
    passes(asking)
    row = one()
    drift_actions.adopt(row.pk, by=priya, now=asking.time, seen=row.content)
    assert not asking.row.is_settled
    assert passes(asking) == 0
    assert (asking.row.is_settled, hard(asking)["pods"], one().state) == (
        True,
        "500",
        "adopted",
    )
    assert drifted(asking) == {}
    factories.request(asking.ada, asking.row, asking.a100, gpus=2)
    passes(asking)
    assert (hard(asking)["pods"], hard(asking)[GPU]) == ("500", "2")
    drift_actions.give_up(row.pk, by=priya, now=asking.time)
    assert passes(asking) == 1
    assert hard(asking)["pods"] == "58"
    with pytest.raises(Conflict):
        drift_actions.give_up(row.pk, by=priya, now=asking.time)


def test_what_was_changed_once_more_is_not_taken_over_unseen(
    asking: Place, priya: User
) -> None:
    edit(asking, pods="80")
    passes(asking)
    seen = one().content
    edit(asking, pods="8000")
    passes(asking)
    with pytest.raises(Stale, match="since you looked"):
        drift_actions.adopt(one().pk, by=priya, now=asking.time, seen=seen)
    assert (one().state, asking.row.adopted) == ("open", {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ref", "name", "body"),
    [
        (QUOTA, "team-quota", {"spec": {"hard": {GPU: "64"}}}),
        (QUOTA, "team-quota", {"spec": {"hard": {"services.loadbalancers": "3"}}}),
        (QUOTA, "team-quota", {"spec": {"hard": {"pods": "3"}}}),
        (QUOTA, "team-quota", {"spec": {"hard": {"count/secrets": None}}}),
        (BINDING, "team-users", {"subjects": []}),
        (QUEUE, "", {"spec": {"stopPolicy": "HoldAndDrain"}}),
        (
            ("v1", "Namespace"),
            "",
            {
                "metadata": {
                    "labels": {"pod-security.kubernetes.io/enforce": "privileged"}
                }
            },
        ),
        (
            ("networking.k8s.io/v1", "NetworkPolicy"),
            "default-deny",
            {"spec": {"policyTypes": ["Ingress"]}},
        ),
    ],
)
def test_what_guards_the_team_and_others_is_never_taken_over(
    asking: Place, priya: User, ref: tuple[str, str], name: str, body: Any
) -> None:
    namespace = (
        None if ref[1] in ("ClusterQueue", "Namespace") else asking.tenancy.namespace
    )
    asking.kubernetes.patch(ref, name or asking.tenancy.namespace, namespace, body)
    assert passes(asking) == 0
    with pytest.raises(Conflict) as refused:
        drift_actions.adopt(one().pk, by=priya, now=asking.time, seen=one().content)
    assert refused.value.code == "not_adoptable"
    assert (one().state, asking.row.adopted) == ("open", {})


def test_only_platform_leads_deal_with_it_and_only_once(
    asking: Place, priya: User
) -> None:
    edit(asking, pods="500")
    passes(asking)
    row, now = one(), asking.time
    later = now + timedelta(days=1)
    for act in (
        lambda by: drift_actions.repair(row.pk, by=by, now=now),
        lambda by: drift_actions.adopt(row.pk, by=by, now=now, seen=row.content),
        lambda by: drift_actions.give_up(row.pk, by=by, now=now),
        lambda by: drift_actions.take_up(row.pk, by=by, now=now),
        lambda by: drift_actions.ignore(
            row.pk, by=by, reason="x", until=later, now=now
        ),
        lambda by: brake.release(asking.cluster.pk, by=by, now=now),
    ):
        with pytest.raises(NoRight):
            act(asking.ada)
    for reason, until in (
        (" ", later),
        ("x", now),
        ("x", now + timedelta(days=400)),
        ("x" * 301, later),
    ):
        with pytest.raises(BadInput):
            drift_actions.ignore(row.pk, by=priya, reason=reason, until=until, now=now)
    drift_actions.ignore(row.pk, by=priya, reason="Fine.", until=later, now=now)
    for again in (drift_actions.repair, partial(drift_actions.adopt, seen=row.content)):
        with pytest.raises(Conflict):
            again(row.pk, by=priya, now=now)


def test_a_worker_that_ends_before_its_status_leaves_no_row_open_for_ever(
    true: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(true, pods="500")
    true.later(seconds=61)
    with monkeypatch.context() as patch:
        patch.setattr(
            "provisioning.reconcile.write_status", lambda *args, **kwargs: False
        )
        assert true.reconcile() == 1
    assert one().state == "open"
    true.later(seconds=6)
    assert true.reconcile() == 0
    assert (one().state, one().ended_by, drifted(true)) == (
        "repaired",
        "the portal",
        {},
    )


def test_a_repair_that_fails_stays_open_and_is_tried_again(true: Place) -> None:
    edit(true, pods="500")
    true.kubernetes.fail("resourcequotas", "PATCH", status=503, times=MOST_TRIES)
    assert passes(true) == 0
    assert (one().state, drifted(true)["status"]) == ("open", "True")
    assert passes(true) == 1
    assert (one().state, drifted(true)) == ("repaired", {})


@pytest.mark.slow
def test_a_cluster_that_is_not_what_it_seems_is_not_filled(
    true: Place, priya: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brake, "LEAST", 1)
    others = [factories.tenancy(on=true.cluster) for _ in range(3)]
    from provisioning import reconcile

    everybody = [true.tenancy, *others]
    for tenancy in everybody:
        reconcile.reconcile(tenancy.pk, now=true.now)
    for tenancy in everybody:
        true.kubernetes.delete(LIMITS, "team-defaults", tenancy.namespace)
    true.later(seconds=61)
    assert [reconcile.reconcile(tenancy.pk, now=true.now) for tenancy in everybody] == [
        1,
        0,
        0,
        0,
    ]
    stopped = Cluster.objects.get(pk=true.cluster.pk)
    assert stopped.braked_at is not None
    assert (
        stopped.brake_reason
        == "2 of 4 tenancies differ at once, more than the 1 that are repaired unasked."
    )
    assert Event.objects.filter(kind=Kind.CLUSTER_BRAKED).count() == 1
    assert Notice.objects.filter(kind="cluster_braked", person=priya).count() == 1
    with pytest.raises(Conflict):
        drift_actions.repair(Drift.objects.open().first().pk, by=priya, now=true.time)  # type: ignore[union-attr]
    # What teams ask for goes on meanwhile, and touches nothing that waits.
    factories.request(true.ada, true.row, true.a100, gpus=2)
    assert passes(true) == 2
    brake.release(true.cluster.pk, by=priya, now=true.time)
    assert [reconcile.reconcile(tenancy.pk, now=true.now) for tenancy in everybody] == [
        0,
        1,
        1,
        1,
    ]
    assert not Drift.objects.open().exists()
    assert not Cluster.objects.filter(braked_at__isnull=False).exists()
