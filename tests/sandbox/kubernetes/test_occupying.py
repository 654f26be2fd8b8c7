"""Use that was switched on is reported as Kueue reports the use of real workloads."""

from typing import Any

import pytest

from sandbox.kubernetes import Cluster
from tests.sandbox.kubernetes.test_cluster import TOKENS, send

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
GROUP = "kueue.x-k8s.io/v1beta2"


@pytest.fixture
def cluster() -> Cluster:
    """A cluster with a flavor of eight GPUs, a queue for four of them and a namespace that sends its work there."""
    made = Cluster("dev", tokens=TOKENS)
    quota = {"name": "nvidia.com/gpu", "nominalQuota": "4", "borrowingLimit": "4"}
    spec = {
        "namespaceSelector": {},
        "cohortName": "all",
        "resourceGroups": [
            {
                "coveredResources": ["nvidia.com/gpu"],
                "flavors": [{"name": "a100", "resources": [quota]}],
            }
        ],
    }
    for path, body in (
        ("/api/v1/namespaces", {"metadata": {"name": "vision"}}),
        (
            f"{KUEUE}/resourceflavors",
            {
                "apiVersion": GROUP,
                "kind": "ResourceFlavor",
                "metadata": {"name": "a100"},
            },
        ),
        (
            f"{KUEUE}/clusterqueues",
            {
                "apiVersion": GROUP,
                "kind": "ClusterQueue",
                "metadata": {"name": "q"},
                "spec": spec,
            },
        ),
        (
            f"{KUEUE}/namespaces/vision/localqueues",
            {
                "apiVersion": GROUP,
                "kind": "LocalQueue",
                "metadata": {"name": "default"},
                "spec": {"clusterQueue": "q"},
            },
        ),
    ):
        assert send(made, "POST", path, body).status == 201
    return made


def use(cluster: Cluster, gpus: object, **other: object) -> int:
    return send(
        cluster,
        "POST",
        "/sandbox/workloads",
        {"namespace": "vision", "flavor": "a100", "gpus": gpus} | other,
    ).status


def usage(cluster: Cluster) -> Any:
    return send(cluster, "GET", f"{KUEUE}/clusterqueues/q").json()["status"][
        "flavorsUsage"
    ][0]["resources"]


def test_without_workloads_nothing_is_in_use(cluster: Cluster) -> None:
    assert usage(cluster) == [{"borrowed": "0", "name": "nvidia.com/gpu", "total": "0"}]


def test_the_newest_word_counts_and_zero_ends_it(cluster: Cluster) -> None:
    for gpus, borrowed in ((3, "0"), (6, "2"), (0, "0"), (0, "0")):
        assert use(cluster, gpus) == 200
        assert usage(cluster) == [
            {"borrowed": borrowed, "name": "nvidia.com/gpu", "total": str(gpus)}
        ]


def test_what_is_in_use_is_a_workload_that_anybody_may_look_at(
    cluster: Cluster,
) -> None:
    use(cluster, 3)
    found = send(
        cluster, "GET", f"{KUEUE}/namespaces/vision/workloads/sandbox-a100"
    ).json()
    assert found["status"]["admission"]["clusterQueue"] == "q"


@pytest.mark.parametrize(
    "body",
    [
        {"gpus": -1},
        {"gpus": "3"},
        {"gpus": True},
        {"namespace": "nowhere"},
        {"flavor": 7},
    ],
)
def test_nonsense_is_refused(cluster: Cluster, body: dict[str, object]) -> None:
    assert use(cluster, body.pop("gpus", 1), **body) == 400
    assert usage(cluster)[0]["total"] == "0"
