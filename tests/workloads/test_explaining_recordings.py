"""Every state of a Workload that was recorded on a real cluster is explained, and none of them by the fallback."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.known import NOW, admitted, objects, recorded, then
from workloads.explaining import UNKNOWN, explain
from workloads.observed import Facts, Queue, TeamQueue, Workload
from workloads.reading.pods import event_of, pod_of
from workloads.reading.queues import queue_of, team_queue_of
from workloads.reading.work import workload_of

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("QM_SHARED", ROOT.parent / "shared"))
FOLDERS = [
    folder
    for folder in (ROOT / "tests" / "recordings", SHARED / "recordings")
    if folder.is_dir()
]
FILES = sorted(path for folder in FOLDERS for path in folder.glob("*.json"))
# Words of Kueue and Kubernetes that a sentence for people does without.
JARGON = (
    "Workload",
    "ClusterQueue",
    "LocalQueue",
    "flavor",
    "dmission",
    "cohort",
    "reempt",
    "vict",
    "odset",
)


@pytest.mark.parametrize(
    ("row", "workload"),
    [
        pytest.param(*each, id=f"{each[0]['from']} {each[0]['code']}")
        for each in recorded()
    ],
)
def test_a_recorded_state_has_its_code_and_class(
    row: Mapping[str, Any], workload: Workload
) -> None:
    found = explain(Facts(workload=workload), now=then(workload))
    assert (found.code, found.outlook) == (row["code"], row["outlook"])
    assert not [
        word
        for word in JARGON
        if word in f"{found.what} {found.line} {found.when} {found.do}"
    ]


def test_the_recorded_states_are_of_all_classes() -> None:
    assert {row["outlook"] for row, _ in recorded()} == {
        "wait",
        "change",
        "escalate",
        "never",
    }
    assert len({row["code"] for row, _ in recorded()}) > 25


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_workload_of_a_recording_falls_into_the_fallback(path: Path) -> None:
    for step in json.loads(path.read_text()):
        for found in objects(step["response"].get("body"), "Workload"):
            workload = workload_of(found)
            why = explain(Facts(workload=workload), now=then(workload))
            assert why.code != UNKNOWN, (step["name"], why.detail)
            assert all((why.what, why.line, why.when, why.do)), step["name"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_with_what_else_was_seen_nothing_falls_into_the_fallback_either(
    path: Path,
) -> None:
    """Each Workload with its queues and its line as the recording showed them last before."""
    queues: dict[str, Queue] = {}
    own: dict[str, TeamQueue] = {}
    for step in json.loads(path.read_text()):
        body = step["response"].get("body")
        queues |= {
            (one := queue_of(found)).name: one
            for found in objects(body, "ClusterQueue")
        }
        own |= {
            found["metadata"]["namespace"]: team_queue_of(found)
            for found in objects(body, "LocalQueue")
        }
        for found in objects(body, "Workload"):
            workload = workload_of(found)
            team_queue = own.get(workload.key.namespace)
            name = team_queue.cluster_queue if team_queue else ""
            facts = Facts(
                workload=workload,
                queue=queues.get(name),
                team_queue=team_queue
                if team_queue and team_queue.name == workload.queue
                else None,
            )
            assert explain(facts, now=then(workload)).code != UNKNOWN, step["name"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_pod_of_a_recording_waits_for_a_reason_that_is_not_known(path: Path) -> None:
    steps = json.loads(path.read_text())
    events = [
        event_of(found)
        for step in steps
        for found in events_in(step["response"].get("body"))
    ]
    for step in steps:
        for found in objects(step["response"].get("body"), "Pod"):
            why = explain(
                Facts(workload=admitted(), pods=(pod_of(found, events),)), now=NOW
            )
            assert why.code not in ("no_node_fits", "container_waits", UNKNOWN), (
                step["name"],
                why.detail,
            )
    for event in events:
        if event.reason == "FailedCreate" and event.kind == "Job":
            why = explain(Facts(workload=admitted(), events=(event,)), now=NOW)
            assert why.code != "pods_refused", why.detail


def events_in(found: object) -> Iterator[Mapping[str, Any]]:
    """Every event in an answer."""
    if isinstance(found, Mapping):
        if "involvedObject" in found or "regarding" in found:
            yield found
        for value in found.values():
            yield from events_in(value)
    elif isinstance(found, list):
        for value in found:
            yield from events_in(value)
