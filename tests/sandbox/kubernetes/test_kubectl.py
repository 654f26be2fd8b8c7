"""What a stock kubectl sends for `apply`, `diff` and `auth can-i`, and what it needs to hear."""

import json
from typing import Any

import pytest

from sandbox.kubernetes import Cluster, Identity
from tests.recordings.calling import Reply, call

TOKENS = {"admin": Identity("admin", ("system:masters",)), "ada": Identity("ada@example.com", ("team",))}
PROTOBUF = "application/vnd.kubernetes.protobuf"
AGENT = "kubectl/v1.36.2 (linux/amd64) kubernetes/abcdef0"
SPEC_2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
LAST = "kubectl.kubernetes.io/last-applied-configuration"


class Kubectl:
    """One kubectl on one cluster."""

    def __init__(self) -> None:
        self.cluster = Cluster("t", tokens=TOKENS)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        who: str = "admin",
        query: dict[str, str] | None = None,
        **headers: str,
    ) -> Reply:
        given = {"authorization": f"Bearer {who}", "user-agent": AGENT, "accept": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return call(self.cluster.app, method, path, query or {}, given, content)


@pytest.fixture
def kubectl() -> Kubectl:
    return Kubectl()


@pytest.mark.parametrize(
    ("group", "kind"),
    [("api/v1", "ConfigMap"), ("apis/batch/v1", "Job"), ("apis/kueue.x-k8s.io/v1beta2", "Cohort")],
)
def test_kubectl_learns_that_the_server_checks_fields_itself(kubectl: Kubectl, group: str, kind: str) -> None:
    root = kubectl.send("GET", "/openapi/v3").json()
    address = root["paths"][group]["serverRelativeURL"]
    where, _, query = address.partition("?")
    document = kubectl.send("GET", where, query=dict([query.split("=")])).json()
    patches = [item["patch"] for item in document["paths"].values() if "patch" in item]
    of_kind = [one for one in patches if one["x-kubernetes-group-version-kind"]["kind"] == kind]
    assert ["fieldValidation" in [each["name"] for each in one["parameters"]] for one in of_kind] == [True]


def test_the_old_document_is_there_in_json_and_refused_in_protobuf(kubectl: Kubectl) -> None:
    found = kubectl.send("GET", "/openapi/v2").json()
    assert found["swagger"] == "2.0"
    assert "/api/v1/namespaces/{namespace}/pods/{name}" in found["paths"]
    assert kubectl.send("GET", "/openapi/v2", accept=SPEC_2).status == 406
    assert kubectl.send("GET", "/openapi/v3/apis/nope/v1").status == 404
    assert kubectl.send("GET", "/openapi/v3", who="ada").status == 200


def manifest(**data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default"},
        "data": data,
    }


def test_a_plain_apply_makes_changes_and_leaves(kubectl: Kubectl) -> None:
    where = "/api/v1/namespaces/default/configmaps"
    query = {"fieldManager": "kubectl-client-side-apply", "fieldValidation": "Strict"}
    assert kubectl.send("GET", f"{where}/c").status == 404
    body = manifest(a="1")
    body["metadata"]["annotations"] = {LAST: json.dumps(manifest(a="1")) + "\n"}
    made = kubectl.send("POST", where, body, query=query, content_type="application/json")
    assert (made.status, made.json()["data"]) == (201, {"a": "1"})
    patch = {"metadata": {"annotations": {LAST: json.dumps(manifest(b="2"))}}, "data": {"a": None, "b": "2"}}
    kind = "application/strategic-merge-patch+json"
    changed = kubectl.send("PATCH", f"{where}/c", patch, query=query, content_type=kind)
    assert (changed.status, changed.json()["data"]) == (200, {"b": "2"})
    wrong = {"dataa": {"b": "2"}}
    assert kubectl.send("PATCH", f"{where}/c", wrong, query=query, content_type=kind).status in (400, 422)


def test_a_diff_changes_nothing(kubectl: Kubectl) -> None:
    where = "/api/v1/namespaces/default/configmaps"
    kubectl.send("POST", where, manifest(a="1"), content_type="application/json")
    before = kubectl.send("GET", f"{where}/c").json()
    query = {"dryRun": "All", "fieldManager": "kubectl-client-side-apply", "fieldValidation": "Strict"}
    patch = {"data": {"a": "2"}}
    kind = "application/strategic-merge-patch+json"
    shown = kubectl.send("PATCH", f"{where}/c", patch, query=query, content_type=kind).json()
    assert (shown["data"], shown["metadata"]["resourceVersion"] != "") == ({"a": "2"}, True)
    assert kubectl.send("GET", f"{where}/c").json() == before


def message(number: int, content: bytes) -> bytes:
    """A field with a length, as protobuf writes it; shorter than 128 bytes."""
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def review(**attributes: str) -> bytes:
    numbers = {
        "namespace": 1,
        "verb": 2,
        "group": 3,
        "version": 4,
        "resource": 5,
        "subresource": 6,
        "name": 7,
    }
    inner = b"".join(message(numbers[name], text.encode()) for name, text in attributes.items())
    typed = message(1, b"authorization.k8s.io/v1") + message(2, b"SelfSubjectAccessReview")
    raw = message(1, b"") + message(2, message(1, inner)) + message(3, bytes([0x08, 0x00]))
    return b"k8s\x00" + message(1, typed) + message(2, raw) + message(3, b"") + message(4, b"")


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(("who", "answer"), [("admin", True), ("ada", False)])
@pytest.mark.parametrize("content", ["application/json", PROTOBUF])
def test_auth_can_i_is_answered_in_json_whatever_it_was_asked_in(
    kubectl: Kubectl, who: str, answer: bool, content: str
) -> None:
    attributes = {"namespace": "default", "verb": "create", "group": "apps", "resource": "deployments"}
    spec = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": attributes},
    }
    body = review(**attributes) if content == PROTOBUF else spec
    accept = f"{PROTOBUF},application/json"
    said = kubectl.send("POST", REVIEWS, body, who=who, content_type=content, accept=accept)
    assert (said.status, said.headers["content-type"]) == (201, "application/json")
    assert said.json()["status"]["allowed"] is answer
    assert said.json()["spec"]["resourceAttributes"] == attributes


