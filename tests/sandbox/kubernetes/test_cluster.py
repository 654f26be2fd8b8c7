"""A cluster as other code embeds it."""

import json
from concurrent.futures import ThreadPoolExecutor

from sandbox.kubernetes import Cluster, Identity, NodeSpec
from tests.recordings.calling import Reply, call
from tests.services.process import wait_until

TOKENS = {"admin": Identity("admin", ("system:masters",))}
HEADERS = {"authorization": "Bearer admin", "content-type": "application/json"}


def send(cluster: Cluster, method: str, path: str, body: object = None) -> Reply:
    content = b"" if body is None else json.dumps(body).encode()
    return call(cluster.app, method, path, {}, HEADERS, content)


def test_it_is_born_with_its_nodes_and_namespaces() -> None:
    cluster = Cluster(
        "dev",
        nodes=[NodeSpec("gpu-0", gpus=8, taints=(("sku", "gpu", "NoSchedule"),))],
        tokens=TOKENS,
    )
    node = send(cluster, "GET", "/api/v1/nodes/gpu-0").json()
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert node["spec"]["taints"] == [
        {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
    ]
    assert send(cluster, "GET", "/api/v1/namespaces/kueue-system").status == 200


def test_it_is_dirty_until_its_snapshot_was_taken() -> None:
    cluster = Cluster("dev", tokens=TOKENS)
    cluster.snapshot()
    assert not cluster.dirty
    send(cluster, "POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    assert cluster.dirty


def test_a_snapshot_brings_everything_back() -> None:
    cluster = Cluster("dev", tokens=TOKENS)
    send(cluster, "POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    state = json.loads(json.dumps(cluster.snapshot()))
    again = Cluster("dev", tokens=TOKENS, state=state)
    path = "/api/v1/namespaces/a"
    assert send(again, "GET", path).json() == send(cluster, "GET", path).json()
    assert not again.dirty


def test_a_request_that_is_held_is_lost_when_the_cluster_is_restored() -> None:
    cluster = Cluster("dev", tokens=TOKENS)
    state = cluster.snapshot()
    cluster.faults.add({"hang": 0.3})
    with ThreadPoolExecutor(1) as one:
        held = one.submit(
            send, cluster, "POST", "/api/v1/namespaces", {"metadata": {"name": "a"}}
        )
        wait_until(lambda: not cluster.faults.waiting, what="the request to be held")
        cluster.restore(state)
        assert held.result().status == 503
    assert cluster.requests == {}
    assert send(cluster, "GET", "/api/v1/namespaces/a").status == 404


def test_a_read_makes_nothing_dirty() -> None:
    cluster = Cluster("dev", tokens=TOKENS)
    cluster.snapshot()
    send(cluster, "GET", "/api/v1/namespaces")
    assert not cluster.dirty


def test_a_namespace_that_ends_is_gone_after_its_content() -> None:
    cluster = Cluster("dev", tokens=TOKENS)
    send(cluster, "POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    assert (
        send(cluster, "DELETE", "/api/v1/namespaces/a").json()["status"]["phase"]
        == "Terminating"
    )
    cluster.controllers.terminate()
    assert send(cluster, "GET", "/api/v1/namespaces/a").status == 404


def test_a_new_namespace_is_not_ended_for_an_earlier_one_of_its_name() -> None:
    cluster = Cluster("dev", tokens=TOKENS)
    before = cluster.snapshot()
    send(cluster, "POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    send(cluster, "DELETE", "/api/v1/namespaces/a")
    cluster.restore(before)
    send(cluster, "POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    cluster.controllers.terminate()
    assert (
        send(cluster, "GET", "/api/v1/namespaces/a").json()["status"]["phase"]
        == "Active"
    )


QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"


def test_a_server_that_starts_fills_its_cache_of_a_custom_kind_at_the_first_list() -> (
    None
):
    cluster = Cluster("dev", tokens=TOKENS)
    assert send(cluster, "GET", QUEUES).status == 200
    again = Cluster("dev", tokens=TOKENS, state=cluster.snapshot())
    # What is read from etcd is answered: one object, and a page that nothing selects from.
    assert send(again, "GET", f"{QUEUES}/none").status == 404
    assert send(again, "GET", f"{QUEUES}?limit=5").status == 200
    refused = send(again, "GET", f"{QUEUES}?limit=5&labelSelector=a")
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert refused.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "storage is (re)initializing",
        "reason": "TooManyRequests",
        "details": {"retryAfterSeconds": 1},
        "code": 429,
    }
    assert send(again, "GET", f"{QUEUES}?limit=5&labelSelector=a").status == 200
    # Each kind has a cache of its own, and those of the server's own kinds are there before it answers.
    assert send(again, "GET", "/apis/kueue.x-k8s.io/v1beta2/localqueues").status == 429
    assert send(again, "GET", "/api/v1/namespaces").status == 200


def test_policies_of_cilium_are_served_where_it_is_the_network() -> None:
    plain, cilium = (
        Cluster("dev", tokens=TOKENS),
        Cluster("dev", tokens=TOKENS, cilium=True),
    )
    group = "/apis/cilium.io"
    for path in (group, f"{group}/v2", f"{group}/v2/ciliumnetworkpolicies"):
        assert (send(plain, "GET", path).status, send(cilium, "GET", path).status) == (
            404,
            200,
        ), path
    assert (
        send(plain, "GET", f"{group}/v2/ciliumnetworkpolicies").text
        == "404 page not found\n"
    )
    [resource, status] = send(cilium, "GET", f"{group}/v2").json()["resources"]
    assert (resource["name"], status["name"]) == (
        "ciliumnetworkpolicies",
        "ciliumnetworkpolicies/status",
    )
    names = [group["name"] for group in send(cilium, "GET", "/apis").json()["groups"]]
    assert names.count("cilium.io") == 1
    # Defined on a running server: its first list finds the cache empty.
    send(plain, "POST", "/sandbox/cilium")
    listed = [
        send(plain, "GET", f"{group}/v2/ciliumnetworkpolicies").status for _ in range(2)
    ]
    assert listed == [429, 200]
