"""Invalid objects are refused as a real server refused them, step by step through its recordings."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.kubernetes.defaults import apply_defaults
from sandbox.kubernetes.kinds import Kind, by_kind
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.validation import (
    check_create,
    check_quantities,
    check_update,
    create_causes,
    metadata_update_causes,
    update_causes,
)

RECORDINGS = Path(__file__).parents[2] / "recordings"
Step = dict[str, Any]


def steps(file: str) -> list[Step]:
    loaded: list[Step] = json.loads((RECORDINGS / file).read_text())
    return loaded


def kind_of(api_version: str, name: str) -> Kind:
    kind = by_kind(api_version, name)
    assert kind is not None
    return kind


def judge(
    kind: Kind, obj: dict[str, Any], old: dict[str, Any] | None
) -> Refusal | None:
    """What the rules say of an apply, over what an earlier step stored."""
    refusal = check_quantities(kind, obj)
    if refusal is not None:
        return refusal
    merged = apply_defaults(kind, merge(old or {}, obj))
    return (
        check_create(kind, merged) if old is None else check_update(kind, merged, old)
    )


def merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    merged = copy.deepcopy(old)
    for name, value in new.items():
        below = merged.get(name)
        merged[name] = (
            merge(below, value)
            if isinstance(value, dict) and isinstance(below, dict)
            else value
        )
    return merged


# Refused before the rules are asked: by the apply itself, the store or another part of the server.
ELSEWHERE = {
    "uid-mismatch",
    "uid-on-missing",
    "conflict",
    "namespace-missing",
    "namespace-missing-dryrun",
}


def replayed() -> list[Any]:
    found: list[Any] = []
    stored: dict[str, dict[str, Any]] = {}
    for file in (
        "02a-ssa-golden.json",
        "02c-ssa-refusals.json",
        "09-kueue-objects.json",
    ):
        for index, step in enumerate(steps(file)):
            request, status, body = (
                step["request"],
                step["response"]["status"],
                step["request"]["body"],
            )
            if (
                request["method"] != "PATCH"
                or not isinstance(body, dict)
                or step["name"] in ELSEWHERE
            ):
                continue
            kind = by_kind(body.get("apiVersion", ""), body.get("kind", ""))
            about = status in {200, 201} or is_ours(step)
            if kind is not None and about:
                old = stored.get(request["path"])
                found.append(
                    pytest.param(
                        kind, step, old, id=f"{file[:3]}-{index}-{step['name']}"
                    )
                )
            if status in {200, 201} and "dryRun" not in (request.get("query") or {}):
                stored[request["path"]] = step["response"]["body"]
    return found


def is_ours(step: Step) -> bool:
    message = str(step["response"]["body"]["message"])
    written = " is invalid: " in message and "PatchOptions" not in message
    return (
        written or "admission webhook" in message or "quantities must match" in message
    )


def test_the_recordings_hold_many_refusals() -> None:
    assert (
        sum(param.values[1]["response"]["status"] >= 400 for param in replayed()) >= 45
    )


@pytest.mark.parametrize(("kind", "step", "old"), replayed())
def test_it_judges_an_object_as_the_server_did(
    kind: Kind, step: Step, old: dict[str, Any] | None
) -> None:
    body = copy.deepcopy(step["request"]["body"])
    answer = step["response"]
    refusal = judge(kind, body, old)
    if answer["status"] in {200, 201}:
        assert refusal is None
    else:
        assert refusal is not None
        assert (refusal.code, refusal.body) == (answer["status"], answer["body"])


def test_no_finalizer_is_added_to_an_object_in_deletion() -> None:
    old = {
        "deletionTimestamp": "2026-11-21T05:38:19Z",
        "finalizers": ["quartermaster.example.com/hold"],
    }
    new = {
        **old,
        "finalizers": [
            "quartermaster.example.com/hold",
            "quartermaster.example.com/two",
        ],
    }
    assert metadata_update_causes(new, old)[0]["message"] == (
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
        '[]string{"quartermaster.example.com/two"}'
    )


def fields_of(api_version: str, kind: str, obj: dict[str, Any]) -> set[str]:
    wanted = kind_of(api_version, kind)
    named = {"metadata": {"name": "x", "namespace": "n"}, **obj}
    return {
        cause["field"] for cause in create_causes(wanted, apply_defaults(wanted, named))
    }


def test_it_finds_what_is_wrong_with_roles_and_subjects() -> None:
    rbac = "rbac.authorization.k8s.io/v1"
    rules = [{}, {"verbs": ["get"], "nonResourceURLs": ["/"], "resources": ["pods"]}]
    found = fields_of(rbac, "Role", {"rules": rules})
    assert found == {
        "rules[0].verbs",
        "rules[0].apiGroups",
        "rules[0].resources",
        "rules[1].nonResourceURLs",
    }
    subjects = [
        {"kind": "ServiceAccount", "name": "A_b"},
        {"kind": "Group", "name": "", "apiGroup": "x"},
    ]
    binding = {"roleRef": {"kind": "Role", "name": "a/b"}, "subjects": subjects}
    assert fields_of(rbac, "ClusterRoleBinding", binding) == {
        *("roleRef.kind", "roleRef.name", "subjects[0].name", "subjects[0].namespace"),
        *("subjects[1].name", "subjects[1].apiGroup"),
    }


def test_it_finds_what_is_wrong_with_network_policies() -> None:
    peers = [
        {},
        {
            "ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/9", "x"]},
            "podSelector": {},
        },
    ]
    rule = {
        "from": peers,
        "ports": [{"protocol": "ICMP"}, {"port": 70000, "endPort": 2}],
    }
    found = fields_of(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        {"spec": {"ingress": [rule], "policyTypes": ["In"]}},
    )
    path = "spec.ingress[0]"
    assert found == {
        *(f"{path}.from[0]", f"{path}.from[1]", "spec.policyTypes[0]"),
        *(f"{path}.from[1].ipBlock.except[0]", f"{path}.from[1].ipBlock.except[1]"),
        *(
            f"{path}.ports[0].protocol",
            f"{path}.ports[1].port",
            f"{path}.ports[1].endPort",
        ),
    }


def test_it_finds_what_is_wrong_with_policies_of_cilium() -> None:
    hosts = [
        {"matchName": "*.example.com"},
        {"matchPattern": "*.example.com"},
        {"matchName": "a" * 256},
    ]
    ports = [{"port": "-", "protocol": "tcp"}, {"port": "443", "protocol": "ANY"}]
    rule = {
        "toFQDNs": hosts,
        "toPorts": [{"ports": ports, "rules": {"dns": [{"matchPattern": "a b"}]}}],
    }
    found = fields_of(
        "cilium.io/v2",
        "CiliumNetworkPolicy",
        {"spec": {"endpointSelector": {}, "egress": [rule]}},
    )
    path = "spec.egress[0]"
    assert found == {
        *(f"{path}.toFQDNs[0].matchName", f"{path}.toFQDNs[2].matchName"),
        *(f"{path}.toPorts[0].ports[0].port", f"{path}.toPorts[0].ports[0].protocol"),
        f"{path}.toPorts[0].rules.dns[0].matchPattern",
    }
    assert fields_of("cilium.io/v2", "CiliumNetworkPolicy", {"spec": {}}) == {"spec"}


def test_it_finds_what_is_wrong_with_a_job() -> None:
    container = {"image": "", "name": "Main", "resources": {"requests": {"gpu": "1"}}}
    spec = {"parallelism": -1, "template": {"spec": {"containers": [container]}}}
    found = fields_of("batch/v1", "Job", {"spec": spec})
    path = "spec.template.spec.containers[0]"
    assert found == {
        *(
            "spec.parallelism",
            "spec.template.spec.restartPolicy",
            f"{path}.name",
            f"{path}.image",
        ),
        f"{path}.resources.requests[gpu]",
    }


def test_a_claim_may_grow_once_it_is_bound() -> None:
    claim = kind_of("v1", "PersistentVolumeClaim")
    spec = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    meta = {"name": "home", "namespace": "n"}
    old = apply_defaults(
        claim, {"metadata": meta, "spec": spec, "status": {"phase": "Bound"}}
    )
    grown = merge(old, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    assert update_causes(claim, grown, old) == []
    assert update_causes(claim, old, grown)[0]["field"] == "spec"


def test_annotations_have_a_size_and_a_config_map_may_be_fixed() -> None:
    config = kind_of("v1", "ConfigMap")
    big = {"metadata": {"name": "c", "annotations": {"a": "x" * 262144}}}
    assert (
        create_causes(config, big)[0]["message"]
        == "Too long: may not be more than 262144 bytes"
    )
    old = {"metadata": {"name": "c"}, "immutable": True, "data": {"a": "1"}}
    assert [
        cause["field"] for cause in update_causes(config, {**old, "data": {}}, old)
    ] == ["data"]
    assert create_causes(config, {"metadata": {}})[0]["field"] == "metadata.name"


def test_an_access_review_needs_no_name() -> None:
    assert (
        create_causes(
            kind_of("authorization.k8s.io/v1", "SelfSubjectAccessReview"), {"spec": {}}
        )
        == []
    )
