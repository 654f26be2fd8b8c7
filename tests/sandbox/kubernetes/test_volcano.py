"""A cluster with Volcano: what it serves, what it was born with, and that it knows nothing of Kueue."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.clusters import build
from sandbox.credentials import Credentials
from sandbox.entra.directory import Directory
from sandbox.kubernetes import Cluster
from sandbox.world import ClusterSpec, NodeGroup, sample
from tests.recordings.calling import call
from tests.sandbox.kubernetes.test_cluster import HEADERS, TOKENS, send
from tests.sandbox.kubernetes.volcanoes import (
    BATCH,
    BUS,
    SCHEDULING,
    TEAM,
    VolcanoWorld,
)

AGGREGATED = {
    "authorization": "Bearer admin",
    "accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
}


@pytest.fixture
def world() -> VolcanoWorld:
    """A cluster with Volcano and a namespace."""
    world = VolcanoWorld()
    world.namespace()
    return world


def test_it_serves_volcanos_kinds_with_their_short_names(world: VolcanoWorld) -> None:
    listed = {
        one["name"]: (one["kind"], one["namespaced"])
        for version in (BATCH, SCHEDULING, BUS)
        for one in world.send("GET", f"/apis/{version}")["resources"]
    }
    assert listed == {
        "jobs": ("Job", True),
        "jobs/status": ("Job", True),
        "queues": ("Queue", False),
        "queues/status": ("Queue", False),
        "podgroups": ("PodGroup", True),
        "commands": ("Command", True),
    }
    groups = call(world.cluster.app, "GET", "/apis", {}, AGGREGATED, b"").json()[
        "items"
    ]
    names = [group["metadata"]["name"] for group in groups]
    assert len(names) == len(set(names))
    served = next(
        one for one in groups if one["metadata"]["name"] == "scheduling.volcano.sh"
    )
    assert [one["shortNames"] for one in served["versions"][0]["resources"]] == [
        ["q", "queue-v1beta1"],
        ["pg", "podgroup-v1beta1"],
    ]


@pytest.mark.parametrize(
    "group", ["kueue.x-k8s.io", "jobset.x-k8s.io", "visibility.kueue.x-k8s.io"]
)
def test_it_has_neither_kueue_nor_jobset(world: VolcanoWorld, group: str) -> None:
    names = [one["name"] for one in world.send("GET", "/apis")["groups"]]
    assert group not in names
    assert world.ask("GET", f"/apis/{group}/v1beta2/clusterqueues").status == 404
    assert world.ask("GET", "/api/v1/namespaces/kueue-system").status == 404


@pytest.mark.parametrize("version", [BATCH, SCHEDULING, BUS])
def test_a_cluster_with_kueue_has_no_volcano(version: str) -> None:
    cluster = Cluster("dev", tokens=TOKENS)
    assert send(cluster, "GET", f"/apis/{version}").status == 404
    assert (
        send(cluster, "GET", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues").status == 200
    )


def test_queues_are_kueues_or_volcanos() -> None:
    with pytest.raises(
        ValueError, match="yarn: a cluster's queues are kueue's or volcano's"
    ):
        Cluster("dev", queueing="yarn")


def test_its_programs_are_those_of_a_release_and_its_scheduler_has_the_capacity_plugin(
    world: VolcanoWorld,
) -> None:
    deployments = world.send(
        "GET", "/apis/apps/v1/namespaces/volcano-system/deployments"
    )["items"]
    images = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]["containers"][0][
            "image"
        ]
        for one in deployments
    }
    assert images == {
        "volcano-admission": "docker.io/volcanosh/vc-webhook-manager:v1.15.1",
        "volcano-controllers": "docker.io/volcanosh/vc-controller-manager:v1.15.1",
        "volcano-scheduler": "docker.io/volcanosh/vc-scheduler:v1.15.1",
    }
    path = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
    settings = yaml.safe_load(world.send("GET", path)["data"]["volcano-scheduler.conf"])
    plugins = [one["name"] for tier in settings["tiers"] for one in tier["plugins"]]
    assert settings["actions"].split(", ") == [
        "enqueue",
        "allocate",
        "backfill",
        "reclaim",
    ]
    assert "capacity" in plugins
    assert not {"proportion", "overcommit"} & set(plugins)


def test_it_is_born_with_two_queues_one_under_the_other(world: VolcanoWorld) -> None:
    found = {
        one["metadata"]["name"]: one
        for one in world.send("GET", f"/apis/{SCHEDULING}/queues")["items"]
    }
    assert {
        name: (one["status"]["state"], one["spec"].get("parent"))
        for name, one in found.items()
    } == {
        "default": ("Open", "root"),
        "root": ("Open", None),
    }


def test_both_kinds_of_job_live_beside_each_other(world: VolcanoWorld) -> None:
    world.job("same", 1, 1, queue="default")
    container = {"name": "main", "image": "train:1"}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    world.send(
        "POST",
        f"/apis/batch/v1/namespaces/{TEAM}/jobs",
        {"metadata": {"name": "same"}, "spec": spec},
    )
    world.pass_time()
    assert len(world.pods()) == 2
    assert (
        world.send("GET", f"/apis/batch/v1/namespaces/{TEAM}/jobs/same")["status"][
            "active"
        ]
        == 1
    )

    world.send(
        "DELETE",
        f"/apis/batch/v1/namespaces/{TEAM}/jobs/same?propagationPolicy=Background",
    )

    assert set(world.phases()) == {"same-worker-0"}
    assert world.phase("same") == "Running"


def test_a_job_of_kubernetes_is_not_suspended_by_a_label_of_kueue(
    world: VolcanoWorld,
) -> None:
    labels = {"kueue.x-k8s.io/queue-name": "team"}
    container = {"name": "main", "image": "train:1"}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    body = {"metadata": {"name": "plain", "labels": labels}, "spec": spec}
    made = world.send("POST", f"/apis/batch/v1/namespaces/{TEAM}/jobs", body)
    assert made["spec"].get("suspend") in {None, False}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        pytest.param(
            f"/apis/{SCHEDULING}/queues",
            {"metadata": {"name": "q"}, "spec": {"weight": 1, "quota": {}}},
            'unknown field "spec.quota"',
            id="queue",
        ),
        pytest.param(
            f"/apis/{SCHEDULING}/namespaces/{TEAM}/podgroups",
            {"metadata": {"name": "g"}, "spec": {"minMembers": 1}},
            'unknown field "spec.minMembers"',
            id="group",
        ),
        pytest.param(
            f"/apis/{BATCH}/namespaces/{TEAM}/jobs",
            {
                "metadata": {"name": "j"},
                "spec": {"tasks": [{"name": "a", "parallelism": 1}]},
            },
            'unknown field "spec.tasks[0].parallelism"',
            id="job",
        ),
    ],
)
def test_fields_that_a_definition_does_not_have_are_refused(
    world: VolcanoWorld, path: str, body: dict[str, Any], field: str
) -> None:
    status, message = world.refused(
        "POST", f"{path}?fieldValidation=Strict", _whole(path, body)
    )
    assert status == 400
    assert field in message


def _whole(path: str, body: dict[str, Any]) -> dict[str, Any]:
    kind = {"queues": "Queue", "podgroups": "PodGroup", "jobs": "Job"}[
        path.rpartition("/")[2]
    ]
    return {"apiVersion": BATCH if kind == "Job" else SCHEDULING, "kind": kind, **body}


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        pytest.param(
            f"/apis/{SCHEDULING}/queues",
            {"metadata": {"name": "q"}, "spec": {"weight": -1}},
            "spec.weight in body should be greater than or equal to 1",
            id="weight",
        ),
        pytest.param(
            f"/apis/{SCHEDULING}/queues",
            {"metadata": {"name": "q"}, "spec": {"weight": 70000}},
            "spec.weight in body should be less than or equal to 65535",
            id="too heavy",
        ),
        pytest.param(
            f"/apis/{SCHEDULING}/queues",
            {"metadata": {"name": "q"}, "spec": {"dequeueStrategy": "lifo"}},
            'Unsupported value: "lifo": supported values: "fifo", "traverse"',
            id="strategy",
        ),
        pytest.param(
            f"/apis/{SCHEDULING}/namespaces/{TEAM}/podgroups",
            {"metadata": {"name": "g"}, "spec": {"minMember": -1}},
            "spec.minMember in body should be greater than or equal to 0",
            id="members",
        ),
        pytest.param(
            f"/apis/{BATCH}/namespaces/{TEAM}/jobs",
            {
                "metadata": {"name": "j"},
                "spec": {"policies": [{"event": "Boom", "action": "AbortJob"}]},
            },
            'spec.policies[0].event: Unsupported value: "Boom"',
            id="event",
        ),
        pytest.param(
            f"/apis/{BATCH}/namespaces/{TEAM}/jobs",
            {"metadata": {"name": "j"}, "spec": {"networkTopology": {"mode": "firm"}}},
            'spec.networkTopology.mode: Unsupported value: "firm"',
            id="topology",
        ),
    ],
)
def test_values_that_a_definition_does_not_allow_are_refused(
    world: VolcanoWorld, path: str, body: dict[str, Any], said: str
) -> None:
    status, message = world.refused("POST", path, _whole(path, body))
    assert status == 422
    assert said in message


def test_a_queue_is_applied_and_its_parent_stays_with_volcano(
    world: VolcanoWorld,
) -> None:
    headers = {**HEADERS, "content-type": "application/apply-patch+yaml"}
    body = yaml.safe_dump(
        world.queue_body("q", weight=2, capability={"cpu": "4"})
    ).encode()
    path = f"/apis/{SCHEDULING}/queues/q"
    made = call(
        world.cluster.app, "PATCH", path, {"fieldManager": "portal"}, headers, body
    )
    assert made.status == 201, made.text

    again = call(
        world.cluster.app, "PATCH", path, {"fieldManager": "portal"}, headers, body
    ).json()

    assert again["spec"]["parent"] == "root"
    owners = {
        one["manager"]: one["fieldsV1"]
        for one in again["metadata"]["managedFields"]
        if "subresource" not in one
    }
    assert "f:parent" not in owners["portal"]["f:spec"]
    assert "f:parent" in owners["vc-controller-manager"]["f:spec"]


def test_a_cluster_of_a_world_may_be_volcanos(tmp_path: Path) -> None:
    spec = ClusterSpec(
        "batch", "eastus", (NodeGroup("a100", 1, 8, "nvidia-a100"),), queueing="volcano"
    )
    cluster = build(
        spec, Directory(sample()), Credentials.open(tmp_path / "secrets.json"), "", None
    )
    made = {
        (one["kind"], one["metadata"]["name"]) for one in cluster.snapshot()["objects"]
    }
    assert {("Queue", "default"), ("Node", "aks-a100-eastus-vmss000000")} <= made
    assert ("Namespace", "kueue-system") not in made


def test_a_client_learns_which_fields_a_job_has(world: VolcanoWorld) -> None:
    address = world.send("GET", "/openapi/v3")["paths"][f"apis/{BATCH}"][
        "serverRelativeURL"
    ]
    found = world.send("GET", address.partition("?")[0])["components"]["schemas"]
    job = found["sh.volcano.batch.v1alpha1.Job"]
    assert job["x-kubernetes-group-version-kind"] == [
        {"group": "batch.volcano.sh", "kind": "Job", "version": "v1alpha1"}
    ]
    topology = job["properties"]["spec"]["properties"]["networkTopology"]["properties"]
    assert topology["highestTierName"] == {"type": "string"}
    assert job["properties"]["spec"]["properties"]["tasks"]["type"] == "array"


def test_a_cluster_shows_the_schemas_of_its_own_queues(world: VolcanoWorld) -> None:
    cluster = Cluster("dev", tokens=TOKENS)
    theirs = send(cluster, "GET", "/openapi/v3").json()["paths"]
    ours = world.send("GET", "/openapi/v3")["paths"]
    volcano, kueue = f"apis/{SCHEDULING}", "apis/kueue.x-k8s.io/v1beta2"
    assert (volcano in ours, kueue in ours) == (True, False)
    assert (volcano in theirs, kueue in theirs) == (False, True)


def test_jobs_are_chosen_by_their_own_fields_alone(world: VolcanoWorld) -> None:
    world.job("a", 1, 1, queue="default")
    query = {"fieldSelector": "metadata.name=a"}
    found = call(world.cluster.app, "GET", world.jobs(), query, HEADERS, b"").json()
    assert [one["metadata"]["name"] for one in found["items"]] == ["a"]
    query = {"fieldSelector": "status.successful=1"}
    assert (
        call(world.cluster.app, "GET", world.jobs(), query, HEADERS, b"").status == 400
    )
    path = f"/apis/batch/v1/namespaces/{TEAM}/jobs"
    assert call(world.cluster.app, "GET", path, query, HEADERS, b"").status == 200
