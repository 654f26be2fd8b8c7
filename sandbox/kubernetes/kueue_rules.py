"""What is wrong with Kueue objects: the rules of the definitions first, then those of the webhooks."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sandbox.kubernetes import status
from sandbox.kubernetes.causes import (
    Cause,
    duplicate,
    go_literal,
    invalid_value,
    items,
    part,
    required,
    rule_broken,
    unsupported,
)
from sandbox.kubernetes.kinds import KUEUE_GROUP, Kind
from sandbox.kubernetes.quantities import compare, stored

UNCHECKED = rule_broken(
    "<nil>",
    "null: some validation rules were not checked because the object was invalid; correct the existing errors to "
    "complete validation",
)
NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"

_STOP = ("None", "Hold", "HoldAndDrain")
_TRY = ("MayStopSearch", "TryNextFlavor")
ENUMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ClusterQueue": {
        "spec.admissionScope.admissionMode": (
            "UsageBasedAdmissionFairSharing",
            "NoAdmissionFairSharing",
        ),
        "spec.flavorFungibility.preference": (
            "BorrowingOverPreemption",
            "PreemptionOverBorrowing",
        ),
        "spec.flavorFungibility.whenCanBorrow": _TRY,
        "spec.flavorFungibility.whenCanPreempt": _TRY,
        "spec.preemption.borrowWithinCohort.policy": ("Never", "LowerPriority"),
        "spec.preemption.reclaimWithinCohort": ("Never", "LowerPriority", "Any"),
        "spec.preemption.withinClusterQueue": (
            "Never",
            "LowerPriority",
            "LowerOrNewerEqualPriority",
        ),
        "spec.queueingStrategy": ("StrictFIFO", "BestEffortFIFO"),
        "spec.stopPolicy": _STOP,
    },
    "LocalQueue": {"spec.stopPolicy": _STOP},
    "Workload": {
        "spec.priorityClassRef.group": (KUEUE_GROUP, "scheduling.k8s.io"),
        "spec.priorityClassRef.kind": ("WorkloadPriorityClass", "PriorityClass"),
    },
}
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "AdmissionCheck": ("spec.controllerName",),
    "Topology": ("spec.levels",),
    "WorkloadPriorityClass": ("value",),
}
WITH_RULES = frozenset(
    {
        "AdmissionCheck",
        "ClusterQueue",
        "Cohort",
        "LocalQueue",
        "ResourceFlavor",
        "Topology",
    }
)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _at(obj: Any, path: str) -> Any:
    for step in path.split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def schema_causes(kind: Kind, obj: dict[str, Any]) -> list[Cause]:
    """Causes that the definition of a custom kind gives: enums, required fields, and its rules if those hold."""
    found = [
        unsupported(path, value, allowed)
        for path, allowed in ENUMS.get(kind.kind, {}).items()
        if (value := _at(obj, path)) is not None and value not in allowed
    ]
    for path in REQUIRED.get(kind.kind, ()):
        parent = path.rpartition(".")[0]
        if _at(obj, path) is None and (not parent or _at(obj, parent) is not None):
            found.append(required(path))
    found += _group_shape(obj)
    if found:
        return [*found, UNCHECKED] if kind.kind in WITH_RULES else found
    rules = RULES.get(kind.kind)
    return list(rules(obj)) if rules else []


def _group_shape(obj: dict[str, Any]) -> list[Cause]:
    found: list[Cause] = []
    for index, group in enumerate(items(part(obj, "spec"), "resourceGroups")):
        path = f"spec.resourceGroups[{index}]"
        found += [
            required(f"{path}.{name}")
            for name in ("coveredResources", "flavors")
            if name not in group
        ]
        for number, flavor in enumerate(items(group, "flavors")):
            where = f"{path}.flavors[{number}]"
            found += [
                required(f"{where}.{name}")
                for name in ("name", "resources")
                if name not in flavor
            ]
            for place, quota in enumerate(items(flavor, "resources")):
                missing = [
                    name for name in ("name", "nominalQuota") if quota.get(name) is None
                ]
                found += [
                    required(f"{where}.resources[{place}].{name}") for name in missing
                ]
    return found


def _group_rules(obj: dict[str, Any]) -> Iterator[Cause]:
    for index, group in enumerate(items(part(obj, "spec"), "resourceGroups")):
        covered = len(group.get("coveredResources") or [])
        if any(
            len(items(flavor, "resources")) != covered
            for flavor in items(group, "flavors")
        ):
            text = (
                "flavors must have the same number of resources as the coveredResources"
            )
            yield rule_broken(f"spec.resourceGroups[{index}]", text)


def _cluster_queue_rules(obj: dict[str, Any]) -> Iterator[Cause]:
    spec = part(obj, "spec")
    if spec.get("cohortName") is None and any(
        "borrowingLimit" in quota for _, quota in _quotas(obj)
    ):
        yield rule_broken("spec", "borrowingLimit must be nil when cohort is empty")
    fungibility, preemption = part(spec, "flavorFungibility"), part(spec, "preemption")
    both = {fungibility.get("whenCanBorrow"), fungibility.get("whenCanPreempt")}
    if fungibility.get("preference") is not None and both != {"TryNextFlavor"}:
        text = "preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor"
        yield rule_broken("spec.flavorFungibility", text)
    policy = part(preemption, "borrowWithinCohort").get("policy", "Never")
    if preemption.get("reclaimWithinCohort") == "Never" and policy != "Never":
        yield rule_broken(
            "spec.preemption",
            "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never",
        )
    yield from _group_rules(obj)


def _flavor_rules(obj: dict[str, Any]) -> Iterator[Cause]:
    spec = part(obj, "spec")
    if spec.get("topologyName") is not None and not spec.get("nodeLabels"):
        # The server's rule reads the field without asking whether it is there.
        rule = "at least one nodeLabel is required when topology is set"
        absent = f'"object": no such key: nodeLabels evaluating rule: {rule}'
        yield rule_broken("spec", rule if "nodeLabels" in spec else absent)
    if any(taint.get("effect") not in EFFECTS for taint in items(spec, "nodeTaints")):
        yield rule_broken(
            "spec.nodeTaints", f"supported taint effect values: {_quoted(EFFECTS)}"
        )
    yield from _toleration_rules(items(spec, "tolerations"))


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _toleration_rules(tolerations: list[dict[str, Any]]) -> Iterator[Cause]:
    field = "spec.tolerations"
    if any("key" not in one and one.get("operator") != "Exists" for one in tolerations):
        text = "operator must be Exists when 'key' is empty, which means 'match all values and all keys'"
        yield rule_broken(field, text)
    if any(
        "tolerationSeconds" in one and one.get("effect") != "NoExecute"
        for one in tolerations
    ):
        yield rule_broken(
            field, "effect must be 'NoExecute' when 'tolerationSeconds' is set"
        )
    if any(
        one.get("operator", "Equal") not in {"Equal", "Exists"} for one in tolerations
    ):
        yield rule_broken(
            field, "supported toleration values: 'Equal'(default), 'Exists'"
        )
    if any(one.get("operator") == "Exists" and "value" in one for one in tolerations):
        yield rule_broken(field, "a value must be empty when 'operator' is 'Exists'")
    if any(one.get("effect", EFFECTS[0]) not in EFFECTS for one in tolerations):
        yield rule_broken(field, f"supported taint effect values: {_quoted(EFFECTS)}")


def _topology_rules(obj: dict[str, Any]) -> Iterator[Cause]:
    labels = [level.get("nodeLabel") for level in items(part(obj, "spec"), "levels")]
    if len(set(labels)) != len(labels):
        yield rule_broken("spec.levels", "must be unique")
    if "kubernetes.io/hostname" in labels[:-1]:
        text = "the kubernetes.io/hostname label can only be used at the lowest level of topology"
        yield rule_broken("spec.levels", text)


RULES: Mapping[str, Callable[[dict[str, Any]], Iterator[Cause]]] = {
    "ClusterQueue": _cluster_queue_rules,
    "Cohort": _group_rules,
    "ResourceFlavor": _flavor_rules,
    "Topology": _topology_rules,
}
FIXED: Mapping[str, tuple[str, ...]] = {
    "LocalQueue": ("spec.clusterQueue",),
    "AdmissionCheck": ("spec.controllerName",),
    "Topology": ("spec.levels",),
}


def update_causes(kind: Kind, new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """Causes for changing a field that the definition of a custom kind fixes at creation."""
    found: list[Cause] = []
    for path in FIXED.get(kind.kind, ()):
        now, before = _at(new, path), _at(old, path)
        if now is not None and before is not None and now != before:
            # A rule of the definition names no value; the validating webhooks do.
            is_rule = kind.kind == "Topology"
            found.append(
                rule_broken(path, IMMUTABLE)
                if is_rule
                else invalid_value(path, now, IMMUTABLE)
            )
    if kind.kind == "ResourceFlavor" and _at(old, "spec.topologyName") is not None:
        for name, verb in (
            ("nodeLabels", "are"),
            ("tolerations", "are"),
            ("topologyName", "is"),
        ):
            if _at(new, f"spec.{name}") != _at(old, f"spec.{name}"):
                found.append(
                    rule_broken(
                        "spec", f"{name} {verb} immutable when topologyName is set"
                    )
                )
    return found


def _quotas(obj: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for index, group in enumerate(items(part(obj, "spec"), "resourceGroups")):
        for number, flavor in enumerate(items(group, "flavors")):
            for place, quota in enumerate(items(flavor, "resources")):
                yield (
                    f"spec.resourceGroups[{index}].flavors[{number}].resources[{place}]",
                    quota,
                )


def webhook_refusal(kind: Kind, obj: dict[str, Any]) -> status.Refusal | None:
    """The HTTP 403 of Kueue's validating webhook for a ClusterQueue or Cohort, or None."""
    if kind.group != KUEUE_GROUP or kind.kind not in {"ClusterQueue", "Cohort"}:
        return None
    parent = "cohortName" if kind.kind == "ClusterQueue" else "parentName"
    found = _repeated(obj) + _amounts(
        obj, in_cohort=bool(part(obj, "spec").get(parent))
    )
    weight = _at(obj, "spec.fairSharing.weight")
    if weight is not None and compare(weight, 0) < 0:
        found.append(
            invalid_value("spec.fairSharing.weight", stored(weight), NOT_NEGATIVE)
        )
    if not found:
        return None
    said = list(
        dict.fromkeys(f"{cause['field']}: {cause['message']}" for cause in found)
    )
    text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    return denied(f"v{kind.kind.lower()}.kb.io", text)


