"""What nodes run is read with their GPUs, and kept while a pool has no node."""

from datetime import timedelta
from typing import Any

import pytest

from accounts.roles import Role
from fleet.flavors.actions import change_flavor
from fleet.models import Flavor
from provisioning.clusters.capacity import tally
from provisioning.clusters.observe import look_at
from tests import factories
from tests.provisioning.conftest import Place
from tests.scene import NOW

NODE = ("v1", "Node")
DRIVER = "nvidia.com/cuda.driver-version.full"
CUDA = "nvidia.com/cuda.runtime-version.full"


def label(place: Place, driver: str, *names: str, cuda: str = "12.8") -> None:
    for name in names:
        labels = {DRIVER: driver, CUDA: cuda}
        place.kubernetes.patch(NODE, name, None, {"metadata": {"labels": labels}})


def look(place: Place) -> None:
    assert look_at(place.cluster.pk, now=place.now)


def a100(place: Place) -> Flavor:
    return Flavor.objects.get(pk=place.a100.pk)


def test_a_look_at_the_nodes_reads_what_they_run(place: Place) -> None:
    label(place, "570.86.15", "a100-0", "a100-1")
    label(place, "550.90.07", "a100-2", cuda="12.4")
    look(place)

    found = a100(place)

    assert found.versions == {
        "nodes": 3,
        "kubelet": [{"version": "v1.36.2", "nodes": 3}],
        "driver": [
            {"version": "570.86.15", "nodes": 2},
            {"version": "550.90.07", "nodes": 1},
        ],
        "cuda": [{"version": "12.8", "nodes": 2}, {"version": "12.4", "nodes": 1}],
        "runtime": [{"version": "containerd 2.1.0", "nodes": 3}],
        "os": [{"version": "Ubuntu 24.04 LTS", "nodes": 3}],
        "kernel": [{"version": "6.8.0", "nodes": 3}],
        "product": [{"version": "", "nodes": 3}],
    }
    assert found.versions_at == place.time
    assert found.driver_words == (
        "driver 570.86.15 or 550.90.07, CUDA up to 12.8 or 12.4"
    )


def test_it_takes_no_call_more_than_the_nodes_themselves(place: Place) -> None:
    look(place)
    asked = place.kubernetes.cluster.requests
    before = sum(asked.values())
    look(place)
    a_look = sum(asked.values()) - before
    label(place, "570.86.15", "a100-0")
    before = sum(asked.values())
    look(place)
    assert sum(asked.values()) - before == a_look


def test_a_pool_without_nodes_keeps_what_its_last_ones_ran(place: Place) -> None:
    label(place, "570.86.15", "a100-0", "a100-1", "a100-2")
    change_flavor(
        place.a100.pk,
        values={"max_nodes": 3},
        by=factories.person("Priya", Role.PLATFORM_LEAD),
    )
    look(place)
    seen_at = place.time
    for name in ("a100-0", "a100-1", "a100-2"):
        place.kubernetes.delete(NODE, name)
    place.time += timedelta(hours=1)
    look(place)

    found = a100(place)

    assert (found.gpus_ready, found.gpus_seen_at) == (0, place.time)
    assert found.versions["driver"] == [{"version": "570.86.15", "nodes": 3}]
    assert found.versions_at == seen_at


def test_a_list_of_nodes_that_is_not_believed_changes_no_version(place: Place) -> None:
    label(place, "570.86.15", "a100-0", "a100-1", "a100-2")
    look(place)
    for name in place.kubernetes.names(NODE) - {"a100-2"}:
        place.kubernetes.delete(NODE, name)
    label(place, "550.90.07", "a100-2")
    look(place)

    assert a100(place).versions["driver"] == [{"version": "570.86.15", "nodes": 3}]


@pytest.mark.parametrize(
    ("values", "is_known"),
    [({"node_labels": {"accelerator": "other"}}, False), ({"cpu_per_gpu": 9}, True)],
)
def test_a_kind_that_is_other_nodes_now_tells_nothing_of_those_before(
    place: Place, values: dict[str, Any], is_known: bool
) -> None:
    look(place)
    priya = factories.person("Priya", Role.PLATFORM_LEAD)

    change_flavor(place.a100.pk, values=values, by=priya)

    found = a100(place)
    assert (found.versions_at is not None, bool(found.versions)) == (is_known, is_known)


def node(name: str, resources: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"gpu": "a100"}},
        "spec": spec,
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            **resources,
        },
    }


def test_which_nodes_are_of_a_kind() -> None:
    """One with slices belongs to each of its profiles; one whose driver is being replaced has GPUs, and gives none."""
    whole = Flavor(pk=1, node_labels={"gpu": "a100"}, resource="nvidia.com/gpu")
    cut = Flavor(pk=2, node_labels={"gpu": "a100"}, resource="nvidia.com/mig-1g.10gb")
    nodes = [
        node("ready", {"allocatable": {"nvidia.com/gpu": "8"}}),
        node(
            "replaced",
            {"capacity": {"nvidia.com/gpu": "0"}, "allocatable": {}},
            unschedulable=True,
        ),
        node(
            "mixed",
            {"allocatable": {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "7"}},
        ),
        node("without", {"allocatable": {"cpu": "4"}}),
        node(
            "going",
            {"allocatable": {"nvidia.com/gpu": "8"}},
            taints=[{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}],
        ),
    ]

    found = tally(nodes, [whole, cut], now=NOW).nodes

    named = {pk: [one["metadata"]["name"] for one in of] for pk, of in found.items()}
    assert named == {1: ["ready", "replaced", "mixed"], 2: ["mixed"]}
