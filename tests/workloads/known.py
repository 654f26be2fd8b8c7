"""Facts that tests of explanations begin with, and the Workloads that were recorded on a real cluster."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from workloads.explaining import explain
from workloads.explanations import Explanation
from workloads.observed import Cluster, Condition, Facts, JobKey, PodSet, Workload
from workloads.reading.work import workload_of

NOW = datetime(2026, 11, 22, 16, tzinfo=UTC)
BEFORE = NOW - timedelta(minutes=12)
OWN = JobKey("team-nlp", "bert", uid="own")
RECORDED = Path(__file__).parent / "recorded.jsonl"


def condition(kind: str, *, is_true: bool, reason: str, message: str = "") -> Condition:
    """A condition that holds for twelve minutes."""
    return Condition(kind, is_true, reason, message, BEFORE)


def waiting(message: str, reason: str = "Pending", **fields: Any) -> Workload:
    """A Workload of two pods with four GPUs each, whose quota Kueue could not reserve and says why."""
    said = condition("QuotaReserved", is_true=False, reason=reason, message=message)
    return workload({"QuotaReserved": said, **fields.pop("conditions", {})}, **fields)


def admitted(**conditions: Condition) -> Workload:
    """A Workload that Kueue has let in, with further conditions."""
    said = {
        "QuotaReserved": condition(
            "QuotaReserved", is_true=True, reason="QuotaReserved"
        ),
        "Admitted": condition("Admitted", is_true=True, reason="Admitted"),
        "PodsReady": condition("PodsReady", is_true=False, reason="WaitForStart"),
    }
    return workload({**said, **conditions}, cluster_queue="team-nlp", flavors=("a100",))


def workload(conditions: Mapping[str, Condition], **fields: Any) -> Workload:
    """A Workload of two pods with four GPUs each."""
    standard: dict[str, Any] = {
        "key": OWN,
        "name": "job-bert-12345",
        "created": BEFORE,
        "queue": "default",
        "pod_sets": (PodSet("main", 2, 4),),
        "conditions": conditions,
    }
    return Workload(**{**standard, **fields})


def why(workload: Workload | None, **facts: Any) -> Explanation:
    """What is explained of it at `NOW`."""
    facts.setdefault("cluster", Cluster(title="training-westeurope"))
    return explain(Facts(workload=workload, titles={"a100": "A100"}, **facts), now=NOW)


def recorded() -> Iterator[tuple[Mapping[str, Any], Workload]]:
    """Distinct states of Workloads as recorded, each with what is expected of it."""
    for line in RECORDED.read_text().splitlines():
        row = json.loads(line)
        yield row, workload_of(manifest(row))


def manifest(row: Mapping[str, Any]) -> dict[str, Any]:
    """A recorded state as Kubernetes answers it."""
    names = ("type", "status", "reason", "message", "lastTransitionTime")
    owner = {"controller": True, "kind": row["kind"], "name": row["job"], "uid": "1"}
    return {
        "kind": "Workload",
        "metadata": {
            "name": row["name"],
            "namespace": row["namespace"],
            "creationTimestamp": row["created"],
            "ownerReferences": [owner],
        },
        "spec": {"active": row["active"], "queueName": row["queue"]},
        "status": {
            "conditions": [
                dict(zip(names, each, strict=True)) for each in row["conditions"]
            ],
            "admissionChecks": row.get("checks", []),
            "requeueState": row.get("requeue", {}),
        },
    }


def then(workload: Workload) -> datetime:
    """The moment at which a recorded state was seen: that of its last condition."""
    times = [one.since for one in workload.conditions.values() if one.since is not None]
    return max(times, default=workload.created or NOW)


def objects(found: object, kind: str) -> Iterator[Mapping[str, Any]]:
    """Every object of a kind in an answer: alone, in a list, or in the events of a watch."""
    if isinstance(found, Mapping):
        if (
            found.get("kind") == kind
            and isinstance(found.get("spec"), Mapping)
            and "metadata" in found
        ):
            yield found
        for value in found.values():
            yield from objects(value, kind)
    elif isinstance(found, Sequence) and not isinstance(found, str):
        for value in found:
            yield from objects(value, kind)
