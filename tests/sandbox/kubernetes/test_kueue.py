"""Queues report what a real Kueue reported, and bad ones are refused in its words."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.kubernetes.defaults import apply_defaults
from sandbox.kubernetes.kinds import Kind, by_kind
from sandbox.kubernetes.kueue import (
    active_state,
    cluster_queue_status,
    is_waiting,
    local_queue_status,
)
from sandbox.kubernetes.kueue_rules import (
    queue_change_refusal,
    schema_causes,
    update_causes,
    webhook_refusal,
)

RECORDINGS = Path(__file__).parents[2] / "recordings"
API = "kueue.x-k8s.io/v1beta2"
FLAVOR = {"metadata": {"name": "a100"}}
NOW = "2026-11-21T05:41:55Z"
Object = dict[str, Any]


def kind_of(name: str, api_version: str = API) -> Kind:
    kind = by_kind(api_version, name)
    assert kind is not None
    return kind


def body_of(file: str, name: str) -> Object:
    steps = json.loads((RECORDINGS / f"{file}.json").read_text())
    body: Object = next(
        step["response"]["body"] for step in steps if step["name"] == name
    )
    return body


def workload(
    name: str,
    gpus: str,
    *,
    cpu: str = "1",
    queue: str = "default",
    admitted: bool = True,
) -> Object:
    conditions = [{"type": "QuotaReserved", "status": "True"}]
    if admitted:
        conditions.append({"type": "Admitted", "status": "True"})
    usage = {"cpu": cpu, "memory": f"{cpu}Gi", "nvidia.com/gpu": gpus}
    assignment = {
        "name": "main",
        "flavors": dict.fromkeys(usage, "a100"),
        "resourceUsage": usage,
    }
    admission = {"clusterQueue": "qm-alpha", "podSetAssignments": [assignment]}
    status = {"conditions": conditions, "admission": admission}
    return {
        "metadata": {"name": name, "namespace": "qm-t-alpha"},
        "spec": {"queueName": queue},
        "status": status,
    }


def waiting(name: str) -> Object:
    return {
        "metadata": {"name": name, "namespace": "qm-t-alpha"},
        "spec": {"queueName": "default"},
    }


HELD: dict[str, list[Object]] = {
    "clusterqueue-inactive": [],
    "clusterqueue-active": [],
    "running-clusterqueue": [workload("a", "2")],
    "borrowing-clusterqueue": [workload("a", "8"), workload("b", "8")],
    "lower-below-use-clusterqueue": [workload("a", "8"), waiting("b")],
    "checked-clusterqueue": [workload("a", "1", admitted=False)],
    "blocked-clusterqueue": [workload("a", "4", cpu="2"), workload("b", "4")],
    "stop-hold-clusterqueue": [
        workload("a", "4"),
        workload("b", "3"),
        *(waiting(name) for name in "cdef"),
    ],
    "drained-clusterqueue": [waiting(name) for name in "abcdefg"],
}
FILES = {
    **dict.fromkeys(
        ("clusterqueue-inactive", "clusterqueue-active"), "09-kueue-objects"
    ),
    "running-clusterqueue": "10a-job-life",
    **dict.fromkeys(
        ("borrowing-clusterqueue", "lower-below-use-clusterqueue"), "10c-borrow-reclaim"
    ),
    **dict.fromkeys(
        ("checked-clusterqueue", "blocked-clusterqueue"), "10e-job-variants"
    ),
    **dict.fromkeys(
        ("stop-hold-clusterqueue", "drained-clusterqueue"), "10f-preemption-and-stop"
    ),
}


@pytest.mark.parametrize("name", HELD)
def test_a_cluster_queue_reports_what_it_reported(name: str) -> None:
    recorded = body_of(FILES[name], name)
    flavors = [] if name == "clusterqueue-inactive" else [FLAVOR]
    check = {
        "metadata": {"name": "approval"},
        "status": {"conditions": [{"type": "Active", "status": "True"}]},
    }
    queue = {
        "metadata": {"name": "default", "namespace": "qm-t-alpha"},
        "spec": {"clusterQueue": "qm-alpha"},
    }
    ours = cluster_queue_status(
        recorded, flavors, [check], HELD[name], local_queues=[queue], now=NOW
    )
    assert ours == recorded["status"]


@pytest.mark.parametrize(
    ("queue", "cluster_queue"),
    [
        ("localqueue-inactive-status", "clusterqueue-inactive"),
        ("localqueue-active", "clusterqueue-active"),
    ],
)
def test_a_local_queue_follows_its_cluster_queue(
    queue: str, cluster_queue: str
) -> None:
    recorded = body_of("09-kueue-objects", queue)
    assert (
        local_queue_status(recorded, body_of("09-kueue-objects", cluster_queue))
        == recorded["status"]
    )


def test_a_local_queue_counts_its_own_workloads() -> None:
    recorded = body_of("10c-borrow-reclaim", "borrowing-localqueue")
    above = body_of("10c-borrow-reclaim", "borrowing-clusterqueue")
    held = [workload("a", "8"), workload("b", "8"), workload("c", "1", queue="other")]
    assert local_queue_status(recorded, above, held) == recorded["status"]


def test_a_local_queue_without_its_cluster_queue_says_so() -> None:
    recorded = body_of("09-kueue-objects", "localqueue-missing-cq-status")
    assert local_queue_status(recorded, None) == recorded["status"]
    stopped = {"metadata": {"name": "q"}, "spec": {"stopPolicy": "Hold"}}
    assert (
        local_queue_status(stopped, None, now=NOW)["conditions"][0]["reason"]
        == "Stopped"
    )


def test_a_cluster_queue_gives_every_reason_why_it_is_inactive() -> None:
    terminating = body_of("10c-borrow-reclaim", "delete-clusterqueue-in-use-get")
    (condition,) = terminating["status"]["conditions"]
    assert active_state(terminating, [FLAVOR], []) == (
        "False",
        condition["reason"],
        condition["message"],
    )
    rules = {"admissionChecks": [{"name": "asleep"}, {"name": "gone"}]}
    spec = {
        "stopPolicy": "Hold",
        "admissionChecksStrategy": rules,
        "resourceGroups": [{"flavors": [{"name": "f"}]}],
    }
    text = (
        "Can't admit new workloads: is stopped, references missing ResourceFlavor(s): f, "
        "references missing AdmissionCheck(s): gone, references inactive AdmissionCheck(s): asleep."
    )
    assert active_state({"spec": spec}, [], [{"metadata": {"name": "asleep"}}]) == (
        "False",
        "Stopped",
        text,
    )


def test_finished_and_deactivated_workloads_do_not_wait() -> None:
    assert is_waiting(waiting("a"))
    assert not is_waiting({"spec": {"active": False}})
    assert not is_waiting(
        {"status": {"conditions": [{"type": "Finished", "status": "True"}]}}
    )


def cluster_queue(groups: list[Object], **spec: Any) -> Object:
    body = {"metadata": {"name": "q"}, "spec": {"resourceGroups": groups, **spec}}
    return apply_defaults(kind_of("ClusterQueue"), body)


def group(name: str, **quota: Any) -> Object:
    resources = [{"name": "cpu", "nominalQuota": "1", **quota}]
    return {
        "coveredResources": ["cpu"],
        "flavors": [{"name": name, "resources": resources}],
    }


def test_the_webhook_names_everything_it_refuses_at_once() -> None:
    found = webhook_refusal(
        kind_of("ClusterQueue"),
        cluster_queue([group("a", lendingLimit="2"), group("a")]),
    )
    assert found is not None
    path = "spec.resourceGroups[1]"
    lending = (
        "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit: Invalid value: "
    )
    assert found.message == (
        'admission webhook "vclusterqueue.kb.io" denied the request: ['
        f'{path}.coveredResources[0]: Duplicate value: "cpu", {path}.flavors[0].name: Duplicate value: "a", '
        f'{lending}"2": must be nil when cohort is empty, '
        f'{lending}"2": must be less than or equal to the nominalQuota]'
    )


def test_resources_follow_the_order_of_what_is_covered() -> None:
    mixed = {**group("a"), "coveredResources": ["memory"]}
    found = webhook_refusal(
        kind_of("ClusterQueue"), cluster_queue([mixed], fairSharing={"weight": "-1"})
    )
    assert found is not None
    assert "must match the name in coveredResources" in found.message
    assert 'spec.fairSharing.weight: Invalid value: "-1"' in found.message


def fields(kind: str, spec: Object) -> list[str]:
    return [cause["field"] for cause in schema_causes(kind_of(kind), {"spec": spec})]


def test_definitions_require_fields_and_hold_rules() -> None:
    assert fields(
        "ClusterQueue", {"resourceGroups": [{"flavors": [{"resources": [{}]}]}]}
    ) == [
        "spec.resourceGroups[0].coveredResources",
        "spec.resourceGroups[0].flavors[0].name",
        "spec.resourceGroups[0].flavors[0].resources[0].name",
        "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota",
        "<nil>",
    ]
    assert fields("AdmissionCheck", {}) == ["spec.controllerName", "<nil>"]
    assert [
        c["field"] for c in schema_causes(kind_of("WorkloadPriorityClass"), {})
    ] == ["value"]
    levels = [
        {"nodeLabel": "kubernetes.io/hostname"},
        {"nodeLabel": "a"},
        {"nodeLabel": "a"},
    ]
    assert fields("Topology", {"levels": levels}) == ["spec.levels", "spec.levels"]
    tolerations = [
        {"operator": "Exists", "value": "x", "tolerationSeconds": 1, "effect": "Now"},
        {"operator": "In"},
    ]
    flavor = {
        "topologyName": "t",
        "nodeTaints": [{"key": "a"}],
        "tolerations": tolerations,
    }
    assert fields("ResourceFlavor", flavor) == [
        "spec",
        "spec.nodeTaints",
        *["spec.tolerations"] * 5,
    ]
    assert fields(
        "ClusterQueue", {"flavorFungibility": {"preference": "BorrowingOverPreemption"}}
    ) == ["spec.flavorFungibility"]


def test_some_fields_never_change() -> None:
    flavor = {"spec": {"topologyName": "t", "nodeLabels": {"a": "b"}}}
    changed = {"spec": {"topologyName": "t", "nodeLabels": {"a": "c"}}}
    (cause,) = update_causes(kind_of("ResourceFlavor"), changed, flavor)
    assert (
        cause["message"]
        == "Invalid value: nodeLabels are immutable when topologyName is set"
    )
    one, two = {"spec": {"controllerName": "a"}}, {"spec": {"controllerName": "b"}}
    assert (
        update_causes(kind_of("AdmissionCheck"), two, one)[0]["field"]
        == "spec.controllerName"
    )


def test_the_queue_of_a_running_job_is_fixed() -> None:
    assert queue_change_refusal("Job", "other").body == body_of(
        "10a-job-life", "change-queue"
    )
