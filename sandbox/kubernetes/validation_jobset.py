"""What is wrong with a JobSet by its definition."""

from collections.abc import Iterator
from typing import Any

from sandbox.kubernetes.causes import (
    Cause,
    invalid_value,
    items,
    part,
    required,
    rule_broken,
    unsupported,
)

FIXED = ("failurePolicy", "network", "startupPolicy", "successPolicy")
ORDERS, OPERATORS, STATES = (
    ("AnyOrder", "InOrder"),
    ("All", "Any"),
    ("Ready", "Complete"),
)
STRATEGIES = ("Recreate", "BlockingRecreate", "InPlaceRestart")
ACTIONS = (
    *("FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"),
    *("RestartJob", "RestartJobAndIgnoreMaxRestarts"),
)
Object = dict[str, Any]


def validate(obj: Object) -> list[Cause]:
    """Causes for the spec of a JobSet."""
    spec = part(obj, "spec")
    return [*_policies(spec), *_replicated(spec), *_rules(spec)]


def validate_update(new: Object, old: Object) -> list[Cause]:
    """Causes for changing what a JobSet fixes at its creation."""
    now, before = part(new, "spec"), part(old, "spec")
    return [
        rule_broken(f"spec.{name}", "Value is immutable")
        for name in FIXED
        if name in now and name in before and now[name] != before[name]
    ]


def _enum(
    owner: Object, name: str, path: str, allowed: tuple[str, ...]
) -> Iterator[Cause]:
    if name in owner and owner[name] not in allowed:
        yield unsupported(f"{path}.{name}", owner[name], allowed)


def _lacking(owner: Object, path: str, *names: str) -> Iterator[Cause]:
    yield from (required(f"{path}.{name}") for name in names if name not in owner)


def _policies(spec: Object) -> Iterator[Cause]:
    for name, field, allowed in (
        ("startupPolicy", "startupPolicyOrder", ORDERS),
        ("successPolicy", "operator", OPERATORS),
    ):
        if name in spec:
            yield from _lacking(part(spec, name), f"spec.{name}", field)
            yield from _enum(part(spec, name), field, f"spec.{name}", allowed)
    policy = part(spec, "failurePolicy")
    yield from _enum(policy, "restartStrategy", "spec.failurePolicy", STRATEGIES)
    for index, rule in enumerate(items(policy, "rules")):
        path = f"spec.failurePolicy.rules[{index}]"
        yield from _lacking(rule, path, "action", "name")
        yield from _enum(rule, "action", path, ACTIONS)
    if "coordinator" in spec:
        yield from _lacking(
            part(spec, "coordinator"), "spec.coordinator", "replicatedJob"
        )
    seconds = spec.get("ttlSecondsAfterFinished")
    if isinstance(seconds, int) and seconds < 0:
        path = "spec.ttlSecondsAfterFinished"
        yield invalid_value(
            path, seconds, f"{path} in body should be greater than or equal to 0"
        )


def _replicated(spec: Object) -> Iterator[Cause]:
    seen: set[Any] = set()
    for index, one in enumerate(items(spec, "replicatedJobs")):
        path = f"spec.replicatedJobs[{index}]"
        yield from _lacking(one, path, "name", "template")
        name = one.get("name")
        if name in seen:
            message = f'Duplicate value: {{"name":"{name}"}}'
            yield {"reason": "FieldValueDuplicate", "message": message, "field": path}
        seen.add(name)
        job = part(part(one, "template"), "spec")
        if job:
            yield from _lacking(job, f"{path}.template.spec", "template")
        pod = part(part(job, "template"), "spec")
        if pod:
            yield from _lacking(
                pod, f"{path}.template.spec.template.spec", "containers"
            )
        for place, dependency in enumerate(items(one, "dependsOn")):
            where = f"{path}.dependsOn[{place}]"
            yield from _lacking(dependency, where, "name", "status")
            yield from _enum(dependency, "status", where, STATES)


def _rules(spec: Object) -> Iterator[Cause]:
    in_order = part(spec, "startupPolicy").get("startupPolicyOrder") == "InOrder"
    if in_order and any("dependsOn" in one for one in items(spec, "replicatedJobs")):
        yield rule_broken(
            "spec", "StartupPolicy and DependsOn APIs are mutually exclusive"
        )