def _repeated(obj: dict[str, Any]) -> list[Cause]:
    found: list[Cause] = []
    resources: set[str] = set()
    flavors: set[str] = set()
    for index, group in enumerate(items(part(obj, "spec"), "resourceGroups")):
        path, covered = (
            f"spec.resourceGroups[{index}]",
            group.get("coveredResources") or [],
        )
        for number, resource in enumerate(covered):
            if resource in resources:
                found.append(duplicate(f"{path}.coveredResources[{number}]", resource))
            resources.add(resource)
        for number, flavor in enumerate(items(group, "flavors")):
            where, name = f"{path}.flavors[{number}]", str(flavor.get("name"))
            if name in flavors:
                found.append(duplicate(f"{where}.name", name))
            flavors.add(name)
            for place, quota in enumerate(items(flavor, "resources")):
                if quota.get("name") != covered[place]:
                    text = "must match the name in coveredResources"
                    found.append(
                        invalid_value(
                            f"{where}.resources[{place}].name", quota.get("name"), text
                        )
                    )
    return found


def _amounts(obj: dict[str, Any], *, in_cohort: bool) -> list[Cause]:
    found: list[Cause] = []
    for path, quota in _quotas(obj):
        for name in ("nominalQuota", "borrowingLimit", "lendingLimit"):
            amount = quota.get(name)
            if amount is not None and compare(amount, 0) < 0:
                found.append(
                    invalid_value(f"{path}.{name}", stored(amount), NOT_NEGATIVE)
                )
        lent = quota.get("lendingLimit")
        if lent is not None and not in_cohort:
            found.append(
                invalid_value(
                    f"{path}.lendingLimit",
                    stored(lent),
                    "must be nil when cohort is empty",
                )
            )
        if lent is not None and compare(lent, quota.get("nominalQuota")) > 0:
            text = "must be less than or equal to the nominalQuota"
            found.append(invalid_value(f"{path}.lendingLimit", stored(lent), text))
    return found


def denied(webhook: str, text: str, code: int = 403) -> status.Refusal:
    """The answer when a webhook refuses; such a Status carries no details."""
    message = f'admission webhook "{webhook}" denied the request: {text}'
    return status.Refusal(code, message, "Forbidden" if code == 403 else "")


def bad_quantity(kind: Kind, text: str) -> status.Refusal:
    """The HTTP 400 of a webhook that cannot read a quantity; it has no reason."""
    first = "m" if kind.kind in {"ClusterQueue", "JobSet"} else "v"
    return denied(f"{first}{kind.kind.lower()}.kb.io", text, 400)


def queue_change_refusal(kind: str, queue: str) -> status.Refusal:
    """The refusal of a job of a kind whose queue label is changed while the job is not suspended."""
    field = "metadata.labels[kueue.x-k8s.io/queue-name]"
    return denied(
        f"v{kind.lower()}.kb.io",
        f"{field}: Invalid value: {go_literal(queue)}: {IMMUTABLE}",
    )