@pytest.mark.parametrize("body", [b"", b"{}", b"k8s\x00\x0a", b"k8s\x00\x12\x7f\x00", b"k8s\x00\xff\xff"])
def test_a_body_that_is_no_review_is_a_bad_request_or_asks_for_nothing(kubectl: Kubectl, body: bytes) -> None:
    said = kubectl.send("POST", REVIEWS, body, who="ada", content_type=PROTOBUF)
    assert said.status in (400, 201)
    assert said.status == 400 or not said.json()["status"]["allowed"]


def test_what_the_server_added_to_a_limit_range_stays_when_its_reason_goes(kubectl: Kubectl) -> None:
    where = "/api/v1/namespaces/default/limitranges"
    item = {"type": "Container", "default": {"cpu": "1", "nvidia.com/gpu": "1"}}
    body = {"metadata": {"name": "l"}, "spec": {"limits": [item]}}
    made = kubectl.send("POST", where, body, content_type="application/json").json()
    assert made["spec"]["limits"][0]["defaultRequest"]["nvidia.com/gpu"] == "1"
    taken = [{"op": "remove", "path": "/spec/limits/0/default/nvidia.com~1gpu"}]
    after = kubectl.send("PATCH", f"{where}/l", taken, content_type="application/json-patch+json").json()
    assert "nvidia.com/gpu" not in after["spec"]["limits"][0]["default"]
    assert after["spec"]["limits"][0]["defaultRequest"]["nvidia.com/gpu"] == "1"
