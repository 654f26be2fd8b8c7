"""What is copied of a cluster with Volcano: in the form of Kueue's objects, with the times of first sight."""

from typing import Any

import pytest
from django.utils import timezone

from fleet.models import Cluster
from tests import factories
from tests.provisioning.test_kueue_form import LATER, OWNER, group, job, queue, said
from workloads.models import ClusterObject, Feed
from workloads.reading.work import job_of, workload_of
from workloads.watching import feeds
from workloads.watching.kept import KINDS, WITH_VOLCANO, copy_of, in_form, kinds_of

FLAVOR_OF = {"nvidia.com/gpu": "a100"}
NAMESPACES = frozenset({"qm-nlp"})
RENEWED = "2026-11-01T11:00:00Z"


def test_each_cluster_is_asked_for_the_kinds_that_it_has() -> None:
    assert kinds_of("kueue") == KINDS
    assert kinds_of("volcano") == WITH_VOLCANO
    assert not any(api.startswith("kueue") for api, _ in WITH_VOLCANO.values())


def test_a_podgroup_is_copied_as_the_workload_of_its_job() -> None:
    body = copy_of(in_form(group("Running", conditions=[said("Scheduled")]), FLAVOR_OF))
    found = workload_of(body)
    assert (body["kind"], str(found.key), found.key.uid) == (
        "Workload",
        "VolcanoJob train",
        "job-1",
    )
    assert (found.gpus, found.flavors, found.cluster_queue) == (4, ("a100",), "qm-nlp")


def test_of_a_volcano_job_nothing_of_its_pods_but_their_gpus_is_copied() -> None:
    made = job("Running", "Pending", "Running")
    container = {
        "name": "main",
        "env": [{"name": "PASSWORD", "value": "hunter2"}],
        "args": ["--token=hunter2"],
        "resources": {"limits": {"nvidia.com/gpu": "2"}},
    }
    task = {
        "name": "worker",
        "replicas": 3,
        "template": {"spec": {"containers": [container]}},
    }
    body = copy_of(
        in_form({**made, "spec": {**made["spec"], "tasks": [task]}}, FLAVOR_OF)
    )
    assert "hunter2" not in str(body)
    assert body["spec"] == {
        "queue": "qm-nlp",
        "priorityClassName": "",
        "parallelism": 1,
        "gpus": 6,
    }
    found = job_of(body)
    assert (found.key.kind, found.queue, found.phase) == (
        "VolcanoJob",
        "qm-nlp",
        "Running",
    )


def test_a_pod_keeps_by_what_it_belongs_to_its_group_and_its_job() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-0",
            "annotations": {
                "scheduling.k8s.io/group-name": "train-job-1",
                "secret": "hunter2",
            },
            "ownerReferences": [OWNER],
        },
        "spec": {},
    }
    meta = copy_of(in_form(pod, FLAVOR_OF))["metadata"]
    assert meta["annotations"] == {"scheduling.k8s.io/group-name": "train-job-1"}
    assert meta["ownerReferences"][0]["kind"] == "VolcanoJob"


@pytest.fixture
def feed(db: None) -> Feed:
    """The feed of the work of a cluster with Volcano."""
    cluster = factories.cluster("gang", queueing="volcano")
    factories.flavor(cluster, "a100")
    return Feed.objects.create(
        cluster=Cluster.objects.get(pk=cluster.pk),
        kind="Workload",
        holder="me",
        lease_until=timezone.now(),
    )


def since(kind: str = "Admitted") -> str:
    [row] = ClusterObject.objects.all()
    rows = row.body["status"]["conditions"]
    return next(str(one["lastTransitionTime"]) for one in rows if one["type"] == kind)


def running(at: str, **metadata: Any) -> dict[str, Any]:
    return group("Running", conditions=[said("Scheduled", at=at)], metadata=metadata)


def test_a_time_that_volcano_renews_is_that_of_the_first_sight(feed: Feed) -> None:
    now = timezone.now()
    feeds.change(feed, "ADDED", group("Pending"), namespaces=NAMESPACES, now=now)
    feeds.change(feed, "MODIFIED", running(LATER), namespaces=NAMESPACES, now=now)
    assert since() == LATER
    feeds.change(feed, "MODIFIED", running(RENEWED), namespaces=NAMESPACES, now=now)
    assert since() == LATER
    feeds.replace(feed, [running(RENEWED)], namespaces=NAMESPACES, now=now)
    assert since() == LATER


def test_another_group_of_the_same_name_has_times_of_its_own(feed: Feed) -> None:
    now = timezone.now()
    feeds.replace(feed, [running(LATER)], namespaces=NAMESPACES, now=now)
    feeds.replace(feed, [running(RENEWED, uid="pg-2")], namespaces=NAMESPACES, now=now)
    assert since() == RENEWED


def test_a_queue_is_copied_with_the_flavors_of_the_cluster(feed: Feed) -> None:
    queues = Feed.objects.create(
        cluster=feed.cluster,
        kind="ClusterQueue",
        holder="me",
        lease_until=timezone.now(),
    )
    feeds.replace(queues, [queue()], namespaces=NAMESPACES, now=timezone.now())
    [row] = ClusterObject.objects.filter(kind="ClusterQueue")
    [group_] = row.body["spec"]["resourceGroups"]
    assert [one["name"] for one in group_["flavors"]] == ["a100"]


def test_a_cluster_with_volcano_has_a_feed_for_each_of_its_kinds(db: None) -> None:
    factories.cluster("gang", queueing="volcano", kubeconfig="gang.yaml")
    factories.cluster("training", kubeconfig="training.yaml")
    feeds.declare()
    by_cluster = {
        name: set(
            Feed.objects.filter(cluster__name=name).values_list("kind", flat=True)
        )
        for name in ("gang", "training")
    }
    assert by_cluster == {"gang": set(WITH_VOLCANO), "training": set(KINDS)}
