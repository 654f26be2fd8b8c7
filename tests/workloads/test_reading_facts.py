"""The facts of one job from a whole recording: its own pods and events, and nobody else's."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.known import objects
from tests.workloads.test_explaining_recordings import FILES, events_in
from workloads.estimating import Wait
from workloads.explaining import explain
from workloads.reading.facts import facts_of, waits_of
from workloads.reading.values import moment

NODES = {"a100": {"accelerator": "nvidia-a100"}}


@pytest.fixture(scope="module")
def steps() -> dict[str, Mapping[str, Any]]:
    """The steps of the recording about logs and events, by name."""
    found: list[Path] = [
        path for path in FILES if path.name == "40-logs-and-events.json"
    ]
    if not found:
        pytest.skip("the recording is not on this machine")
    return {step["name"]: step for step in json.loads(found[0].read_text())}


def every(
    steps: Mapping[str, Mapping[str, Any]], kind: str
) -> Iterator[Mapping[str, Any]]:
    for step in steps.values():
        yield from objects(step["response"].get("body"), kind)


@pytest.mark.parametrize(
    ("job", "code"),
    [
        ("nofit", "node_labels_differ"),
        ("badimage", "image_pull"),
        ("slow", "starting"),
        ("deadline", "stopped_at_limit"),
    ],
)
def test_of_everything_in_the_namespace_only_what_is_the_jobs_counts(
    steps: Mapping[str, Mapping[str, Any]], job: str, code: str
) -> None:
    [first, *_] = [one for one in every(steps, "Job") if one["metadata"]["name"] == job]
    owned = [
        one
        for one in every(steps, "Workload")
        if one["metadata"]["ownerReferences"][0]["uid"] == first["metadata"]["uid"]
    ]
    facts = facts_of(
        workload=owned[-1]
        if owned
        else WORKLOAD
        | {"metadata": {"name": f"job-{job}-00000", "namespace": "qm-t-alpha"}},
        job=first,
        pods=every(steps, "Pod"),
        events=[
            found
            for step in steps.values()
            for found in events_in(step["response"].get("body"))
        ],
    )
    assert {one.name.rpartition("-")[0] for one in facts.pods} <= {job}
    assert all(job in one.name for one in facts.events)
    now = moment("2026-11-22T15:30:00Z")
    assert now is not None
    assert explain(facts, now=now).code == code


CREATED, RESERVED = "2026-11-22T15:00:00Z", "2026-11-22T15:07:00Z"
TRUE = [
    {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": RESERVED}
    for kind in ("QuotaReserved", "Admitted")
]
PODS = [
    {
        "count": 2,
        "template": {
            "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}]}
        },
    }
]
WORKLOAD: dict[str, Any] = {
    "metadata": {
        "name": "job-x-1",
        "namespace": "team-nlp",
        "creationTimestamp": CREATED,
    },
    "spec": {"podSets": PODS},
    "status": {"conditions": TRUE},
}


def test_a_wait_is_from_the_creation_to_the_quota() -> None:
    assert waits_of([WORKLOAD]) == [Wait(8, timedelta(minutes=7))]


@pytest.mark.parametrize(
    "status",
    [
        {},
        {
            "conditions": [
                *TRUE,
                {"type": "Evicted", "status": "False", "lastTransitionTime": RESERVED},
            ]
        },
        {"conditions": TRUE, "admissionChecks": [{"name": "budget", "state": "Ready"}]},
    ],
)
def test_what_still_waits_was_evicted_or_checked_is_no_sample(
    status: dict[str, Any],
) -> None:
    assert waits_of([WORKLOAD | {"status": status}]) == []


def test_a_pod_of_the_same_workload_name_in_another_namespace_is_not_its_own() -> None:
    def pod(namespace: str) -> dict[str, Any]:
        marks = {"kueue.x-k8s.io/workload": "job-x-1"}
        return {
            "metadata": {
                "name": f"pod-{namespace}",
                "namespace": namespace,
                "annotations": marks,
            }
        }

    facts = facts_of(workload=WORKLOAD, pods=[pod("team-nlp"), pod("team-vision")])
    assert [one.name for one in facts.pods] == ["pod-team-nlp"]


def test_a_line_and_what_runs_belong_to_the_facts() -> None:
    pending = [
        {
            "metadata": {"name": "job-x-1", "namespace": "team-nlp"},
            "positionInClusterQueue": 3,
        }
    ]
    facts = facts_of(
        workload=WORKLOAD,
        pending=pending,
        queue={},
        team_queue={},
        nodes=[],
        flavors=NODES,
    )
    assert facts.line is not None
    assert facts.line.position == 3
    assert facts_of(workload=None, job={"kind": "Job"}).workload is None
