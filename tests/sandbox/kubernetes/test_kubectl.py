"""What a stock kubectl sends for `apply`, `diff`, `auth can-i` and `create`, and what it needs to hear."""

import json
from typing import Any

import pytest

from sandbox.kubernetes import Cluster, Identity
from tests.recordings.calling import Reply, call

TOKENS = {
    "admin": Identity("admin", ("system:masters",)),
    "ada": Identity("ada@example.com", ("team",)),
}
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
        given = {
            "authorization": f"Bearer {who}",
            "user-agent": AGENT,
            "accept": "application/json",
        }
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = (
            body
            if isinstance(body, bytes)
            else b""
            if body is None
            else json.dumps(body).encode()
        )
        return call(self.cluster.app, method, path, query or {}, given, content)


@pytest.fixture
def kubectl() -> Kubectl:
    return Kubectl()


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("api/v1", "ConfigMap"),
        ("apis/batch/v1", "Job"),
        ("apis/kueue.x-k8s.io/v1beta2", "Cohort"),
    ],
)
def test_kubectl_learns_that_the_server_checks_fields_itself(
    kubectl: Kubectl, group: str, kind: str
) -> None:
    root = kubectl.send("GET", "/openapi/v3").json()
    address = root["paths"][group]["serverRelativeURL"]
    where, _, query = address.partition("?")
    document = kubectl.send("GET", where, query=dict([query.split("=")])).json()
    patches = [item["patch"] for item in document["paths"].values() if "patch" in item]
    of_kind = [
        one for one in patches if one["x-kubernetes-group-version-kind"]["kind"] == kind
    ]
    assert [
        "fieldValidation" in [each["name"] for each in one["parameters"]]
        for one in of_kind
    ] == [True]


@pytest.mark.parametrize(
    ("group", "is_merged"),
    [("apis/batch/v1", True), ("apis/kueue.x-k8s.io/v1beta2", False)],
)
def test_only_builtin_kinds_are_patched_strategically(
    kubectl: Kubectl, group: str, is_merged: bool
) -> None:
    document = kubectl.send("GET", f"/openapi/v3/{group}").json()
    patches = [item["patch"] for item in document["paths"].values() if "patch" in item]
    strategic = "application/strategic-merge-patch+json"
    assert {strategic in one["requestBody"]["content"] for one in patches} == {
        is_merged
    }


def test_the_old_document_is_there_in_json_and_refused_in_protobuf(
    kubectl: Kubectl,
) -> None:
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
    made = kubectl.send(
        "POST", where, body, query=query, content_type="application/json"
    )
    assert (made.status, made.json()["data"]) == (201, {"a": "1"})
    patch = {
        "metadata": {"annotations": {LAST: json.dumps(manifest(b="2"))}},
        "data": {"a": None, "b": "2"},
    }
    kind = "application/strategic-merge-patch+json"
    changed = kubectl.send("PATCH", f"{where}/c", patch, query=query, content_type=kind)
    assert (changed.status, changed.json()["data"]) == (200, {"b": "2"})
    wrong = {"dataa": {"b": "2"}}
    assert kubectl.send(
        "PATCH", f"{where}/c", wrong, query=query, content_type=kind
    ).status in (400, 422)


