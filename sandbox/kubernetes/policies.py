"""ValidatingAdmissionPolicies: their CEL, evaluated on what is written, as the API server does after its own checks."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cel

from sandbox.kubernetes.causes import Cause, invalid_value, items, part, required
from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.kinds import Kind, builtin
from sandbox.kubernetes.selectors import matches_selector
from sandbox.kubernetes.status import Refusal, details_of
from sandbox.kubernetes.store import Obj, Store

GROUP = "admissionregistration.k8s.io"
POLICY = builtin(f"{GROUP}/v1", "ValidatingAdmissionPolicy")
BINDING = builtin(f"{GROUP}/v1", "ValidatingAdmissionPolicyBinding")
NAMESPACES = builtin("v1", "Namespace")
# What a policy may give as its reason, and the code that goes with it.
CODES = {
    "Invalid": 422,
    "Forbidden": 403,
    "Unauthorized": 401,
    "RequestEntityTooLarge": 413,
}


@dataclass(frozen=True)
class Attempt:
    """One write that is to be judged; `new` is None for a deletion, `old` for a creation."""

    kind: Kind
    operation: str
    who: Identity
    new: Obj | None
    old: Obj | None
    subresource: str = ""
    dry_run: bool = False

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Name, namespace and labels of what is written."""
        found: Mapping[str, Any] = (
            self.new if self.new is not None else self.old or {}
        )["metadata"]
        return found


class Policies:
    """The policies of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self, attempt: Attempt) -> None:
        """Refuse what a bound policy denies."""
        known: cel.Context | None = None
        for binding in self._store.objects(BINDING):
            spec = part(dict(binding), "spec")
            policy = self._store.get(POLICY, "", str(spec.get("policyName")))
            if policy is None or "Deny" not in (spec.get("validationActions") or ()):
                continue
            constraints = part(part(dict(policy), "spec"), "matchConstraints")
            rest = part(spec, "matchResources")
            if self._is_matched(constraints, attempt) and (
                not rest or self._is_matched(rest, attempt)
            ):
                known = known or _context(attempt, self._namespace(attempt))
                name = str(binding["metadata"]["name"])
                self._judge(dict(policy), name, attempt, known)

    def _is_matched(self, constraints: Mapping[str, Any], attempt: Attempt) -> bool:
        rules = items(dict(constraints), "resourceRules")
        if rules and not any(_rule_matches(rule, attempt) for rule in rules):
            return False
        if any(
            _rule_matches(rule, attempt)
            for rule in items(dict(constraints), "excludeResourceRules")
        ):
            return False
        place = self._place(attempt)
        if place is not None and not matches_selector(
            constraints.get("namespaceSelector"), _labels(place)
        ):
            return False
        selector = constraints.get("objectSelector")
        return any(
            matches_selector(selector, _labels(one))
            for one in (attempt.new, attempt.old)
            if one is not None
        )

    def _place(self, attempt: Attempt) -> Obj | None:
        """The namespace by whose labels a write is chosen: its own for a Namespace, none at cluster scope."""
        if attempt.kind.kind == "Namespace":
            return attempt.new if attempt.new is not None else attempt.old
        return self._namespace(attempt)

    def _namespace(self, attempt: Attempt) -> Obj | None:
        if not attempt.kind.namespaced:
            return None
        return self._store.get(NAMESPACES, "", str(attempt.metadata.get("namespace")))

    def _judge(
        self,
        policy: dict[str, Any],
        binding: str,
        attempt: Attempt,
        known: cel.Context,
    ) -> None:
        spec, name = part(policy, "spec"), str(policy["metadata"]["name"])
        known.add_variable("variables", {})
        try:
            if not all(
                _evaluated(one["expression"], known) is True
                for one in items(spec, "matchConditions")
            ):
                return
        except _Broken as broken:
            if spec.get("failurePolicy") == "Ignore":
                return
            raise _denied(attempt, name, binding, str(broken), "Invalid") from broken
        _compose(items(spec, "variables"), known)
        for validation in items(spec, "validations"):
            self._validate(
                validation,
                known,
                attempt,
                (name, binding, str(spec.get("failurePolicy"))),
            )

    def _validate(
        self,
        validation: Mapping[str, Any],
        known: cel.Context,
        attempt: Attempt,
        policy: tuple[str, str, str],
    ) -> None:
        name, binding, on_failure = policy
        try:
            if _evaluated(validation["expression"], known) is True:
                return
            said = _message(validation, known)
        except _Broken as broken:
            if on_failure == "Ignore":
                return
            raise _denied(attempt, name, binding, str(broken), "Invalid") from broken
        raise _denied(
            attempt, name, binding, said, str(validation.get("reason") or "Invalid")
        )


class _Broken(Exception):
    """An expression that has no value, in the API server's words."""


