"""Whether an object may be stored: the checks of the API server after defaulting, in its words."""

from collections.abc import Callable, Mapping
from typing import Any

from sandbox.kubernetes import (
    kueue_rules,
    policies,
    status,
    validation_cilium,
    validation_jobset,
    validation_objects,
    validation_pods,
    validation_rbac,
    validation_volcano,
)
from sandbox.kubernetes.causes import (
    Cause,
    forbidden_field,
    invalid_value,
    part,
    required,
    too_long,
)
from sandbox.kubernetes.kinds import KUEUE_GROUP, RBAC_GROUP, VOLCANO_GROUPS, Kind
from sandbox.kubernetes.names import (
    dns_label,
    dns_subdomain,
    label_key,
    label_value,
    path_segment,
    service_name,
)
from sandbox.kubernetes.quantities import QuantityError, parse
from sandbox.kubernetes.schema import schema_for
from sandbox.kubernetes.schema_language import Schema
from sandbox.kubernetes.validation_network import validate_network_policy

ANNOTATIONS_MAX = 256 * 1024
IMMUTABLE = "field is immutable"

Check = Callable[[dict[str, Any]], list[Cause]]
UpdateCheck = Callable[[dict[str, Any], dict[str, Any]], list[Cause]]

CHECKS: Mapping[str, Check] = {
    "ResourceQuota": validation_objects.validate_quota,
    "LimitRange": validation_objects.validate_limit_range,
    "PersistentVolumeClaim": validation_objects.validate_claim,
    "ConfigMap": validation_objects.validate_config_map,
    "Secret": validation_objects.validate_config_map,
    "PriorityClass": validation_objects.validate_priority_class,
    "ValidatingAdmissionPolicy": policies.validate_policy,
    "ValidatingAdmissionPolicyBinding": policies.validate_binding,
    "NetworkPolicy": validate_network_policy,
    "CiliumNetworkPolicy": validation_cilium.validate_policy,
    "Role": lambda obj: validation_rbac.validate_role(obj, namespaced=True),
    "ClusterRole": lambda obj: validation_rbac.validate_role(obj, namespaced=False),
    "RoleBinding": lambda obj: validation_rbac.validate_binding(obj, namespaced=True),
    "ClusterRoleBinding": lambda obj: validation_rbac.validate_binding(
        obj, namespaced=False
    ),
    "Pod": validation_pods.validate_pod,
    "Job": validation_pods.validate_job,
    "JobSet": validation_jobset.validate,
    "VolcanoJob": validation_volcano.validate_job,
    "Queue": validation_volcano.validate_queue,
    "PodGroup": validation_volcano.validate_group,
}
UPDATE_CHECKS: Mapping[str, UpdateCheck] = {
    "PersistentVolumeClaim": validation_objects.validate_claim_update,
    "ConfigMap": validation_objects.validate_config_map_update,
    "Secret": validation_objects.validate_config_map_update,
    "PriorityClass": validation_objects.validate_priority_class_update,
    "RoleBinding": validation_rbac.validate_binding_update,
    "ClusterRoleBinding": validation_rbac.validate_binding_update,
    "Pod": validation_pods.validate_pod_update,
    "Job": validation_pods.validate_job_update,
    "JobSet": validation_jobset.validate_update,
}
NAME_RULES: Mapping[str, Callable[[str], list[str]]] = {
    "Namespace": dns_label,
    "Service": service_name,
}


def check_quantities(kind: Kind, obj: dict[str, Any]) -> status.Refusal | None:
    """The HTTP 500 (400 for custom kinds) for a quantity that cannot be read; call it before defaulting."""
    try:
        _read_quantities(schema_for(kind), obj)
    except QuantityError as error:
        if kind.group in VOLCANO_GROUPS:
            return kueue_rules.denied(
                f"mutate{kind.singular}.volcano.sh", str(error), 400
            )
        if not kind.builtin:
            return kueue_rules.bad_quantity(kind, str(error))
        meta = part(obj, "metadata")
        where = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {kind.gvk}"
        reason = f"unable to convert unstructured object to {kind.gvk}: {error}"
        return status.Refusal(
            500, f"failed to convert new object ({where}) to proper version: {reason}"
        )
    return None


