"""What is wrong with roles and bindings."""

from typing import Any

from sandbox.kubernetes.causes import (
    Cause,
    invalid_value,
    items,
    part,
    required,
    unsupported,
)
from sandbox.kubernetes.kinds import RBAC_GROUP
from sandbox.kubernetes.names import dns_subdomain, path_segment

SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


def validate_role(obj: dict[str, Any], *, namespaced: bool) -> list[Cause]:
    """Causes for the rules of a Role or ClusterRole."""
    found: list[Cause] = []
    for index, rule in enumerate(items(obj, "rules")):
        found += _rule(rule, f"rules[{index}]", namespaced=namespaced)
    return found


def _rule(rule: dict[str, Any], path: str, *, namespaced: bool) -> list[Cause]:
    found: list[Cause] = []
    if not rule.get("verbs"):
        found.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        field = f"{path}.nonResourceURLs"
        if namespaced:
            found.append(
                invalid_value(
                    field, urls, "namespaced rules cannot apply to non-resource URLs"
                )
            )
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            found.append(invalid_value(field, urls, text))
        return found
    if not rule.get("apiGroups"):
        found.append(
            required(
                f"{path}.apiGroups", "resource rules must supply at least one api group"
            )
        )
    if not rule.get("resources"):
        found.append(
            required(
                f"{path}.resources", "resource rules must supply at least one resource"
            )
        )
    return found


def validate_binding(obj: dict[str, Any], *, namespaced: bool) -> list[Cause]:
    """Causes for the roleRef and the subjects of a binding, after defaulting."""
    ref = part(obj, "roleRef")
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    found: list[Cause] = []
    if ref.get("apiGroup") != RBAC_GROUP:
        found.append(
            unsupported("roleRef.apiGroup", ref.get("apiGroup") or "", [RBAC_GROUP])
        )
    if ref.get("kind") not in kinds:
        found.append(unsupported("roleRef.kind", ref.get("kind") or "", kinds))
    if not ref.get("name"):
        found.append(required("roleRef.name"))
    else:
        found += [
            invalid_value("roleRef.name", ref["name"], text)
            for text in path_segment(str(ref["name"]))
        ]
    for index, subject in enumerate(items(obj, "subjects")):
        found += _subject(subject, f"subjects[{index}]")
    return found


def _subject(subject: dict[str, Any], path: str) -> list[Cause]:
    name, kind, group = (
        subject.get("name") or "",
        subject.get("kind") or "",
        subject.get("apiGroup") or "",
    )
    found = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            found += [
                invalid_value(f"{path}.name", name, text)
                for text in dns_subdomain(name)
            ]
        if group:
            found.append(unsupported(f"{path}.apiGroup", group, [""]))
        if not subject.get("namespace"):
            found.append(required(f"{path}.namespace"))
    elif kind in SUBJECT_KINDS:
        if group != RBAC_GROUP:
            found.append(unsupported(f"{path}.apiGroup", group, [RBAC_GROUP]))
    else:
        found.append(unsupported(f"{path}.kind", kind, SUBJECT_KINDS))
    return found


def validate_binding_update(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """Causes for changing the roleRef of a binding, which cannot be changed."""
    ref = part(new, "roleRef")
    if ref == part(old, "roleRef"):
        return []
    shown = {
        "APIGroup": ref.get("apiGroup", ""),
        "Kind": ref.get("kind", ""),
        "Name": ref.get("name", ""),
    }
    return [invalid_value("roleRef", shown, "cannot change roleRef")]
