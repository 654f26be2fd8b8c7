"""What the API server fills in, drops and rewrites before it stores an object."""

import base64
import copy
from collections.abc import Callable, Mapping
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.defaults_pods import default_job, default_pod
from sandbox.kubernetes.kinds import RBAC_GROUP, Kind
from sandbox.kubernetes.quantities import canonical, stored
from sandbox.kubernetes.schema import child, schema_for
from sandbox.kubernetes.schema_language import Schema

IN_USE = "kueue.x-k8s.io/resource-in-use"
CLAIM_IN_USE = "kubernetes.io/pvc-protection"
# Only the webhook of ClusterQueues reads and writes the object again; other custom kinds keep their spelling.
REWRITTEN = frozenset({"ClusterQueue"})


def apply_defaults(kind: Kind, obj: dict[str, Any], *, uid: str = "") -> dict[str, Any]:
    """A copy as the server stores it; quantities must be readable (see validation.check_quantities)."""
    cleaned = _clean(schema_for(kind), copy.deepcopy(obj), kind)
    result: dict[str, Any] = cleaned if isinstance(cleaned, dict) else {}
    if not kind.builtin and isinstance(result.get("metadata"), dict):
        # Metadata is the server's own, also in custom kinds.
        result["metadata"] = {
            name: value
            for name, value in result["metadata"].items()
            if value not in ({}, [])
        }
    if kind.own_name == "Job":
        default_job(result, uid)
    elif kind.own_name in DEFAULTS:
        DEFAULTS[kind.own_name](result)
    return result


def _clean(schema: Schema, value: Any, kind: Kind) -> Any:
    """Canonical quantities; null fields and, in builtin kinds, empty lists and maps are not stored."""
    if schema.type == "quantity":
        if not kind.builtin:
            return canonical(value) if kind.kind in REWRITTEN else value
        return stored(value)
    if isinstance(value, dict) and schema.type in {"object", "map"}:
        return _clean_fields(schema, value, kind)
    if isinstance(value, list) and schema.items is not None:
        return [_clean(schema.items, item, kind) for item in value]
    return value


def _clean_fields(schema: Schema, value: dict[str, Any], kind: Kind) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, inner in value.items():
        below = child(schema, name)
        quantity = (
            below is not None and below.type == "quantity" and schema.type == "map"
        )
        if inner is None and not quantity:
            continue
        empty = (
            kind.builtin
            and inner in ([], {})
            and below is not None
            and below.type in {"list", "map"}
        )
        if not empty:
            kept[name] = inner if below is None else _clean(below, inner, kind)
    return kept


def _fill(target: dict[str, Any], values: dict[str, Any]) -> None:
    for name, value in values.items():
        if target.get(name) is None:
            target[name] = value


def _finalizer(obj: dict[str, Any], name: str) -> None:
    meta = obj.setdefault("metadata", {})
    # An object that is being deleted loses its finalizers; it does not get them back.
    if not meta.get("deletionTimestamp"):
        meta["finalizers"] = list(
            dict.fromkeys([*(meta.get("finalizers") or []), name])
        )


def _namespace(obj: dict[str, Any]) -> None:
    meta = obj.setdefault("metadata", {})
    meta["labels"] = {
        **part(meta, "labels"),
        "kubernetes.io/metadata.name": meta.get("name", ""),
    }
    _fill(obj.setdefault("spec", {}), {"finalizers": ["kubernetes"]})
    _fill(obj.setdefault("status", {}), {"phase": "Active"})


def _claim(obj: dict[str, Any]) -> None:
    _finalizer(obj, CLAIM_IN_USE)
    _fill(obj.setdefault("spec", {}), {"volumeMode": "Filesystem", "resources": {}})
    _fill(obj.setdefault("status", {}), {"phase": "Pending"})


def _quota(obj: dict[str, Any]) -> None:
    obj.setdefault("spec", {})
    obj.setdefault("status", {})


def _limit_range(obj: dict[str, Any]) -> None:
    for item in items(part(obj, "spec"), "limits"):
        if item.get("type") != "Container":
            continue
        limits, requests = (
            dict(part(item, "default")),
            dict(part(item, "defaultRequest")),
        )
        _fill(limits, part(item, "max"))
        _fill(requests, limits)
        _fill(requests, part(item, "min"))
        for name, amounts in (("default", limits), ("defaultRequest", requests)):
            if amounts:
                item[name] = amounts


def _binding(obj: dict[str, Any]) -> None:
    reference = obj.setdefault("roleRef", {})
    for name, value in (("apiGroup", RBAC_GROUP), ("kind", ""), ("name", "")):
        reference[name] = reference.get(name) or value
    for subject in items(obj, "subjects"):
        if subject.get("kind") in {"User", "Group"} and not subject.get("apiGroup"):
            subject["apiGroup"] = RBAC_GROUP


def _role(obj: dict[str, Any]) -> None:
    obj.setdefault("rules", None)


def _network_policy(obj: dict[str, Any]) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, {"podSelector": {}})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = (
            ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        )
    for rule in [*items(spec, "ingress"), *items(spec, "egress")]:
        for port in items(rule, "ports"):
            _fill(port, {"protocol": "TCP"})


