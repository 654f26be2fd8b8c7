"""What a queue says of its use is read as it is, and nothing is made up."""

import json
from pathlib import Path
from typing import Any

import pytest

from provisioning.desired.usage import gpus_used
from tests.provisioning.conftest import Place

RECORDINGS = Path(__file__).parents[1] / "recordings"


def queue(*flavors: tuple[str, Any]) -> dict[str, Any]:
    usage = [
        {
            "name": name,
            "resources": [
                {"name": "cpu", "total": "9"},
                {"name": "nvidia.com/gpu", "total": total},
            ],
        }
        for name, total in flavors
    ]
    return {"kind": "ClusterQueue", "status": {"flavorsUsage": usage}}


def test_gpus_are_counted_by_flavor_and_processors_are_not() -> None:
    assert gpus_used(
        queue(("quartermaster-cpu", "0"), ("a100", "3"), ("h100", "0"))
    ) == {
        "a100": 3,
        "h100": 0,
    }


@pytest.mark.parametrize("status", [None, {}, {"conditions": []}])
def test_a_queue_that_says_nothing_is_not_one_that_is_idle(status: Any) -> None:
    assert gpus_used({"status": status}) is None


@pytest.mark.parametrize("total", [None, "", "1.5", "-1", "1Ki", {}, "9" * 40])
def test_what_is_no_number_of_gpus_counts_as_none(total: Any) -> None:
    assert gpus_used(queue(("a100", total))) == {"a100": 0}


def test_thousands_are_counted_as_the_api_server_writes_them() -> None:
    assert gpus_used(queue(("a100", "2k"))) == {"a100": 2000}


def test_a_pass_keeps_what_workloads_use_and_writes_nothing_for_it(
    place: Place,
) -> None:
    place.reconcile()
    assert (place.row.used, place.row.used_at) == (None, None)
    place.later(minutes=1)
    assert place.reconcile() == 0
    assert place.row.used == {"a100": 0, "h100": 0}
    place.kubernetes.write(
        "POST",
        "/sandbox/workloads",
        {"namespace": place.tenancy.namespace, "flavor": "a100", "gpus": 3},
    )
    place.later(minutes=1)
    assert place.reconcile() == 0
    assert (place.row.used, place.row.used_at) == ({"a100": 3, "h100": 0}, place.time)


def test_a_cluster_that_fails_leaves_the_last_use_with_its_time(place: Place) -> None:
    place.reconcile()
    place.later(minutes=1)
    place.reconcile()
    seen = place.row.used_at
    place.later(minutes=1)
    place.kubernetes.fail(status=503)
    place.reconcile()
    assert (place.row.used, place.row.used_at) == ({"a100": 0, "h100": 0}, seen)


def test_a_real_clusters_answer_is_read() -> None:
    steps = json.loads((RECORDINGS / "10c-borrow-reclaim.json").read_text())
    found = [
        step["response"]["body"]
        for step in steps
        if isinstance(step["response"].get("body"), dict)
        and step["response"]["body"].get("kind") == "ClusterQueue"
    ]
    assert found
    assert any(
        max(used.values(), default=0) > 0
        for one in found
        if (used := gpus_used(one)) is not None
    )
