"""A recording as the product reads it: what belongs together in a namespace, and what each piece is told of itself."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.known import objects
from tests.workloads.test_explaining_recordings import FILES, events_in
from workloads.grouping import pieces_of
from workloads.listing import Around, Work, by_name, work_of
from workloads.observed import Nodes
from workloads.reading.pods import event_of
from workloads.reading.values import moment
from workloads.watching.kept import copy_of

Steps = list[Mapping[str, Any]]


@pytest.fixture(scope="module")
def steps() -> Steps:
    """The steps of the recording about logs and events."""
    found: list[Path] = [
        path for path in FILES if path.name == "40-logs-and-events.json"
    ]
    if not found:
        pytest.skip("the recording is not on this machine")
    return [*json.loads(found[0].read_text())]


def last(steps: Steps, kind: str) -> list[dict[str, Any]]:
    """Every object of a kind as it was answered last, as it is copied."""
    found = {
        one["metadata"]["uid"]: copy_of(one)
        for step in steps
        for one in objects(step["response"].get("body"), kind)
    }
    return [*found.values()]


def work_in(steps: Steps) -> dict[str, Work]:
    events = by_name(
        event_of(one)
        for step in steps
        for one in events_in(step["response"].get("body"))
    )
    now = moment("2026-11-22T15:30:00Z")
    assert now is not None
    around = Around(
        cluster="recorded",
        queues={},
        team_queues={},
        nodes=Nodes(),
        known=lambda queue: {},
    )
    pieces = pieces_of(*(last(steps, kind) for kind in ("Workload", "Job", "Pod")))
    return {one.key.name: work_of(one, around, events, now=now) for one in pieces}


@pytest.mark.parametrize(
    ("job", "code"),
    [
        ("nofit", "node_labels_differ"),
        ("slow", "starting"),
        ("deadline", "stopped_at_limit"),
    ],
)
def test_of_everything_in_the_namespace_only_what_is_the_jobs_counts(
    steps: Steps, job: str, code: str
) -> None:
    work = work_in(steps)[job]
    assert {one.name.rpartition("-")[0] for one in work.pods} <= {job}
    assert work.why.code == code
