"""The portal's template for Volcano in the sandbox: applied as the portal does it, it waits, runs and starts anew."""

import json
from dataclasses import replace
from typing import Any

import pytest

from provisioning.desired.queues import pod_priorities
from sandbox.kubernetes import NodeSpec
from tests.recordings.calling import call
from tests.sandbox.kubernetes.test_cluster import HEADERS
from tests.sandbox.kubernetes.volcanoes import BATCH, GPU, VolcanoWorld
from tests.workloads.runs import WHERE, run
from workloads.templates.library import BY_SLUG

TEAM = WHERE.namespace
A100, SKU = {"accelerator": "nvidia-a100"}, ("sku", "gpu", "NoSchedule")
NODES = tuple(
    NodeSpec(f"a100-{n}", gpus=8, cpu="96", memory="1900Gi", labels=A100, taints=(SKU,))
    for n in range(5)
)


@pytest.fixture
def world() -> VolcanoWorld:
    """A team that may hold 32 of 40 GPUs, on a cluster with the priority of its runs."""
    world = VolcanoWorld(NODES)
    world.queue(TEAM, gpus=32)
    priority = next(
        one for one in pod_priorities() if one["metadata"]["name"] == WHERE.priority
    )
    world.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority)
    return world


def hand_in(world: VolcanoWorld, *program: str) -> str:
    """Apply a run over four nodes as the portal renders it; its name."""
    whole = replace(run(BY_SLUG["volcano"]), nodes=4, launcher="none", program=program)
    *others, job = BY_SLUG["volcano"].render(whole)
    job = {**job, "spec": {**job["spec"], "queue": TEAM}}
    for plural, manifest in [*(("configmaps", one) for one in others), ("jobs", job)]:
        version = BATCH if plural == "jobs" else "v1"
        base = f"/apis/{BATCH}" if version == BATCH else "/api/v1"
        apply(
            world,
            f"{base}/namespaces/{TEAM}/{plural}/{manifest['metadata']['name']}",
            manifest,
        )
    return whole.name


def apply(world: VolcanoWorld, path: str, manifest: Any) -> None:
    headers = {**HEADERS, "content-type": "application/apply-patch+yaml"}
    query = {"fieldManager": "quartermaster", "fieldValidation": "Strict"}
    answer = call(
        world.cluster.app, "PATCH", path, query, headers, json.dumps(manifest).encode()
    )
    assert answer.status < 300, answer.text


def test_a_run_waits_starts_at_once_and_ends(world: VolcanoWorld) -> None:
    world.job("other", workers=1, gpus=8, namespace=TEAM, pod=_at_home())
    name = hand_in(world, "sleep", "60")
    assert world.group(name, TEAM)["status"] == {"phase": "Pending"}

    world.send("DELETE", f"{world.jobs(TEAM)}/other")
    world.pass_time()

    assert set(world.phases(TEAM).values()) == {"Running"}
    assert len({pod["spec"]["nodeName"] for pod in world.pods(TEAM)}) == 4
    assert world.get_queue(TEAM)["status"]["allocated"][GPU] == "32"
    world.pass_time(61)
    assert (world.phase(name, TEAM), world.groups(TEAM)) == ("Completed", [])


def _at_home() -> dict[str, Any]:
    return {"nodeSelector": A100, "tolerations": [{"key": "sku", "operator": "Exists"}]}


def test_a_run_starts_anew_when_a_node_is_lost(world: VolcanoWorld) -> None:
    name = hand_in(world, "sleep", "6000")
    world.pass_time()
    node = world.pods(TEAM)[0]["spec"]["nodeName"]

    world.send("POST", "/sandbox/interruptions", {"node": node, "notice": 0})
    world.pass_time(1)
    world.pass_time()

    status = world.get_job(name, TEAM)["status"]
    assert (status["state"]["phase"], status["retryCount"]) == ("Running", 1)
    assert node not in {pod["spec"]["nodeName"] for pod in world.pods(TEAM)}


def test_a_run_that_is_applied_again_goes_on(world: VolcanoWorld) -> None:
    name = hand_in(world, "sleep", "60")
    world.pass_time()
    pods = [pod["metadata"]["uid"] for pod in world.pods(TEAM)]

    assert hand_in(world, "sleep", "60") == name

    world.pass_time()
    assert [pod["metadata"]["uid"] for pod in world.pods(TEAM)] == pods
    world.pass_time(61)
    assert world.phase(name, TEAM) == "Completed"
