"""Whose explanations an object may change: a table."""

from collections.abc import Mapping
from typing import Any

import pytest

from workloads.watching.scopes import EVERYBODY, changed_scopes

TEAMS = frozenset({"vision", "speech"})
Object = Mapping[str, Any]


def found(kind: str, name: str = "it", namespace: str = "", **body: Any) -> Object:
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, **body}


def pod(
    namespace: str, *, node: str = "", gpus: str = "1", phase: str = "Running"
) -> Object:
    containers = [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]
    spec = {"containers": containers, "nodeName": node}
    return found("Pod", namespace=namespace, spec=spec, status={"phase": phase})


def workload(namespace: str, queue: str = "") -> Object:
    return found(
        "Workload", namespace=namespace, status={"admission": {"clusterQueue": queue}}
    )


@pytest.mark.parametrize(
    ("before", "after", "scopes"),
    [
        pytest.param(
            None, found("Job", namespace="vision"), {"vision"}, id="a team's job comes"
        ),
        pytest.param(found("Job", namespace="vision"), None, {"vision"}, id="and goes"),
        pytest.param(None, found("Job", namespace="nobody"), set(), id="nobody's job"),
        pytest.param(
            None, found("Event", namespace="speech"), {"speech"}, id="an event"
        ),
        pytest.param(None, found("Node"), {EVERYBODY}, id="a node"),
        pytest.param(
            None, found("ClusterQueue", "vision"), {"vision"}, id="a team's own queue"
        ),
        pytest.param(
            None, found("ClusterQueue", "batch"), {EVERYBODY}, id="a queue of no team"
        ),
        pytest.param(
            workload("vision"),
            workload("vision", "vision"),
            {"vision"},
            id="let into its own queue",
        ),
        pytest.param(
            None,
            workload("vision", "speech"),
            TEAMS,
            id="let into another team's queue",
        ),
        pytest.param(
            workload("nobody", "speech"),
            workload("nobody"),
            {"speech"},
            id="and out of it",
        ),
        pytest.param(None, pod("vision"), {"vision"}, id="a pod without a node"),
        pytest.param(
            pod("vision"),
            pod("vision", node="a"),
            {"vision", EVERYBODY},
            id="it gets one",
        ),
        pytest.param(
            None, pod("nobody", node="a"), {EVERYBODY}, id="nobody's pod takes room"
        ),
        pytest.param(
            pod("nobody", node="a"),
            pod("nobody", node="a", phase="Failed"),
            {EVERYBODY},
            id="it ends",
        ),
        pytest.param(
            pod("vision", node="a", phase="Pending"),
            pod("vision", node="a"),
            {"vision"},
            id="it starts to run",
        ),
        pytest.param(
            pod("nobody", phase="Pending"),
            pod("nobody"),
            set(),
            id="one without a node says more",
        ),
        pytest.param(found("Node"), found("Node"), set(), id="nothing has changed"),
    ],
)
def test_a_change_concerns(
    before: Object | None, after: Object | None, scopes: set[str]
) -> None:
    assert changed_scopes(before, after, TEAMS) == scopes
