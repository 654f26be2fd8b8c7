"""MIG slices that pods ask for by name, whoever started them: counted, called slices, explained, and stopped."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.utils import timezone

from connectors.kubernetes import path
from provisioning import reconcile
from provisioning.clusters.observe import look_at
from tests import factories
from tests.calling import Caller
from tests.services.process import wait_until
from tests.workloads.conftest import POD, Watched, is_read, watching
from tests.workloads.known import BEFORE, admitted, waiting, why, workload
from tests.workloads.test_runs_page import client, page
from workloads.board import work_of_team
from workloads.grouping import pieces_of
from workloads.listing import Work
from workloads.observed import Condition, Elsewhere, Node, Nodes, Pod, PodSet
from workloads.reading.pods import nodes_of, pod_of
from workloads.reading.work import workload_of
from workloads.reasons.words import gpu_words
from workloads.watching.kept import copy_of

GPU, SMALL, LARGE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"


def spec(
    *amounts: Mapping[str, int], before: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """A pod with a container for each of these amounts, which is prepared by one that asks for `before`."""

    def container(wanted: Mapping[str, int]) -> dict[str, Any]:
        return {
            "resources": {
                "limits": {
                    "cpu": "1",
                    **{name: str(count) for name, count in wanted.items()},
                }
            }
        }

    found: dict[str, Any] = {"containers": [container(one) for one in amounts]}
    return found | ({"initContainers": [container(before)]} if before else {})


def test_a_pods_slices_are_counted_by_profile_beside_its_whole_gpus() -> None:
    found = pod_of(
        {"spec": spec({SMALL: 2}, {SMALL: 1, GPU: 1}, before={LARGE: 1, SMALL: 1})}
    )
    assert (found.gpus, found.slices) == (5, (("1g.10gb", 3), ("3g.40gb", 1)))
    assert pod_of({"spec": spec({GPU: 4})}).slices == ()


@pytest.mark.parametrize(
    ("gpus", "slices", "words"),
    [
        (4, (), "4 GPUs"),
        (2, (("1g.10gb", 2),), "2 × 1g.10gb slice"),
        (
            4,
            (("1g.10gb", 2), ("3g.40gb", 1)),
            "1 GPU, 2 × 1g.10gb slice, 1 × 3g.40gb slice",
        ),
        (0, (), ""),
    ],
)
def test_slices_are_called_slices(
    gpus: int, slices: tuple[tuple[str, int], ...], words: str
) -> None:
    assert gpu_words(gpus, slices) == words


def test_what_is_copied_of_workloads_and_jobs_tells_their_slices() -> None:
    pods = {"template": {"spec": spec({SMALL: 2})}}
    kueues = {
        "kind": "Workload",
        "metadata": {"uid": "w"},
        "spec": {"podSets": [{"name": "m", "count": 3, **pods}]},
    }
    job = {
        "kind": "Job",
        "metadata": {"uid": "j", "name": "by-hand"},
        "spec": {"parallelism": 2, **pods},
    }
    for copied in (kueues, copy_of(kueues)):
        found = workload_of(copied)
        assert (found.gpus, found.slices) == (6, (("1g.10gb", 6),))
    for copied in (job, copy_of(job)):
        [piece] = pieces_of([], [copied], [])
        assert (piece.gpus, piece.slices) == (4, (("1g.10gb", 4),))
    pod = {
        "kind": "Pod",
        "metadata": {"uid": "p", "name": "alone"},
        "spec": spec({SMALL: 1}),
    }
    [piece] = pieces_of([], [], [copy_of(pod)])
    assert (piece.gpus, piece.slices) == (1, (("1g.10gb", 1),))
    assert "slices" not in str(
        copy_of({**job, "spec": {"template": {"spec": spec({GPU: 1})}}})
    )


def test_a_node_of_several_profiles_is_told_once_for_each_with_its_flavor() -> None:
    labels = {"nvidia.com/mig.config": "all-balanced"}
    node = {
        "metadata": {"name": "n", "labels": labels},
        "status": {"allocatable": {GPU: "0", SMALL: "14", LARGE: "2", "cpu": "64"}},
    }
    pod = {"spec": {**spec({SMALL: 3}), "nodeName": "n"}}
    small, large = nodes_of(
        [node], [pod], {"a": labels, "b": labels}, {"a": "3g.40gb", "b": "1g.10gb"}
    )
    assert (small.flavor, small.profile, small.gpus, small.used) == (
        "b",
        "1g.10gb",
        14,
        3,
    )
    assert (large.flavor, large.profile, large.free) == ("a", "3g.40gb", 2)
    assert nodes_of([node], [], {"whole": labels})[0].flavor == ""


MIXED = Nodes(
    [
        Node(name="whole", flavor="a100", gpus=8),
        Node(name="cut", flavor="small", profile="1g.10gb", gpus=14, used=13),
        Node(name="cut", flavor="large", profile="3g.40gb", gpus=2),
    ]
)


def test_a_node_without_free_slices_is_told_of_slices_and_of_no_others() -> None:
    message = "0/2 nodes are available: 2 Insufficient nvidia.com/mig-1g.10gb. preemption: 0/2 nodes are available."
    said = Condition("PodScheduled", False, "Unschedulable", message, BEFORE)
    pod = Pod(name="bert-0", gpus=4, slices=(("1g.10gb", 4),), unscheduled=said)
    found = why(admitted(), pods=(pod,), nodes=MIXED)
    assert found.code == "no_room_on_nodes"
    assert "no node has enough free 1g.10gb slices now" in found.what
    assert (
        "One pod takes 4 1g.10gb slices, and the largest room on one node is 1."
        in found.what
    )


def test_whole_gpus_beyond_a_node_are_not_taken_for_its_slices() -> None:
    whole = why(workload({}, pod_sets=(PodSet("main", 1, 12),)), nodes=MIXED)
    assert (
        whole.code,
        "asks for 12 GPUs; the largest node of training-westeurope has 8" in whole.what,
    ) == (
        "larger_than_node",
        True,
    )
    slices = why(
        workload({}, pod_sets=(PodSet("main", 1, 3, (("3g.40gb", 3),)),)), nodes=MIXED
    )
    assert (
        "asks for 3 × 3g.40gb slice; the largest node of training-westeurope has 2"
        in slices.what
    )
    assert "Spread it over 2 nodes with 2 × 3g.40gb slice each" in slices.do
    fits = why(
        workload({}, pod_sets=(PodSet("main", 1, 14, (("1g.10gb", 14),)),)), nodes=MIXED
    )
    assert fits.code != "larger_than_node"


def test_slices_are_no_place_for_a_job_of_whole_gpus() -> None:
    full = "insufficient unused quota for nvidia.com/gpu in flavor a100, 8 more needed"
    there = Elsewhere(
        "training",
        "Training",
        "small",
        "A100 1g.10gb slice",
        14,
        14,
        "team-nlp",
        "1g.10gb",
    )
    step = why(waiting(full), elsewhere=(there,)).step
    assert step is None or "slice" not in step.label
    cut = waiting(full, pod_sets=(PodSet("main", 2, 4, (("1g.10gb", 4),)),))
    step = why(cut, elsewhere=(there,)).step
    assert step is not None
    assert step.label == "Use 8 × A100 1g.10gb slice on Training: free now"


def test_a_profile_that_the_queue_does_not_have_is_called_by_it() -> None:
    found = why(waiting("resource nvidia.com/mig-7g.80gb unavailable in ClusterQueue"))
    assert (
        found.what
        == "It asks for 7g.80gb slices, which your queue does not give at all."
    )


def work(watched: Watched) -> dict[str, Work]:
    return {
        one.key.name: one
        for one in work_of_team(watched.team, by=watched.ada, now=timezone.now()).work
    }


@pytest.fixture
def cut(watched: Watched) -> Watched:
    """The team holds 2 slices of a node that is cut into 7, beside its whole GPUs."""
    labels = {"nvidia.com/mig.config": "all-1g.10gb"}
    taint = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
    node = path(("v1", "Node"), None, "a100-2")
    watched.kubernetes.write(
        "PATCH", node, {"metadata": {"labels": {"accelerator": "cut", **labels}}}
    )
    room = {GPU: "0", SMALL: "7"}
    watched.kubernetes.write(
        "PATCH", f"{node}/status", {"status": {"capacity": room, "allocatable": room}}
    )
    flavor = factories.flavor(
        watched.cluster,
        "a100-1g",
        memory_gb=10,
        resource=SMALL,
        gpus_per_node=7,
        node_labels=labels,
        node_taints=[taint],
    )
    # Which makes its ResourceFlavor.
    assert look_at(watched.cluster.pk, now=timezone.now)
    factories.allocation(watched.ada, watched.tenancy, flavor, gpus=2)
    watched.tenancy.refresh_from_db()
    reconcile.reconcile(watched.tenancy.pk, now=timezone.now)
    return watched


def by_hand(watched: Watched, name: str, slices: int, *, kind: str = "Pod") -> None:
    """Somebody starts something with kubectl that asks for slices."""
    resources = {"limits": {SMALL: str(slices), "cpu": "1", "memory": "1Gi"}}
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "x:1", "resources": resources}],
    }
    head = {
        "name": name,
        "namespace": watched.namespace,
        "labels": {"kueue.x-k8s.io/queue-name": "default"},
    }
    job = {"parallelism": 1, "completions": 1, "template": {"spec": pod}}
    version, found = ("v1", pod) if kind == "Pod" else ("batch/v1", job)
    watched.kubernetes.create(
        {"apiVersion": version, "kind": kind, "metadata": head, "spec": found}
    )


@pytest.mark.slow
def test_slices_of_pods_and_jobs_made_by_hand_are_told_on_the_page_by_the_api_and_stopped(
    cut: Watched,
) -> None:
    caller = Caller(cut.ada)
    with watching(cut.kubernetes):
        wait_until(is_read, what="everything to be listed")
        by_hand(cut, "alone", 2)
        wait_until(
            lambda: "alone" in work(cut) and work(cut)["alone"].state == "running",
            what="the pod to run",
        )
        by_hand(cut, "waits", 1, kind="Job")
        by_hand(cut, "never", 4, kind="Job")
        wait_until(
            lambda: (
                {"waits", "never"} <= work(cut).keys()
                and {"quota_full", "larger_than_quota"}
                <= {one.why.code for one in work(cut).values()}
            ),
            what="the jobs to wait",
        )
        lines = {
            one["name"]: one
            for one in caller.get(f"work/{cut.team.slug}/").json()["work"]
        }
        alone = lines["alone"]
        assert (alone["kind"], alone["gpus"], alone["held"], alone["flavors"]) == (
            "Pod",
            2,
            2,
            ["a100-1g"],
        )
        assert [one["slices"] for one in lines.values()] == [
            {"1g.10gb": one["gpus"]} for one in lines.values()
        ]
        assert lines["waits"]["why"]["what"].startswith(
            "It waits for 1 × A100 1g.10gb slice more."
        )
        assert lines["never"]["why"]["what"].startswith(
            "It asks for 4 × A100 1g.10gb slice; your queue can never"
        )

        shown = page(client(cut.ada).get(f"/teams/{cut.team.slug}/work")).words
        assert "2 × 1g.10gb slice" in shown
        assert "4 × 1g.10gb slice" in shown

        queue = page(client(cut.ada).get(f"/clusters/{cut.cluster.name}/queue")).words
        assert "A100 1g.10gb slice: 2 in use, 2 guaranteed" in queue
        rooms = {
            one["flavor"]: one
            for one in caller.get(f"queues/{cut.cluster.name}/").json()["free"]
        }
        assert (rooms["a100-1g"]["free"], rooms["a100"]["free"]) == (5, 16)

        target = {
            name: alone[name]
            for name in ("cluster", "namespace", "kind", "name", "uid")
        }
        assert caller.post(f"work/{cut.team.slug}/stop/", target).status_code == 200
        wait_until(lambda: "alone" not in cut.copies("Pod"), what="the pod to be gone")
        assert cut.kubernetes.get(POD, "alone", cut.namespace) is None
        wait_until(
            lambda: work(cut)["waits"].state == "running", what="the next one to run"
        )


@pytest.mark.slow
def test_what_the_team_holds_of_them_is_called_slices(cut: Watched) -> None:
    slices = cut.cluster.flavors.get(name="a100-1g")
    assert (slices.kind, slices.words) == ("A100 1g.10gb slice", "A100 1g.10gb slice")
    ada = client(cut.ada)
    team = page(ada.get(f"/teams/{cut.team.slug}/")).words
    assert "2 × A100 1g.10gb slice" in team
    assert "Held 4 GPUs 2 A100 + 2 A100 1g.10gb slice" in team
    assert "2 × A100 1g.10gb slice" in page(ada.get("/requests/")).words
    rows = Caller(cut.ada).get("allocations/").json()["results"]
    assert {row["what"] for row in rows} == {"2 × A100", "2 × A100 1g.10gb slice"}
