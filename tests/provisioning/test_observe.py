"""Looking at clusters: whether they answer, how many GPUs they have, and what every tenancy shares."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from accounts.roles import Role
from audit.models import Event
from connectors import kubernetes as connector
from connectors.patience import MOST_TRIES
from fleet.models import Cluster, Flavor
from notices.models import Notice
from provisioning import throttle
from provisioning.clusters.capacity import tally
from provisioning.clusters.observe import look_at
from provisioning.models import ClusterThrottle
from reconciling import breaker
from tests import factories
from tests.provisioning.conftest import Place
from tests.scene import NOW

COHORT, RESOURCE_FLAVOR = (
    ("kueue.x-k8s.io/v1beta2", "Cohort"),
    ("kueue.x-k8s.io/v1beta2", "ResourceFlavor"),
)
PRIORITY, NODE = ("kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass"), ("v1", "Node")


def totals(place: Place) -> dict[str, int]:
    return dict(
        Flavor.objects.filter(cluster=place.cluster).values_list("name", "gpus_total")
    )


def look(place: Place) -> bool:
    return look_at(place.cluster.pk, now=place.now)


def row(place: Place) -> Cluster:
    return Cluster.objects.get(pk=place.cluster.pk)


def test_it_counts_gpus_by_flavor_and_puts_the_shared_objects_there(
    place: Place,
) -> None:
    assert look(place)
    assert totals(place) == {"a100": 24, "h100": 16}
    found = row(place)
    assert (found.reachable, found.message, found.version) == (True, "", "v1.36.2")
    assert (found.last_contact_at, found.looked_at) == (place.time, place.time)
    assert place.kubernetes.names(COHORT) == {"quartermaster"}
    assert place.kubernetes.names(RESOURCE_FLAVOR) == {
        "quartermaster-cpu",
        "a100",
        "h100",
    }
    assert len(place.kubernetes.names(PRIORITY)) == 4
    written = place.kubernetes.writes
    assert look(place)
    assert place.kubernetes.writes == written == 12


def test_a_node_that_is_not_ready_or_cordoned_gives_no_gpus(place: Place) -> None:
    place.kubernetes.patch(NODE, "a100-0", None, {"spec": {"unschedulable": True}})
    conditions = [
        {
            "type": "Ready",
            "status": "False",
            "reason": "KubeletNotReady",
            "message": "gone",
        }
    ]
    path = f"{connector.path(NODE, None, 'a100-1')}/status"
    place.kubernetes.write("PATCH", path, {"status": {"conditions": conditions}})
    look(place)
    assert totals(place) == {"a100": 8, "h100": 16}


def test_fewer_gpus_than_are_allocated_leave_none_free(place: Place) -> None:
    look(place)
    Flavor.objects.filter(pk=place.a100.pk).update(allocated=20)
    for number in range(3):
        place.kubernetes.patch(
            NODE, f"a100-{number}", None, {"spec": {"unschedulable": True}}
        )
    look(place)
    flavor = Flavor.objects.get(pk=place.a100.pk)
    assert (flavor.gpus_total, flavor.allocated, flavor.free, flavor.take(1)) == (
        0,
        20,
        0,
        False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"status": 401}, "401 Unauthorized"),
        ({"status": 403}, "403 Forbidden"),
        ({"status": 503}, "503 ServiceUnavailable"),
        ({"hang": 0.6}, "timed out"),
    ],
)
def test_a_cluster_that_does_not_answer_says_so_and_keeps_what_was_known(
    place: Place, fault: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "TIMEOUT", (1.0, 0.3))
    look(place)
    seen = place.time
    place.later(minutes=1)
    place.kubernetes.fail(times=MOST_TRIES if fault == {"status": 503} else 1, **fault)
    assert not look(place)
    found = row(place)
    assert words in found.message
    assert (found.reachable, found.last_contact_at, found.looked_at) == (
        False,
        seen,
        place.time,
    )
    assert (found.version, totals(place)) == ("v1.36.2", {"a100": 24, "h100": 16})
    assert look(place)
    assert (row(place).reachable, row(place).message) == (True, "")


def test_losing_and_finding_a_cluster_is_told_once_each(place: Place) -> None:
    for fails in (False, False, True, True, False):
        if fails:
            place.kubernetes.fail(times=MOST_TRIES, status=503)
        look(place)
    kinds = (
        Event.objects.about("cluster", place.cluster.pk)
        .order_by("seq")
        .values_list("kind", flat=True)
    )
    assert list(kinds) == ["cluster.unreachable", "cluster.reachable"]


def test_leads_hear_once_of_a_cluster_that_stays_away_and_once_that_it_is_back(
    place: Place,
) -> None:
    lead = factories.person("Priya Raman", Role.PLATFORM_LEAD)

    def told() -> list[str]:
        rows = Notice.objects.filter(kind="cluster_away", person=lead).order_by("pk")
        return [row.message["title"] for row in rows]

    def looked(*, fails: bool) -> None:
        if fails:
            place.kubernetes.fail(times=1, status=401)
        look(place)
        place.later(minutes=2)

    looked(fails=False)
    began = place.time
    looked(fails=True)
    assert row(place).away_since == began
    looked(fails=False)
    assert (row(place).away_since, told()) == (None, [])
    for _ in range(5):
        looked(fails=True)
    [title] = told()
    assert title.startswith("Training refuses the portal since ")
    looked(fails=False)
    looked(fails=False)
    assert told()[1:] == ["Training is back"]
    assert (row(place).away_since, row(place).away_told_at) == (None, None)


def test_a_cluster_that_is_away_while_it_is_maintained_alarms_nobody_before_that_ends(
    place: Place,
) -> None:
    lead = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    told = Notice.objects.filter(kind="cluster_away", person=lead)
    Cluster.objects.update(
        maintenance_starts_at=place.time,
        maintenance_ends_at=place.time + timedelta(minutes=7),
    )
    for minutes in (0, 2, 4, 6, 8, 10):
        place.kubernetes.fail(times=1, status=401)
        look(place)
        assert not told.exists(), minutes
        place.later(minutes=2)
    place.kubernetes.fail(times=1, status=401)
    look(place)
    assert told.count() == 1


def test_of_a_cluster_out_of_use_without_teams_nobody_is_told(place: Place) -> None:
    factories.person("Priya Raman", Role.PLATFORM_LEAD)
    place.cluster.tenancies.all().delete()
    Cluster.objects.update(enabled=False)
    for _ in range(5):
        place.kubernetes.fail(times=1, status=401)
        look(place)
        place.later(minutes=2)
    assert not Notice.objects.exists()


def test_one_cluster_that_is_away_does_not_keep_others_from_being_looked_at(
    place: Place,
) -> None:
    away = factories.cluster("away", kubeconfig="not-there.yaml")
    assert not look_at(away.pk, now=place.now)
    assert look(place)
    assert (
        Cluster.objects.get(pk=away.pk).message
        == "The kubeconfig not-there.yaml is not there."
    )


def test_a_file_that_is_no_kubeconfig_is_said_and_breaks_nothing(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text(
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    )
    wrong = factories.cluster("wrong", kubeconfig="ca.pem")
    assert not look_at(wrong.pk, now=place.now)
    assert Cluster.objects.get(pk=wrong.pk).message.startswith(
        "cannot use the kubeconfig"
    )


def test_a_list_whose_pages_are_forgotten_twice_running_is_tried_again_soon(
    place: Place,
) -> None:
    place.reconcile()
    place.later(minutes=2)
    place.kubernetes.fail(
        where="limit=500|resourcequotas", method="GET", times=2, status=410
    )
    place.reconcile()
    assert place.row.ready["reason"] == "WillTryAgain"
    assert place.row.requeue_at - place.time < timedelta(seconds=10)


def test_a_cohort_of_somebody_elses_is_not_taken_over(place: Place) -> None:
    theirs = {
        "apiVersion": COHORT[0],
        "kind": COHORT[1],
        "metadata": {"name": "quartermaster"},
    }
    place.kubernetes.create(theirs)
    before = place.kubernetes.get(COHORT, "quartermaster")
    assert not look(place)
    assert (
        row(place).message
        == "Cohort quartermaster exists and is not ours; it was not touched."
    )
    assert place.kubernetes.get(COHORT, "quartermaster") == before


def test_a_taint_without_a_value_is_no_obstacle(place: Place) -> None:
    Flavor.objects.filter(pk=place.a100.pk).update(
        node_taints=[{"key": "gpu", "effect": "NoSchedule"}]
    )
    assert look(place)


def node(
    gpus: Any = "8", *, ready: str = "True", unschedulable: bool = False, **labels: str
) -> dict[str, Any]:
    status: dict[str, Any] = {"conditions": [{"type": "Ready", "status": ready}]}
    if gpus is not None:
        status["allocatable"] = {"nvidia.com/gpu": gpus}
    return {
        "metadata": {"labels": labels},
        "spec": {"unschedulable": unschedulable},
        "status": status,
    }


def test_gpus_are_counted_for_the_flavor_whose_labels_a_node_carries() -> None:
    plain = Flavor(pk=1, name="a100", node_labels={"gpu": "a100"})
    spot = Flavor(pk=2, name="a100-spot", node_labels={"gpu": "a100", "spot": "yes"})
    nodes = [
        node(gpu="a100"),
        node(gpu="a100", spot="yes"),
        node("4", gpu="a100", spot="no"),
        node(gpu="t4"),
        node(None, gpu="a100"),
        node(gpu="a100", ready="False"),
        node(gpu="a100", ready="Unknown"),
        node(gpu="a100", unschedulable=True),
        {"metadata": {}, "spec": {}, "status": {}},
        {"metadata": {"labels": None}},
    ]
    assert tally(nodes, [plain, spot], now=NOW).ready == Counter({1: 12, 2: 8})
    assert tally(nodes, [spot, plain], now=NOW).ready == Counter({1: 12, 2: 8})
    assert tally([], [plain], now=NOW).ready == Counter()


def test_a_count_in_thousands_and_one_that_is_no_number_end_no_look() -> None:
    plain = Flavor(pk=1, name="a100", node_labels={})
    assert tally([node("1k"), node("many"), node()], [plain], now=NOW).ready == (
        Counter({1: 1008})
    )


def test_a_flavor_without_labels_takes_no_node_of_another() -> None:
    anything, named = (
        Flavor(pk=1, node_labels={}),
        Flavor(pk=2, node_labels={"gpu": "a100"}),
    )
    assert tally(
        [node(gpu="a100"), node(gpu="t4")], [anything, named], now=NOW
    ).ready == Counter({1: 8, 2: 8})


def test_it_notes_which_kueue_runs(place: Place) -> None:
    assert look(place)
    assert Cluster.objects.get().kueue_version == "v0.19.2"


def test_a_cluster_without_kueue_cannot_be_used_and_says_so(place: Place) -> None:
    place.kubernetes.fail(r"^/apis/kueue\.x-k8s\.io$", status=404)
    assert not look(place)
    assert (
        Cluster.objects.get().message
        == "Kueue is not installed: install 0.16 or newer."
    )


def test_a_cluster_that_keeps_people_waiting_is_left_alone_and_looked_at_by_one(
    place: Place,
) -> None:
    assert look(place)
    breaker.open_everywhere(throttle.of(place.cluster), seconds=5, now=place.time)
    with throttle.probe(
        Cluster.objects.select_related("throttle").get(), now=place.now
    ) as may:
        assert may
        asked = dict(place.kubernetes.cluster.requests)
        assert look(place), "as it was seen last"
    Cluster.objects.update(reachable=False)
    assert not look(place), "nobody has to find out that it does not answer"
    assert place.kubernetes.cluster.requests == asked
    place.later(seconds=6)
    assert look(place)
    assert ClusterThrottle.objects.get().open_until is None
