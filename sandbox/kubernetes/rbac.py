"""Role-based access control: who may do what, and what nobody may hand out."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.kinds import RBAC_GROUP, by_resource
from sandbox.kubernetes.store import Change, Obj, Store

Rule = Mapping[str, Any]
MASTERS = "system:masters"


@dataclass(frozen=True)
class Attributes:
    """What a request wants to do; a non-resource request has a path and no resource."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def qualified(self) -> str:
        """The resource as rules name it: ``pods`` or ``pods/log``."""
        return (
            f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        )


@dataclass(frozen=True)
class Grant:
    """One rule that a subject holds, with the sentence that says why."""

    rule: Rule
    reason: str


class Authorizer:
    """Answers from the RBAC objects of a store; rules of a caller are kept until RBAC changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kinds = {
            name: kind
            for name in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
            if (kind := by_resource(RBAC_GROUP, "v1", name))
        }
        self._held: dict[tuple[Identity, str], list[Grant]] = {}
        store.listen(self._forget)

    def _forget(self, change: Change) -> None:
        if change.resource[0] == RBAC_GROUP:
            self.reset()

    def reset(self) -> None:
        """Forget the rules worked out so far; needed after the store is replaced."""
        self._held.clear()

    def allowed(self, who: Identity, what: Attributes) -> tuple[bool, str]:
        """Whether the caller may, and the reason as an access review states it."""
        if MASTERS in who.groups:
            return True, ""
        for grant in self.grants(who, what.namespace):
            if rule_allows(grant.rule, what):
                return True, grant.reason
        return False, ""

    def grants(self, who: Identity, namespace: str) -> list[Grant]:
        """Every rule the caller holds in a namespace (empty: at cluster scope)."""
        found = self._held.get((who, namespace))
        if found is None:
            found = self._held[(who, namespace)] = list(self._collect(who, namespace))
        return found

    def _collect(self, who: Identity, namespace: str) -> Iterator[Grant]:
        yield from self._from_bindings(who, "clusterrolebindings", "")
        if namespace:
            yield from self._from_bindings(who, "rolebindings", namespace)

    def _from_bindings(
        self, who: Identity, plural: str, namespace: str
    ) -> Iterator[Grant]:
        kind = self._kinds[plural]
        for (place, name), entry in self._store.table(kind).entries.items():
            if place != namespace:
                continue
            subject = _matching_subject(entry.obj.get("subjects") or [], who, namespace)
            if not subject:
                continue
            ref = entry.obj["roleRef"]
            where = f"{name}/{namespace}" if namespace else name
            reason = f'RBAC: allowed by {kind.kind} "{where}" of {ref["kind"]} "{ref["name"]}" to {subject}'
            for rule in self.rules_of(ref, namespace) or ():
                yield Grant(rule, reason)

    def rules_of(self, ref: Mapping[str, str], namespace: str) -> Sequence[Rule] | None:
        """The rules of the role a binding refers to, or None when there is no such role."""
        plural, place = (
            ("clusterroles", "")
            if ref["kind"] == "ClusterRole"
            else ("roles", namespace)
        )
        role = self._store.get(self._kinds[plural], place, ref["name"])
        return None if role is None else role.get("rules") or ()

    def missing_rights(
        self, who: Identity, rules: Iterable[Rule], namespace: str
    ) -> str:
        """What the caller would hand out without holding it, as the refusal lists it; empty if nothing."""
        held = [grant.rule for grant in self.grants(who, namespace)]
        missing = [
            part
            for rule in rules
            for part in _parts(rule)
            if not any(_covers(mine, part) for mine in held)
        ]
        return "\n".join(sorted(_compact(missing)))


def _matching_subject(subjects: Sequence[Obj], who: Identity, namespace: str) -> str:
    for subject in subjects:
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "User" and name == who.user:
            return f'User "{name}"'
        if kind == "Group" and name in who.all_groups:
            return f'Group "{name}"'
        if kind == "ServiceAccount":
            place = subject.get("namespace") or namespace
            if who.user == f"system:serviceaccount:{place}:{name}":
                return f'ServiceAccount "{name}/{place}"'
    return ""


def rule_allows(rule: Rule, what: Attributes) -> bool:
    """Whether one rule covers a request."""
    verbs = rule.get("verbs") or ()
    if what.verb not in verbs and "*" not in verbs:
        return False
    if what.path:
        return any(
            _path_matches(pattern, what.path)
            for pattern in rule.get("nonResourceURLs") or ()
        )
    groups = rule.get("apiGroups") or ()
    if what.group not in groups and "*" not in groups:
        return False
    names = rule.get("resourceNames")
    return _resource_matches(rule.get("resources") or (), what) and (
        not names or what.name in names
    )


def _resource_matches(resources: Sequence[str], what: Attributes) -> bool:
    if "*" in resources or what.qualified in resources:
        return True
    return bool(what.subresource) and f"*/{what.subresource}" in resources


def _path_matches(pattern: str, path: str) -> bool:
    return pattern in {"*", path} or (
        pattern.endswith("*") and path.startswith(pattern[:-1])
    )


@dataclass(frozen=True)
class _Part:
    verb: str
    group: str = ""
    resource: str = ""
    name: str = ""
    url: str = ""


def _parts(rule: Rule) -> Iterator[_Part]:
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for name in rule.get("resourceNames") or ("",):
                yield from (
                    _Part(verb, group, resource, name) for verb in rule["verbs"]
                )
    for url in rule.get("nonResourceURLs") or ():
        yield from (_Part(verb, url=url) for verb in rule["verbs"])


def _covers(rule: Rule, part: _Part) -> bool:
    resource, _, subresource = part.resource.partition("/")
    what = Attributes(
        part.verb, part.group, resource, subresource, name=part.name, path=part.url
    )
    if part.resource == "*" and "*" not in (rule.get("resources") or ()):
        return False
    if rule.get("resourceNames") and not part.name:
        return False
    return rule_allows(rule, what)


def _compact(parts: Iterable[_Part]) -> list[str]:
    verbs: dict[_Part, list[str]] = {}
    for part in parts:
        where = _Part("", part.group, part.resource, part.name, part.url)
        verbs.setdefault(where, []).append(part.verb)
    return [_rule_text(where, said) for where, said in verbs.items()]


def _rule_text(where: _Part, verbs: Sequence[str]) -> str:
    fields = []
    if where.url:
        fields.append(f"NonResourceURLs:[{json.dumps(where.url)}]")
    else:
        fields.append(
            f"APIGroups:[{json.dumps(where.group)}], Resources:[{json.dumps(where.resource)}]"
        )
    if where.name:
        fields.append(f"ResourceNames:[{json.dumps(where.name)}]")
    fields.append(f"Verbs:[{' '.join(json.dumps(verb) for verb in verbs)}]")
    return "{" + ", ".join(fields) + "}"
