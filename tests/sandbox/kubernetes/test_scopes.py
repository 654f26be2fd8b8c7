"""Quotas of some priorities count those pods and nothing else; pods get the value of their class."""

import json
from typing import Any

import pytest

from sandbox.kubernetes import Cluster, Identity
from sandbox.kubernetes.kinds import builtin
from sandbox.kubernetes.scopes import covers, validate
from tests.recordings.calling import call

POD = builtin("v1", "Pod")
TOKENS = {
    "admin": Identity("admin", ("system:masters",)),
    "ada": Identity("ada@example.com", ("team",)),
}


def quota(**requirement: Any) -> dict[str, Any]:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", **requirement}]}
    return {
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": "0"}, "scopeSelector": selector},
    }


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "example.azurecr.io/x:1"}]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


@pytest.mark.parametrize(
    ("requirement", "named", "other", "none"),
    [
        ({"operator": "In", "values": ["high"]}, True, False, False),
        ({"operator": "NotIn", "values": ["high"]}, False, True, True),
        ({"operator": "Exists"}, True, True, False),
        ({"operator": "DoesNotExist"}, False, False, True),
    ],
)
def test_a_quota_covers_pods_by_their_class(
    requirement: dict[str, Any], named: bool, other: bool, none: bool
) -> None:
    one = quota(**requirement)
    assert validate(one) == []
    assert covers(one, POD, pod(priorityClassName="high")) is named
    assert covers(one, POD, pod(priorityClassName="low")) is other
    assert covers(one, POD, pod()) is none
    assert not covers(one, builtin("v1", "ConfigMap"), {"metadata": {"name": "c"}})


@pytest.mark.parametrize(
    "requirement",
    [
        {"operator": "In"},
        {"operator": "Exists", "values": ["high"]},
        {"operator": "Like"},
        {"operator": ""},
    ],
)
def test_a_scope_that_says_nothing_is_invalid(requirement: dict[str, Any]) -> None:
    assert validate(quota(**requirement))


def test_a_quota_of_priorities_limits_pods_alone() -> None:
    one = quota(operator="Exists")
    one["spec"]["hard"] = {"pods": "1", "services": "2"}
    assert [cause["field"] for cause in validate(one)] == ["spec.scopeSelector"]


class Server:
    """A cluster with a namespace and two classes."""

    def __init__(self) -> None:
        self.cluster = Cluster("t", tokens=TOKENS)
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
        for name, value in (("high", 100), ("low", 1)):
            body = {
                "metadata": {"name": name},
                "value": value,
                "preemptionPolicy": "Never",
            }
            self.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)

    def send(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        given = {
            "authorization": "Bearer admin",
            "content-type": "application/json",
            **headers,
        }
        content = b"" if body is None else json.dumps(body).encode()
        answer = call(self.cluster.app, method, path, {}, given, content)
        return answer.status, answer.json()


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_pod_gets_value_and_policy_of_its_class(server: Server) -> None:
    status, made = server.send(
        "POST", "/api/v1/namespaces/n/pods", pod(priorityClassName="high")
    )
    assert (status, made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (
        201,
        100,
        "Never",
    )


def test_a_class_that_is_not_there_and_a_value_of_ones_own_are_refused(
    server: Server,
) -> None:
    status, said = server.send(
        "POST", "/api/v1/namespaces/n/pods", pod(priorityClassName="nope")
    )
    assert (status, said["message"]) == (
        403,
        'pods "p" is forbidden: no PriorityClass with name nope was found',
    )
    status, said = server.send("POST", "/api/v1/namespaces/n/pods", pod(priority=7))
    assert status == 403
    assert "priority admission controller computed 0" in said["message"]


def test_a_closed_class_has_no_pod_and_others_are_not_counted(server: Server) -> None:
    body = quota(operator="In", values=["high"])
    assert server.send("POST", "/api/v1/namespaces/n/resourcequotas", body)[0] == 201
    status, said = server.send(
        "POST", "/api/v1/namespaces/n/pods", pod(priorityClassName="high")
    )
    assert status == 403
    assert said["message"] == (
        'pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0'
    )
    assert (
        server.send("POST", "/api/v1/namespaces/n/pods", pod(priorityClassName="low"))[
            0
        ]
        == 201
    )
    stored = server.send("GET", "/api/v1/namespaces/n/resourcequotas/q")[1]
    assert stored["status"]["used"] == {"pods": "0"}


def test_an_administrator_acts_as_anybody_and_a_member_as_nobody_else(
    server: Server,
) -> None:
    as_ada = {"impersonate-user": "ada@example.com", "impersonate-group": "team"}
    assert server.send("GET", "/api/v1/namespaces/n/pods", **as_ada)[0] == 403
    status, said = server.send(
        "GET",
        "/api/v1/namespaces/n/pods",
        **{"authorization": "Bearer ada", "impersonate-user": "admin"},
    )
    assert status == 403
    assert 'cannot impersonate resource "users"' in said["message"]