def _labels(obj: Obj) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def _rule_matches(rule: Mapping[str, Any], attempt: Attempt) -> bool:
    kind = attempt.kind
    resource = (
        f"{kind.plural}/{attempt.subresource}" if attempt.subresource else kind.plural
    )
    names = rule.get("resourceNames")
    return (
        _named(rule.get("apiGroups"), kind.group)
        and _named(rule.get("apiVersions"), kind.version)
        and _named(rule.get("operations"), attempt.operation)
        and (
            _named(rule.get("resources"), resource)
            or "*/*" in (rule.get("resources") or ())
        )
        and (not names or attempt.metadata.get("name") in names)
        and rule.get("scope", "*")
        in ("*", "Namespaced" if kind.namespaced else "Cluster")
    )


def _named(words: Sequence[str] | None, word: str) -> bool:
    # `*` in resources is every resource and no subresource.
    return word in (words or ()) or ("*" in (words or ()) and "/" not in word)


def _context(attempt: Attempt, namespace: Obj | None) -> cel.Context:
    """What expressions can name. To hand objects to CEL takes a hundred times as long as to evaluate: once for all."""
    kind = attempt.kind
    of = {"group": kind.group, "version": kind.version}
    who = {
        "username": attempt.who.user,
        "groups": list(attempt.who.all_groups),
        "uid": attempt.who.uid,
    }
    request = {
        "kind": {**of, "kind": kind.kind},
        "resource": {**of, "resource": kind.plural},
        "subResource": attempt.subresource,
        "name": attempt.metadata.get("name", ""),
        "namespace": attempt.metadata.get("namespace", ""),
        "operation": attempt.operation,
        "userInfo": {**who, "extra": {}},
        "dryRun": attempt.dry_run,
    }
    return cel.Context(
        variables={
            "object": _plain(attempt.new),
            "oldObject": _plain(attempt.old),
            "namespaceObject": _plain(namespace),
            "request": request,
        }
    )


def _plain(obj: Obj | None) -> dict[str, Any] | None:
    return None if obj is None else dict(obj)


def _compose(wanted: Sequence[Mapping[str, Any]], known: cel.Context) -> None:
    """Make each variable known with its value; one that has none is missing, and breaks whatever asks for it."""
    found: dict[str, Any] = {}
    for one in wanted:
        with contextlib.suppress(_Broken):
            found[one["name"]] = _evaluated(one["expression"], known)
            known.add_variable("variables", found)


@lru_cache(maxsize=512)
def _compiled(expression: str) -> cel.Program:
    return cel.compile(expression)


def _evaluated(expression: str, known: cel.Context) -> Any:
    try:
        return _compiled(expression).execute(known)
    except (ArithmeticError, KeyError, RuntimeError, TypeError, ValueError) as error:
        said = (
            f"no such key: {error.args[0]}"
            if isinstance(error, KeyError)
            else str(error).partition(".")[0]
        )
        raise _Broken(f"expression '{expression}' resulted in error: {said}") from error


def _message(validation: Mapping[str, Any], known: cel.Context) -> str:
    if validation.get("messageExpression"):
        with contextlib.suppress(_Broken):
            return str(_evaluated(validation["messageExpression"], known))
    return str(
        validation.get("message")
        or f"failed expression: {validation['expression'].strip()}"
    )


def _denied(
    attempt: Attempt, policy: str, binding: str, said: str, reason: str
) -> Refusal:
    text = f"ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {said}"
    name = str(attempt.metadata.get("name", ""))
    details = {**details_of(attempt.kind, name), "causes": [{"message": text}]}
    message = f'{attempt.kind.qualified_plural} "{name}" is forbidden: {text}'
    return Refusal(CODES.get(reason, 422), message, reason, details)


def validate_policy(obj: dict[str, Any]) -> list[Cause]:
    """Causes for the spec of a ValidatingAdmissionPolicy: what is missing, and CEL that does not compile."""
    spec = part(obj, "spec")
    found = (
        []
        if items(part(spec, "matchConstraints"), "resourceRules")
        else [required("spec.matchConstraints.resourceRules")]
    )
    if not items(spec, "validations") and not items(spec, "auditAnnotations"):
        found.append(
            required(
                "spec.validations", "validations or auditAnnotations must be specified"
            )
        )
    for group in ("matchConditions", "variables", "validations"):
        for index, one in enumerate(items(spec, group)):
            found += _expression(one, f"spec.{group}[{index}]")
    return found


def _expression(one: Mapping[str, Any], path: str) -> list[Cause]:
    expression = one.get("expression") or ""
    if not expression.strip():
        return [required(f"{path}.expression", "expression is not specified")]
    try:
        _compiled(expression)
    except (TypeError, ValueError) as error:
        return [
            invalid_value(
                f"{path}.expression", expression, f"compilation failed: {error}"
            )
        ]
    return []


def validate_binding(obj: dict[str, Any]) -> list[Cause]:
    """Causes for the spec of a ValidatingAdmissionPolicyBinding."""
    spec = part(obj, "spec")
    found = [] if spec.get("policyName") else [required("spec.policyName")]
    return (
        found
        if spec.get("validationActions")
        else [*found, required("spec.validationActions")]
    )
