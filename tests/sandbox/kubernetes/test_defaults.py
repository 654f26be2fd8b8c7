"""Objects are filled in as a real server stored them."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.kubernetes.defaults import apply_defaults
from sandbox.kubernetes.defaults_pods import admit_pod, pull_policy, qos_class
from sandbox.kubernetes.kinds import Kind, by_kind
from sandbox.kubernetes.limitrange import fill_in

RECORDINGS = Path(__file__).parents[2] / "recordings"
VARIES = {
    "managedFields",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "namespace",
}
FILES = (
    "02a-ssa-golden",
    "02c-ssa-refusals",
    "05-resourcequota",
    "06-limitrange",
    "09-kueue-objects",
)
Step = dict[str, Any]


def plain(obj: dict[str, Any]) -> dict[str, Any]:
    """The object without what differs from run to run."""
    meta = {
        name: value for name, value in obj["metadata"].items() if name not in VARIES
    }
    return {**obj, "metadata": meta}


def created() -> list[Any]:
    found: list[Any] = []
    for file in FILES:
        for index, step in enumerate(
            json.loads((RECORDINGS / f"{file}.json").read_text())
        ):
            body, answer = step["request"]["body"], step["response"]
            if answer["status"] != 201 or not isinstance(body, dict):
                continue
            kind = by_kind(body["apiVersion"], body["kind"])
            if kind is not None and step["name"] != "post-unknown-field-lax":
                found.append(
                    pytest.param(kind, step, id=f"{file[:3]}-{index}-{step['name']}")
                )
    return found


def limit_ranges(step: Step) -> list[dict[str, Any]]:
    namespace = step["response"]["body"]["metadata"].get("namespace")
    bodies = [
        other["response"]["body"]
        for other in json.loads((RECORDINGS / "06-limitrange.json").read_text())
    ]
    return [
        b
        for b in bodies
        if b["kind"] == "LimitRange" and b["metadata"]["namespace"] == namespace
    ]


@pytest.mark.parametrize(("kind", "step"), created())
def test_it_stores_a_new_object_as_the_server_did(kind: Kind, step: Step) -> None:
    answer = step["response"]["body"]
    uid = (
        answer["spec"]["selector"]["matchLabels"].popitem()[1]
        if kind.kind == "Job"
        else ""
    )
    if kind.kind == "Job":
        answer["spec"]["selector"]["matchLabels"] = {
            "batch.kubernetes.io/controller-uid": uid
        }
    ours = apply_defaults(kind, step["request"]["body"], uid=uid)
    if kind.kind == "Pod":
        fill_in(ours, limit_ranges(step))
        admit_pod(
            ours,
            {"metadata": {"name": "default"}},
            token_volume=answer["spec"]["volumes"][-1]["name"],
        )
    assert plain(ours) == plain(answer)


def job_with_labels() -> Step:
    for step in json.loads((RECORDINGS / "10a-job-life.json").read_text()):
        body = step["request"]["body"]
        if (
            step["response"]["status"] == 201
            and isinstance(body, dict)
            and body.get("kind") == "Job"
        ):
            found: Step = step
            return found
    raise AssertionError("no Job was created")


def test_a_job_with_labels_of_its_own_keeps_them() -> None:
    step = job_with_labels()
    kind = by_kind("batch/v1", "Job")
    assert kind is not None
    answer = step["response"]["body"]
    ours = apply_defaults(kind, step["request"]["body"], uid=answer["metadata"]["uid"])
    # Kueue suspends the Job while it is being created.
    ours["spec"]["suspend"] = True
    assert plain(ours) == plain(answer)


def kind_of(api_version: str, name: str) -> Kind:
    kind = by_kind(api_version, name)
    assert kind is not None
    return kind


def test_defaulting_again_changes_nothing_and_leaves_the_input_alone() -> None:
    for param in created():
        kind, step = param.values
        body = step["request"]["body"]
        before = json.dumps(body)
        once = apply_defaults(kind, body, uid="u")
        assert json.dumps(body) == before
        assert apply_defaults(kind, once, uid="u") == once


def test_it_fills_in_the_kinds_without_recordings() -> None:
    secret = apply_defaults(
        kind_of("v1", "Secret"), {"metadata": {}, "stringData": {"a": "b"}}
    )
    assert (secret["type"], secret["data"]) == ("Opaque", {"a": "Yg=="})
    service = apply_defaults(
        kind_of("v1", "Service"), {"spec": {"ports": [{"port": 80}]}}
    )
    assert service["spec"]["ports"] == [
        {"port": 80, "protocol": "TCP", "targetPort": 80}
    ]
    policy = apply_defaults(
        kind_of("networking.k8s.io/v1", "NetworkPolicy"), {"spec": {"ingress": [{}]}}
    )
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    workload: dict[str, Any] = {"spec": {"podSets": [{"template": {}}]}}
    filled = apply_defaults(kind_of("kueue.x-k8s.io/v1beta2", "Workload"), workload)
    assert filled["spec"] == {
        "active": True,
        "podSets": [{"template": {}, "count": 1, "name": "main"}],
    }


def test_an_object_in_deletion_does_not_get_its_finalizer_back() -> None:
    flavor = {"metadata": {"name": "a", "deletionTimestamp": "2026-11-21T05:38:19Z"}}
    assert (
        "finalizers"
        not in apply_defaults(
            kind_of("kueue.x-k8s.io/v1beta2", "ResourceFlavor"), flavor
        )["metadata"]
    )


def test_pods_without_amounts_are_best_effort_and_images_decide_when_to_pull() -> None:
    assert qos_class({"containers": [{}]}) == "BestEffort"
    assert [
        pull_policy(image)
        for image in ("a", "a:1", "a:latest", "h:5000/a", "a@sha256:0")
    ] == [*("Always", "IfNotPresent", "Always", "Always", "IfNotPresent")]


def test_a_pod_gets_defaults_in_every_corner() -> None:
    container = {
        "name": "a",
        "image": "i:1",
        "tty": False,
        "ports": [{"containerPort": 1}],
        "env": [
            {"name": "E", "value": ""},
            {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "x"}}},
        ],
        "livenessProbe": {"httpGet": {"port": 1}},
    }
    volumes = [{"name": "scratch"}, {"name": "host", "hostPath": {"path": "/"}}]
    spec = {
        "containers": [container],
        "volumes": volumes,
        "hostPID": False,
        "serviceAccountName": "s",
    }
    pod = apply_defaults(kind_of("v1", "Pod"), {"spec": spec})["spec"]
    assert "hostPID" not in pod
    assert pod["volumes"] == [
        {"name": "scratch", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": "/", "type": ""}},
    ]
    (filled,) = pod["containers"]
    assert "tty" not in filled
    assert filled["ports"] == [{"containerPort": 1, "protocol": "TCP"}]
    assert filled["env"][0] == {"name": "E"}
    assert filled["livenessProbe"]["httpGet"]["scheme"] == "HTTP"
    assert pod["serviceAccount"] == "s"
