"""Two portals on one cluster, which count their tenancies alike: neither ever touches what is the other's."""

from typing import Any

import pytest

from checks.invariants import check
from provisioning.clusters.installation import mark
from provisioning.drift import cluster_sweep
from provisioning.models import Tenancy
from tests.provisioning.conftest import Place
from tests.provisioning.test_leaving import gone, removing

QUEUE, NAMESPACE = ("kueue.x-k8s.io/v1beta2", "ClusterQueue"), ("v1", "Namespace")
ANOTHER = "aaaa0000"


def made_elsewhere(
    place: Place, ref: tuple[str, str], name: str, *, by: str = ANOTHER
) -> dict[str, Any]:
    """What another portal made for its tenancy of the same number."""
    marks = {
        "app.kubernetes.io/managed-by": "quartermaster",
        "quartermaster.io/tenancy": str(place.tenancy.pk),
        "quartermaster.io/installation": by,
    }
    body = {
        "apiVersion": ref[0],
        "kind": ref[1],
        "metadata": {"name": name, "labels": marks},
    }
    if ref == QUEUE:
        body["spec"] = {"namespaceSelector": {}}
    place.kubernetes.create(body)
    return stands(place, ref, name)


def stands(place: Place, ref: tuple[str, str], name: str) -> dict[str, Any]:
    found = place.kubernetes.get(ref, name)
    assert found is not None
    return found


def test_every_object_says_which_portal_it_is_of(place: Place) -> None:
    place.reconcile()
    for ref in (QUEUE, NAMESPACE):
        labels = stands(place, ref, place.tenancy.namespace)["metadata"]["labels"]
        assert labels["quartermaster.io/installation"] == mark()


def test_another_portals_tenancy_of_the_same_number_outlives_ours(place: Place) -> None:
    theirs = [
        made_elsewhere(place, QUEUE, "qm-theirs"),
        made_elsewhere(place, NAMESPACE, "qm-theirs"),
    ]
    cluster_sweep.forget(place.cluster.pk)
    place.reconcile()
    assert place.row.is_settled
    place.later(seconds=61)
    assert list(cluster_sweep.sweep(place.cluster.pk, now=place.now)) == []
    assert check(now=place.time).findings == []
    removing(place)
    gone(place)
    assert [stands(place, ref, "qm-theirs") for ref in (QUEUE, NAMESPACE)] == theirs


@pytest.mark.parametrize("ref", [QUEUE, NAMESPACE])
def test_what_another_portal_has_in_our_place_is_not_taken_over(
    place: Place, ref: tuple[str, str]
) -> None:
    theirs = made_elsewhere(place, ref, place.tenancy.namespace)
    place.reconcile()
    assert "exists and is not ours" in place.row.ready["message"]
    assert stands(place, ref, place.tenancy.namespace) == theirs


def test_what_an_earlier_version_made_gets_the_mark_at_the_next_look(
    place: Place,
) -> None:
    place.reconcile()
    name = place.tenancy.namespace
    unmarked = {"metadata": {"labels": {"quartermaster.io/installation": None}}}
    for ref in (QUEUE, NAMESPACE):
        place.kubernetes.patch(ref, name, None, unmarked)
    Tenancy.objects.update(rendered="as an earlier version wanted it")
    place.later(seconds=61)
    assert place.reconcile() == 2
    assert place.row.ready["reason"] == "AllObjectsTrue"
    assert (
        stands(place, QUEUE, name)["metadata"]["labels"][
            "quartermaster.io/installation"
        ]
        == mark()
    )