def test_a_diff_changes_nothing(kubectl: Kubectl) -> None:
    where = "/api/v1/namespaces/default/configmaps"
    kubectl.send("POST", where, manifest(a="1"), content_type="application/json")
    before = kubectl.send("GET", f"{where}/c").json()
    query = {
        "dryRun": "All",
        "fieldManager": "kubectl-client-side-apply",
        "fieldValidation": "Strict",
    }
    patch = {"data": {"a": "2"}}
    kind = "application/strategic-merge-patch+json"
    shown = kubectl.send(
        "PATCH", f"{where}/c", patch, query=query, content_type=kind
    ).json()
    assert (shown["data"], shown["metadata"]["resourceVersion"] != "") == (
        {"a": "2"},
        True,
    )
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
    inner = b"".join(
        message(numbers[name], text.encode()) for name, text in attributes.items()
    )
    typed = message(1, b"authorization.k8s.io/v1") + message(
        2, b"SelfSubjectAccessReview"
    )
    raw = (
        message(1, b"")
        + message(2, message(1, inner))
        + message(3, bytes([0x08, 0x00]))
    )
    return (
        b"k8s\x00"
        + message(1, typed)
        + message(2, raw)
        + message(3, b"")
        + message(4, b"")
    )


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(("who", "answer"), [("admin", True), ("ada", False)])
@pytest.mark.parametrize("content", ["application/json", PROTOBUF])
def test_auth_can_i_is_answered_in_json_whatever_it_was_asked_in(
    kubectl: Kubectl, who: str, answer: bool, content: str
) -> None:
    attributes = {
        "namespace": "default",
        "verb": "create",
        "group": "apps",
        "resource": "deployments",
    }
    spec = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": attributes},
    }
    body = review(**attributes) if content == PROTOBUF else spec
    accept = f"{PROTOBUF},application/json"
    said = kubectl.send(
        "POST", REVIEWS, body, who=who, content_type=content, accept=accept
    )
    assert (said.status, said.headers["content-type"]) == (201, "application/json")
    assert said.json()["status"]["allowed"] is answer
    assert said.json()["spec"]["resourceAttributes"] == attributes


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"k8s\x00\x0a", b"k8s\x00\x12\x7f\x00", b"k8s\x00\xff\xff"]
)
def test_a_body_that_is_no_review_is_a_bad_request_or_asks_for_nothing(
    kubectl: Kubectl, body: bytes
) -> None:
    said = kubectl.send("POST", REVIEWS, body, who="ada", content_type=PROTOBUF)
    assert said.status in (400, 201)
    assert said.status == 400 or not said.json()["status"]["allowed"]


# Bodies of kubectl 1.32.4, as `-v=10` shows them.
CREATE_NAMESPACE = (
    b'k8s\x00\n\x0f\n\x02v1\x12\tNamespace\x12"\n\x1a\n\njupyterhub\x12\x00\x1a\x00"\x00*\x002\x008\x00B\x00'
    b'\x12\x00\x1a\x02\n\x00\x1a\x00"\x00'
)
CREATE_SECRET = (
    b"k8s\x00\n\x0c\n\x02v1\x12\x06Secret\x12C\n'\n\rquartermaster\x12\x00\x1a\njupyterhub\"\x00*\x002\x008\x00B\x00"
    b'\x12\t\n\x03key\x12\x02b\n\x12\x0b\n\x05token\x12\x02a\n\x1a\x00\x1a\x00"\x00'
)
CREATE_ROLE = (
    b"k8s\x00\n$\n\x1crbac.authorization.k8s.io/v1\x12\x04Role\x12d"
    b'\n/\n\x15quartermaster-metrics\x12\x00\x1a\nmonitoring"\x00*\x002\x008\x00B\x00'
    b'\x121\n\x03get\x12\x00\x1a\x0eservices/proxy"\x18prometheus-operated:9090\x1a\x00"\x00'
)
CREATE_BINDING = (
    b"k8s\x00\n+\n\x1crbac.authorization.k8s.io/v1\x12\x0bRoleBinding\x12\x9b\x01"
    b'\n/\n\x15quartermaster-metrics\x12\x00\x1a\nmonitoring"\x00*\x002\x008\x00B\x00'
    b'\x12.\n\x0eServiceAccount\x12\x00\x1a\x0bprovisioner"\rquartermaster'
    b'\x1a8\n\x19rbac.authorization.k8s.io\x12\x04Role\x1a\x15quartermaster-metrics\x1a\x00"\x00'
)
CREATE_TOKEN = (
    b"k8s\x00\n(\n\x18authentication.k8s.io/v1\x12\x0cTokenRequest\x12\x1f"
    b'\n\x10\n\x00\x12\x00\x1a\x00"\x00*\x002\x008\x00B\x00\x12\x05 \x80\xe7\x84\x0f\x1a\x04\n\x00\x12\x00\x1a\x00"\x00'
)
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/monitoring"