def _priority_class(obj: dict[str, Any]) -> None:
    _fill(obj, {"value": 0, "preemptionPolicy": "PreemptLowerPriority"})
    if obj.get("globalDefault") is False:
        del obj["globalDefault"]


def _secret(obj: dict[str, Any]) -> None:
    _fill(obj, {"type": "Opaque"})
    written = obj.pop("stringData", None)
    if isinstance(written, dict):
        encoded = {
            key: base64.b64encode(str(value).encode()).decode()
            for key, value in written.items()
        }
        obj["data"] = {**part(obj, "data"), **encoded}


def _service(obj: dict[str, Any]) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, {"type": "ClusterIP", "sessionAffinity": "None"})
    if spec["type"] != "ExternalName":
        families = {
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        }
        _fill(spec, families)
    for port in items(spec, "ports"):
        _fill(port, {"protocol": "TCP", "targetPort": port.get("port")})
    _fill(obj.setdefault("status", {}), {"loadBalancer": {}})


def _storage_class(obj: dict[str, Any]) -> None:
    _fill(obj, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})


def _cluster_queue(obj: dict[str, Any]) -> None:
    _finalizer(obj, IN_USE)
    spec = obj.setdefault("spec", {})
    _fill(spec, {"queueingStrategy": "BestEffortFIFO", "stopPolicy": "None"})
    _fill(spec.setdefault("flavorFungibility", {}), {"whenCanBorrow": "MayStopSearch"})
    _fill(spec["flavorFungibility"], {"whenCanPreempt": "TryNextFlavor"})
    preemption = spec.setdefault("preemption", {})
    _fill(
        preemption,
        {
            "withinClusterQueue": "Never",
            "reclaimWithinCohort": "Never",
            "borrowWithinCohort": {},
        },
    )
    _fill(preemption["borrowWithinCohort"], {"policy": "Never"})
    _fair_sharing(spec)


def _fair_sharing(spec: dict[str, Any]) -> None:
    if isinstance(spec.get("fairSharing"), dict):
        _fill(spec["fairSharing"], {"weight": 1})


def _local_queue(obj: dict[str, Any]) -> None:
    if isinstance(obj.get("spec"), dict):
        _fill(obj["spec"], {"stopPolicy": "None"})
        _fair_sharing(obj["spec"])


def _cohort(obj: dict[str, Any]) -> None:
    _fair_sharing(part(obj, "spec"))


def _resource_flavor(obj: dict[str, Any]) -> None:
    _finalizer(obj, IN_USE)


def _workload(obj: dict[str, Any]) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, {"active": True})
    for pod_set in items(spec, "podSets"):
        _fill(pod_set, {"count": 1, "name": "main"})


def _jobset(obj: dict[str, Any]) -> None:
    spec = part(obj, "spec")
    if isinstance(spec.get("failurePolicy"), dict):
        _fill(spec["failurePolicy"], {"restartStrategy": "Recreate"})
    for replicated in items(spec, "replicatedJobs"):
        _fill(replicated, {"groupName": "default", "replicas": 1})


def _volcano_job(obj: dict[str, Any]) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, {"maxRetry": 3, "queue": "default"})
    _network_topology(spec)


def _queue(obj: dict[str, Any]) -> None:
    _fill(obj.setdefault("spec", {}), {"dequeueStrategy": "traverse", "weight": 1})


def _pod_group(obj: dict[str, Any]) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, {"queue": "default"})
    _network_topology(spec)


def _network_topology(spec: dict[str, Any]) -> None:
    if isinstance(spec.get("networkTopology"), dict):
        _fill(spec["networkTopology"], {"mode": "hard"})


def _admission_policy(obj: dict[str, Any]) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, {"failurePolicy": "Fail"})
    if isinstance(spec.get("matchConstraints"), dict):
        _match_resources(spec["matchConstraints"])


def _admission_binding(obj: dict[str, Any]) -> None:
    spec = obj.setdefault("spec", {})
    if isinstance(spec.get("matchResources"), dict):
        _match_resources(spec["matchResources"])


def _match_resources(found: dict[str, Any]) -> None:
    _fill(
        found,
        {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}},
    )
    for name in ("resourceRules", "excludeResourceRules"):
        for rule in items(found, name):
            _fill(rule, {"scope": "*"})


DEFAULTS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "Namespace": _namespace,
    "PersistentVolumeClaim": _claim,
    "ResourceQuota": _quota,
    "LimitRange": _limit_range,
    "RoleBinding": _binding,
    "ClusterRoleBinding": _binding,
    "Role": _role,
    "ClusterRole": _role,
    "NetworkPolicy": _network_policy,
    "PriorityClass": _priority_class,
    "Secret": _secret,
    "Service": _service,
    "StorageClass": _storage_class,
    "Pod": default_pod,
    "ClusterQueue": _cluster_queue,
    "LocalQueue": _local_queue,
    "Cohort": _cohort,
    "ResourceFlavor": _resource_flavor,
    "Workload": _workload,
    "JobSet": _jobset,
    "VolcanoJob": _volcano_job,
    "Queue": _queue,
    "PodGroup": _pod_group,
    "ValidatingAdmissionPolicy": _admission_policy,
    "ValidatingAdmissionPolicyBinding": _admission_binding,
}