def _read_quantities(schema: Schema, value: Any) -> None:
    if schema.type == "quantity":
        parse(value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            below = schema.fields.get(name) if schema.type == "object" else schema.items
            if below is not None:
                _read_quantities(below, inner)
    elif isinstance(value, list) and schema.items is not None:
        for inner in value:
            _read_quantities(schema.items, inner)


def create_causes(kind: Kind, obj: dict[str, Any]) -> list[Cause]:
    """Everything wrong with a new object, after defaulting."""
    if kind.kind == "SelfSubjectAccessReview":
        # A question, not an object: it has no name and is never stored.
        return []
    found = metadata_causes(kind, part(obj, "metadata"))
    if kind.group == KUEUE_GROUP:
        return found + kueue_rules.schema_causes(kind, obj)
    check = CHECKS.get(kind.own_name)
    return found + (check(obj) if check else [])


def update_causes(kind: Kind, new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """Everything wrong with storing the new object in place of the old, after defaulting."""
    found = metadata_update_causes(part(new, "metadata"), part(old, "metadata"))
    check = UPDATE_CHECKS.get(kind.own_name)
    if kind.group == KUEUE_GROUP:
        return [
            *found,
            *create_causes(kind, new),
            *kueue_rules.update_causes(kind, new, old),
        ]
    fixed = check(new, old) if check else []
    return [*found, *(create_causes(kind, new) if kind.kind != "Pod" else []), *fixed]


def check_create(kind: Kind, obj: dict[str, Any]) -> status.Refusal | None:
    """The refusal of a new object that is invalid, or None; webhooks of Kueue speak last."""
    causes = create_causes(kind, obj)
    if causes:
        return status.invalid(
            kind, str(part(obj, "metadata").get("name") or ""), causes
        )
    return kueue_rules.webhook_refusal(kind, obj)


def check_update(
    kind: Kind, new: dict[str, Any], old: dict[str, Any]
) -> status.Refusal | None:
    """The refusal of a changed object that is invalid, or None; webhooks of Kueue speak last."""
    causes = update_causes(kind, new, old)
    if causes:
        return status.invalid(
            kind, str(part(new, "metadata").get("name") or ""), causes
        )
    return kueue_rules.webhook_refusal(kind, new)


def metadata_causes(kind: Kind, meta: dict[str, Any]) -> list[Cause]:
    """What is wrong with the name, the labels, the annotations and the finalizers of an object."""
    name = meta.get("name") or ""
    found: list[Cause] = []
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    else:
        rule = (
            path_segment
            if kind.group == RBAC_GROUP
            else NAME_RULES.get(kind.own_name, dns_subdomain)
        )
        found += [invalid_value("metadata.name", name, text) for text in rule(name)]
    for key, value in part(meta, "labels").items():
        found += [
            invalid_value("metadata.labels", key, text) for text in label_key(key)
        ]
        found += [
            invalid_value("metadata.labels", value, text) for text in label_value(value)
        ]
    annotations = part(meta, "annotations")
    for key in annotations:
        found += [
            invalid_value("metadata.annotations", key, text)
            for text in label_key(key.lower())
        ]
    if (
        sum(
            len(key.encode()) + len(str(value).encode())
            for key, value in annotations.items()
        )
        > ANNOTATIONS_MAX
    ):
        found.append(too_long("metadata.annotations", ANNOTATIONS_MAX))
    for finalizer in meta.get("finalizers") or []:
        found += [
            invalid_value("metadata.finalizers", finalizer, text)
            for text in label_key(finalizer)
        ]
    return found


def metadata_update_causes(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """What may not change in the metadata, and finalizers added while an object is being deleted."""
    found = [
        invalid_value(f"metadata.{field}", new[field], IMMUTABLE)
        for field in ("name", "namespace", "uid", "creationTimestamp")
        if field in new and field in old and new[field] != old[field]
    ]
    if old.get("deletionTimestamp"):
        before = set(old.get("finalizers") or [])
        added = [
            finalizer
            for finalizer in new.get("finalizers") or []
            if finalizer not in before
        ]
        if added:
            shown = (
                "[]string{" + ", ".join(f'"{finalizer}"' for finalizer in added) + "}"
            )
            text = "no new finalizers can be added if the object is being deleted, found new finalizers "
            found.append(forbidden_field("metadata.finalizers", text + shown))
    return found
