"""How long the jobs of a queue waited, by what their Workloads say."""

from datetime import timedelta
from typing import Any

import pytest

from workloads.estimating import Wait
from workloads.reading.waits import waits_of

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
