"""Admission policies judge what is written as the API server does, in its words."""

import json
from typing import Any

import pytest

from sandbox.kubernetes import Cluster, Identity
from tests.recordings.calling import call

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
TOKENS = {"admin": Identity("admin", ("system:masters",))}
RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}


def policy(*validations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    constraints = {
        "resourceRules": [RULE | spec.pop("rule", {})],
        **spec.pop("constraints", {}),
    }
    return {
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": constraints,
            "validations": list(validations),
            **spec,
        },
    }


class Server:
    """A cluster with two namespaces, one of which is labelled."""

    def __init__(self) -> None:
        self.cluster = Cluster("t", tokens=TOKENS)
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "open"}})
        self.send(
            "POST",
            "/api/v1/namespaces",
            {"metadata": {"name": "guarded", "labels": {"team": "a"}}},
        )

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"authorization": "Bearer admin", "content-type": "application/json"}
        content = b"" if body is None else json.dumps(body).encode()
        answer = call(self.cluster.app, method, path, {}, headers, content)
        return answer.status, answer.json()

    def guard(self, body: dict[str, Any], **binding: Any) -> None:
        assert (
            self.send("POST", f"{ADMISSION}/validatingadmissionpolicies", body)[0]
            == 201
        )
        spec = {"policyName": "p", "validationActions": ["Deny"], **binding}
        made = self.send(
            "POST",
            f"{ADMISSION}/validatingadmissionpolicybindings",
            {"metadata": {"name": "b"}, "spec": spec},
        )
        assert made[0] == 201, made

    def make(self, namespace: str = "guarded", **data: str) -> tuple[int, Any]:
        body = {"metadata": {"name": "c"}, "data": data}
        return self.send("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)


@pytest.fixture
def server() -> Server:
    return Server()


def test_what_a_policy_denies_is_refused_with_its_names_and_message(
    server: Server,
) -> None:
    server.guard(
        policy(
            {
                "expression": "!has(object.data)",
                "message": "no data",
                "reason": "Forbidden",
            }
        )
    )
    status, said = server.make(a="1")
    assert (status, said["reason"]) == (403, "Forbidden")
    assert said["message"] == (
        "configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no data"
    )
    assert server.make()[0] == 201
    assert (
        server.send(
            "PUT",
            "/api/v1/namespaces/guarded/configmaps/c",
            {"metadata": {"name": "c"}, "data": {"a": "1"}},
        )[0]
        == 403
    )


def test_without_a_reason_it_is_invalid_and_without_a_message_it_shows_the_expression(
    server: Server,
) -> None:
    server.guard(policy({"expression": "!has(object.data)"}))
    status, said = server.make(a="1")
    assert status == 422
    assert said["message"].endswith(
        "denied request: failed expression: !has(object.data)"
    )


def test_a_policy_without_a_binding_and_one_that_warns_deny_nothing(
    server: Server,
) -> None:
    server.guard(policy({"expression": "false"}), validationActions=["Warn"])
    assert server.make(a="1")[0] == 201


def test_the_labels_of_the_namespace_choose(server: Server) -> None:
    chosen = {
        "namespaceSelector": {
            "matchExpressions": [{"key": "team", "operator": "Exists"}]
        }
    }
    server.guard(policy({"expression": "false"}, constraints=chosen))
    assert [server.make(namespace)[0] for namespace in ("open", "guarded")] == [
        201,
        422,
    ]


def test_conditions_choose_and_variables_are_known(server: Server) -> None:
    body = policy(
        {
            "expression": "variables.n == 1",
            "messageExpression": "'it has ' + string(variables.n)",
        },
        matchConditions=[{"name": "has-data", "expression": "has(object.data)"}],
        variables=[{"name": "n", "expression": "object.data.size()"}],
    )
    server.guard(body)
    assert server.make("open")[0] == 201
    status, said = server.make(a="1", b="2")
    assert (status, said["message"].endswith("denied request: it has 2")) == (422, True)


def test_an_expression_without_a_value_denies_unless_failures_are_ignored(
    server: Server,
) -> None:
    server.guard(policy({"expression": "object.data.nope == 'x'"}))
    status, said = server.make(a="1")
    assert status == 422
    assert "resulted in error: no such key: nope" in said["message"]
    ignored = policy({"expression": "object.data.nope == 'x'"}, failurePolicy="Ignore")
    assert (
        server.send("PUT", f"{ADMISSION}/validatingadmissionpolicies/p", ignored)[0]
        == 200
    )
    assert server.make(a="1")[0] == 201


def test_a_deletion_shows_what_goes_and_a_collection_is_judged_one_by_one(
    server: Server,
) -> None:
    server.guard(
        policy(
            {"expression": "oldObject.metadata.name != 'c'"},
            rule={"operations": ["DELETE"]},
        )
    )
    assert server.make()[0] == 201
    where = "/api/v1/namespaces/guarded/configmaps"
    assert server.send("DELETE", f"{where}/c")[0] == 422
    assert server.send("DELETE", where)[0] == 422
    assert server.send("GET", f"{where}/c")[0] == 200


def test_cel_that_does_not_compile_is_refused_when_it_is_written(
    server: Server,
) -> None:
    status, said = server.send(
        "POST",
        f"{ADMISSION}/validatingadmissionpolicies",
        policy({"expression": "1 +"}),
    )
    assert status == 422
    assert "spec.validations[0].expression: Invalid value" in said["message"]
