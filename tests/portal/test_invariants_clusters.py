"""What the books cannot see: each promise about a cluster is broken on a served cluster, and found."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command

from accounts.roles import Role
from allocations.models import Allocation
from audit.models import Event
from checks.invariants import check
from fleet.clusters.actions import change_cluster
from fleet.models import Cluster
from portal.tasks import check_invariants
from provisioning.clusters.observe import look_at
from provisioning.drift import actions as drift_actions
from provisioning.models import Drift, Tenancy
from tests import factories
from tests.provisioning.conftest import Place, kubernetes, kubernetes_server, place

__all__ = ["kubernetes", "kubernetes_server", "place"]
QUOTA, NAMESPACE = ("v1", "ResourceQuota"), ("v1", "Namespace")
ACCOUNT, QUEUE = ("v1", "ServiceAccount"), ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
OURS = {"app.kubernetes.io/managed-by": "quartermaster"}


@pytest.fixture
def standing(place: Place) -> Place:
    """A place that holds two GPUs and is true."""
    assert look_at(place.cluster.pk, now=place.now)
    factories.request(place.ada, place.row, place.a100, gpus=2)
    place.reconcile()
    place.later(seconds=10)
    assert found(place) == []
    return place


def found(place: Place) -> list[tuple[str, str]]:
    """Promise and words of every finding."""
    return [(f.promise, f.words) for f in check(now=place.time).findings]


@pytest.mark.slow
def test_slices_of_gpus_are_counted_by_themselves(standing: Place) -> None:
    flavor = standing.a100
    mig = "nvidia.com/mig-1g.10gb"
    slices = factories.flavor(
        flavor.cluster, "a100-mig", resource=mig, node_labels={"mig": "1g"}
    )
    factories.request(standing.ada, standing.row, slices, gpus=2, now=standing.time)
    standing.reconcile()
    standing.later(seconds=10)
    assert found(standing) == []
    hard = {"spec": {"hard": {f"requests.{mig}": "1"}}}
    standing.kubernetes.patch(QUOTA, "team-quota", standing.tenancy.namespace, hard)
    assert ("I2", f"Its quota has room for 1 of {mig}, 2 are held.") in found(standing)


@pytest.mark.slow
def test_a_cluster_that_takes_no_teams_is_looked_at_too(standing: Place) -> None:
    Cluster.objects.update(enabled=False)
    gone(standing)
    assert "I1" in [promise for promise, _ in found(standing)]


def shrunk(place: Place) -> None:
    hard = {"spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}
    place.kubernetes.patch(QUOTA, "team-quota", place.tenancy.namespace, hard)


def queue_of(place: Place) -> dict[str, Any]:
    queue = place.kubernetes.get(QUEUE, place.tenancy.namespace)
    assert queue is not None
    return queue


def guarantees_more(place: Place) -> None:
    spec = queue_of(place)["spec"]
    for flavor in spec["resourceGroups"][0]["flavors"]:
        if flavor["name"] == "a100":
            for resource in flavor["resources"]:
                resource["nominalQuota"] = "5"
    place.kubernetes.patch(QUEUE, place.tenancy.namespace, None, {"spec": spec})


def gone(place: Place) -> None:
    place.kubernetes.delete(
        ("v1", "LimitRange"), "team-defaults", place.tenancy.namespace
    )


def relabelled(place: Place) -> None:
    body = {"metadata": {"labels": {"quartermaster.io/team": "somebody-else"}}}
    place.kubernetes.patch(NAMESPACE, place.tenancy.namespace, None, body)


def opened(place: Place) -> None:
    policy = ("networking.k8s.io/v1", "NetworkPolicy")
    place.kubernetes.patch(
        policy, "default-deny", place.tenancy.namespace, {"spec": {"ingress": [{}]}}
    )


def reparented(place: Place) -> None:
    cohort = ("kueue.x-k8s.io/v1beta2", "Cohort")
    place.kubernetes.patch(
        cohort, "quartermaster", None, {"spec": {"parentName": "theirs"}}
    )


def stray(place: Place) -> None:
    marks = OURS | {"quartermaster.io/tenancy": "99999"}
    place.kubernetes.create(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "qm-nobody", "labels": marks},
        }
    )


def elsewhere(place: Place) -> None:
    marks = OURS | {"quartermaster.io/tenancy": str(place.tenancy.pk)}
    metadata = {"name": "workload", "namespace": "default", "labels": marks}
    place.kubernetes.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    )


def trespass(place: Place) -> None:
    place.kubernetes.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "theirs"}}
    )
    body = {"metadata": {"annotations": {"a": "b"}}}
    place.kubernetes.patch(NAMESPACE, "theirs", None, body, manager="quartermaster")


PLANTED: dict[str, tuple[str, str, Callable[[Place], None]]] = {
    "an object called true that is not there": (
        "I1",
        "LimitRange team-defaults is called true",
        gone,
    ),
    "a quota below what is held": (
        "I2",
        "room for 1 of nvidia.com/gpu, 2 are held",
        shrunk,
    ),
    "a queue that guarantees more": ("I2", "guarantees {'a100': 5}", guarantees_more),
    "a field that another pass would write": ("I8", "Namespace", relabelled),
    "a traffic rule beside the portal's own fields": (
        "I8",
        ".spec.ingress was added",
        opened,
    ),
    "a field of what all teams share": (
        "I8",
        "Cohort quartermaster would be written again",
        reparented,
    ),
    "an object of a tenancy that is not here": ("I9", "which is not here", stray),
    "an object in another namespace": ("I9", "stands somewhere else", elsewhere),
    "somebody else's object with our hand in it": (
        "I9",
        "the portal has written to it",
        trespass,
    ),
}


@pytest.mark.slow
def test_each_promise_broken_on_a_cluster_is_found(standing: Place) -> None:
    cluster = standing.kubernetes
    state, missed = cluster.snapshot(), {}
    for name, (promise, words, plant) in PLANTED.items():
        plant(standing)
        said = found(standing)
        if not any(promise == p and words in w for p, w in said):
            missed[name] = said
        cluster.restore(state)
    assert missed == {}
    assert found(standing) == []


@pytest.mark.slow
def test_checking_writes_nothing_to_a_cluster(standing: Place) -> None:
    before = standing.kubernetes.writes
    check(now=standing.time)
    assert standing.kubernetes.writes == before


@pytest.mark.slow
def test_what_is_being_changed_or_not_true_yet_is_noted_and_no_finding(
    standing: Place,
) -> None:
    factories.request(standing.ada, standing.row, standing.a100, gpus=1)
    report = check(now=standing.time)
    assert report.findings == []
    assert any("is not ready yet" in note for note in report.notes)
    gone(standing)
    standing.reconcile()
    gone(standing)
    Tenancy.objects.update(lease_until=standing.time)
    report = check(now=standing.time)
    assert report.findings == []
    assert any("was being changed" in note for note in report.notes)


@pytest.mark.slow
def test_what_a_lead_left_alone_is_noted_and_no_finding(standing: Place) -> None:
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    change_cluster(standing.cluster.pk, values={"on_drift": "ask"}, by=priya)
    shrunk(standing)
    gone(standing)
    standing.reconcile()
    report = check(now=standing.time)
    assert report.findings == []
    assert any("2 found changed from elsewhere" in note for note in report.notes)
    until = standing.time + timedelta(hours=1)
    for row in Drift.objects.open():
        drift_actions.ignore(
            row.pk, by=priya, reason="A course.", until=until, now=standing.time
        )
    standing.reconcile()
    assert found(standing) == []
    relabelled(standing)
    assert [promise for promise, _ in found(standing)] == ["I8"]
    standing.later(hours=2)
    assert {promise for promise, _ in found(standing)} >= {"I1", "I2", "I8"}


@pytest.mark.slow
def test_a_repair_at_the_second_try_is_one_pass_that_told_of_two_things(
    standing: Place,
) -> None:
    shrunk(standing)
    standing.kubernetes.fail("resourcequotas", "PATCH", times=1, status=403)
    standing.reconcile()
    standing.later(seconds=10)
    standing.reconcile()
    told = (
        Event.objects.about("tenancy", standing.tenancy.pk)
        .order_by("-seq")
        .values_list("kind", flat=True)
    )
    assert set(told[:2]) == {"tenancy.drift_repaired", "tenancy.converged"}
    assert found(standing) == []


@pytest.mark.slow
def test_a_cluster_that_cannot_be_read_is_noted_and_the_others_are_checked(
    standing: Place,
) -> None:
    factories.cluster("away", kubeconfig="nowhere.yaml")
    gone(standing)
    report = check(now=standing.time)
    assert [f.promise for f in report.findings] == ["I1"]
    assert any("away: not looked at. The kubeconfig" in note for note in report.notes)


@pytest.mark.slow
def test_an_api_server_that_is_registered_twice_is_compared_once(
    standing: Place,
) -> None:
    twin = factories.cluster("twin", kubeconfig=standing.cluster.kubeconfig)
    report = check(now=standing.time)
    assert report.findings == []
    why = "This API server is registered as Training already."
    assert f"twin: not looked at. {why}" in report.notes
    Cluster.objects.filter(pk=twin.pk).update(identity="another")
    report = check(now=standing.time)
    assert report.findings == []
    assert any("leads to another cluster than before" in one for one in report.notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["-----BEGIN CERTIFICATE-----\nMIIB\n", "[1, 2]\n", "clusters: 7\n", ""]
)
def test_a_kubeconfig_that_is_none_is_noted_and_the_others_are_checked(
    standing: Place, text: str
) -> None:
    (Path(django_settings.ENV.kubeconfig_dir) / "ca.pem").write_text(text)
    factories.cluster("another", kubeconfig="ca.pem")
    gone(standing)
    report = check(now=standing.time)
    assert [f.promise for f in report.findings] == ["I1"]
    assert any(
        "another: not looked at. cannot use the kubeconfig" in note
        for note in report.notes
    )


@pytest.mark.slow
def test_an_entry_that_breaks_the_check_is_a_finding_and_the_others_are_checked(
    standing: Place,
) -> None:
    factories.cluster(
        "another", kubeconfig=standing.cluster.kubeconfig, delivery="apply"
    )
    Cluster.objects.filter(name="another").update(context="it")
    tenancy = factories.tenancy(
        standing.tenancy.team, Cluster.objects.get(name="another")
    )
    Tenancy.objects.filter(pk=tenancy.pk).update(generation=1, spec={})
    # Both entries lead to one API server, which nobody has seen yet.
    Cluster.objects.update(identity="")
    gone(standing)
    report = check(now=standing.time)
    assert ("I8", "another", "It could not be checked: KeyError.") in [
        (f.promise, f.subject, f.words) for f in report.findings
    ]
    assert "I1" in {f.promise for f in report.findings}


@pytest.mark.slow
def test_the_command_says_what_holds_and_ends_with_1_when_something_does_not(
    standing: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("check_invariants")
    assert (
        "I4   No budget is overspent, and the ledger agrees with it: holds"
        in capsys.readouterr().out
    )
    gone(standing)
    call_command("check_invariants", "--database-only")
    assert "I8" not in capsys.readouterr().out.partition("Clusters:")[0]
    with pytest.raises(CommandError, match="1 found, of 1 promises"):
        call_command("check_invariants")
    assert "Try again" in capsys.readouterr().out


@pytest.mark.slow
def test_the_nightly_look_leaves_an_event_only_when_something_is_wrong(
    standing: Place, caplog: pytest.LogCaptureFixture
) -> None:
    check_invariants()
    told = Event.objects.filter(kind="invariants.broken")
    assert not caplog.records
    assert not told.exists()
    Allocation.objects.update(ended_at=standing.time, end_reason="expired")
    check_invariants()
    assert any("I2" in record.getMessage() for record in caplog.records)
    assert told.get().details["promises"]["I2"] >= 1