def created(kubectl: Kubectl, path: str, body: bytes) -> Reply:
    return kubectl.send(
        "POST", path, body, content_type=PROTOBUF, accept=f"{PROTOBUF},application/json"
    )


def test_create_token_is_understood_and_its_token_opens_the_account(
    kubectl: Kubectl,
) -> None:
    where = "/api/v1/namespaces/default/serviceaccounts"
    kubectl.send(
        "POST",
        where,
        {"metadata": {"name": "provisioner"}},
        content_type="application/json",
    )

    made = created(kubectl, f"{where}/provisioner/token", CREATE_TOKEN)

    assert (made.status, made.headers["content-type"]) == (201, "application/json")
    assert made.json()["spec"]["expirationSeconds"] == 8760 * 3600
    who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    said = kubectl.send(
        "POST",
        who,
        {},
        who=made.json()["status"]["token"],
        content_type="application/json",
    )
    assert (
        said.json()["status"]["userInfo"]["username"]
        == "system:serviceaccount:default:provisioner"
    )


def test_what_kubectl_creates_is_kept_as_it_was_meant(kubectl: Kubectl) -> None:
    for name in ("jupyterhub", "monitoring"):
        body = CREATE_NAMESPACE.replace(b"jupyterhub", name.encode())
        assert created(kubectl, "/api/v1/namespaces", body).status == 201
    secret = created(kubectl, "/api/v1/namespaces/jupyterhub/secrets", CREATE_SECRET)
    role = created(kubectl, f"{RBAC}/roles", CREATE_ROLE)
    binding = created(kubectl, f"{RBAC}/rolebindings", CREATE_BINDING)

    assert (secret.status, secret.json()["data"]) == (
        201,
        {"key": "Ygo=", "token": "YQo="},
    )
    assert role.json()["rules"] == [
        {
            "verbs": ["get"],
            "apiGroups": [""],
            "resources": ["services/proxy"],
            "resourceNames": ["prometheus-operated:9090"],
        }
    ]
    assert binding.json()["subjects"] == [
        {"kind": "ServiceAccount", "name": "provisioner", "namespace": "quartermaster"}
    ]
    assert binding.json()["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "quartermaster-metrics",
    }
    assert created(kubectl, "/api/v1/namespaces", CREATE_NAMESPACE).status == 409


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(CREATE_NAMESPACE[4:], 400, id="without its first four bytes"),
        pytest.param(CREATE_NAMESPACE[:30], 400, id="cut off"),
        pytest.param(CREATE_SECRET, 400, id="of another kind"),
        pytest.param(
            CREATE_NAMESPACE.replace(b"\n\x1a\n", b"\n\x1a\x08"),
            400,
            id="a number for a name",
        ),
        pytest.param(
            CREATE_NAMESPACE.replace(b"Namespace", b"ConfigMap"),
            415,
            id="of a kind without a table",
        ),
    ],
)
def test_a_body_in_protobuf_that_cannot_be_read_is_refused(
    kubectl: Kubectl, body: bytes, status: int
) -> None:
    assert created(kubectl, "/api/v1/namespaces", body).status == status


def test_what_the_server_added_to_a_limit_range_stays_when_its_reason_goes(
    kubectl: Kubectl,
) -> None:
    where = "/api/v1/namespaces/default/limitranges"
    item = {"type": "Container", "default": {"cpu": "1", "nvidia.com/gpu": "1"}}
    body = {"metadata": {"name": "l"}, "spec": {"limits": [item]}}
    made = kubectl.send("POST", where, body, content_type="application/json").json()
    assert made["spec"]["limits"][0]["defaultRequest"]["nvidia.com/gpu"] == "1"
    taken = [{"op": "remove", "path": "/spec/limits/0/default/nvidia.com~1gpu"}]
    after = kubectl.send(
        "PATCH", f"{where}/l", taken, content_type="application/json-patch+json"
    ).json()
    assert "nvidia.com/gpu" not in after["spec"]["limits"][0]["default"]
    assert after["spec"]["limits"][0]["defaultRequest"]["nvidia.com/gpu"] == "1"
