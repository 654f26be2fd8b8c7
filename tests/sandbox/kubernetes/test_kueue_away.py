"""The switch that takes Kueue's controller away: what is refused and stands still then, and goes on when it is back."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from sandbox.kubernetes import Cluster
from tests.recordings.calling import call
from tests.recordings.replaying import steps_of
from tests.sandbox.kubernetes.jobs import World
from tests.sandbox.kubernetes.test_cluster import HEADERS, TOKENS, send

SERVER = "https://kueue-webhook-service.kueue-system.svc:443"
NOBODY = 'no endpoints available for service "kueue-webhook-service"'
DOWN = [
    step
    for step in steps_of("13-failures")
    if step["name"].startswith("webhook-down")
    # The sandbox has one version of Kueue's objects, so none is converted.
    and step["name"] != "webhook-down-read-v1beta1"
]


def switch(world: World, *, served: bool) -> None:
    world.send("POST", "/sandbox/kueue", {"served": served})


def said(world: World, namespace: str, name: str) -> str:
    """What the QuotaReserved condition of a job's Workload says; empty where it has no Workload."""
    path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads"
    for one in world.send("GET", path)["items"]:
        if one["metadata"]["ownerReferences"][0]["name"] == name:
            conditions = (one.get("status") or {}).get("conditions", [])
            found = [each for each in conditions if each["type"] == "QuotaReserved"]
            return str(found[0]["status"]) if found else ""
    return ""


@pytest.mark.parametrize("step", DOWN, ids=[step["name"] for step in DOWN])
def test_what_is_refused_meanwhile_is_what_was_recorded(step: dict[str, Any]) -> None:
    cluster = Cluster("dev", tokens=TOKENS)
    send(
        cluster,
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": "qm-t-logs"}},
    )
    send(cluster, "POST", "/sandbox/kueue", {"served": False})
    asked, recorded = step["request"], step["response"]
    body = asked.get("body")
    kind = asked["headers"].get("content-type", "application/json")

    answer = call(
        cluster.app,
        asked["method"],
        f"{asked['path']}?{urlencode(asked['query'])}",
        {},
        {**HEADERS, "content-type": kind},
        json.dumps(body).encode() if body is not None else b"",
    )

    assert answer.status == recorded["status"]
    if recorded["status"] >= 400:
        message = recorded["body"]["message"].replace(
            "https://<webhook-server>", SERVER
        )
        refused = "dial tcp <webhook-server>: connect: connection refused"
        assert answer.json()["message"] == message.replace(refused, NOBODY)


def test_nothing_that_waits_starts_until_it_is_back() -> None:
    world = World()
    world.queue("vision", 8)
    world.job("vision", "first", 8)
    world.job("vision", "second", 8)
    assert (said(world, "vision", "first"), said(world, "vision", "second")) == (
        "True",
        "False",
    )
    switch(world, served=False)

    world.end("vision", "first")
    world.pass_time(60)

    assert said(world, "vision", "second") == "False"
    path = "/apis/apps/v1/namespaces/kueue-system/deployments/kueue-controller-manager"
    assert "readyReplicas" not in world.send("GET", path)["status"]
    switch(world, served=True)
    assert said(world, "vision", "second") == "True"
    assert world.send("GET", path)["status"] == {"replicas": 1, "readyReplicas": 1}


def test_a_job_whose_pods_were_refused_gets_them_when_it_is_back() -> None:
    world = World()
    world.queue("vision", 8)
    world.job("vision", "train", 8)
    pods = "/api/v1/namespaces/vision/pods"
    [pod] = world.send("GET", pods)["items"]
    switch(world, served=False)

    world.send("DELETE", f"{pods}/{pod['metadata']['name']}")
    world.pass_time(60)
    during = world.send("GET", pods)["items"]
    switch(world, served=True)
    world.pass_time(60)

    assert [one["metadata"]["name"] for one in during] == []
    assert len(world.send("GET", pods)["items"]) == 1


def test_it_is_away_in_what_is_kept_and_served_again() -> None:
    world = World()
    switch(world, served=False)
    again = Cluster("dev", tokens=TOKENS, state=world.cluster.snapshot())
    body = {"metadata": {"name": "vision"}}
    send(again, "POST", "/api/v1/namespaces", body)
    pod = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    assert send(again, "POST", "/api/v1/namespaces/vision/pods", pod).status == 500


def test_a_cluster_of_volcano_has_no_such_switch() -> None:
    cluster = Cluster("batch", tokens=TOKENS, queueing="volcano")
    answer = send(cluster, "POST", "/sandbox/kueue", {"served": False})
    assert (answer.status, answer.json()["message"]) == (
        400,
        "this cluster has no Kueue",
    )
