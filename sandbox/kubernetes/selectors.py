"""Label and field selectors: parsed once per request, matched per object."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from sandbox.kubernetes.status import Refusal, bad_request

Labels = Mapping[str, str]
Matcher = Callable[[Labels], bool]
_TOKEN = re.compile(r"\s*(==|!=|=|\(|\)|,|!|[^\s=!(),]+)")


def everything(_labels: Labels) -> bool:
    """Match every object."""
    return True


def parse_labels(text: str) -> Matcher:
    """Read a label selector; raises 400 with the API server's words when it cannot."""
    tokens = _TOKEN.findall(text)
    if not tokens:
        return everything
    matchers: list[Matcher] = []
    while tokens:
        matchers.append(_requirement(tokens))
        if tokens and tokens[0] != ",":
            raise bad_request(f"found '{tokens[0]}', expected: ',' or 'end of string'")
        tokens = tokens[1:]
    return lambda labels: all(matcher(labels) for matcher in matchers)


def _requirement(tokens: list[str]) -> Matcher:
    token = tokens.pop(0)
    if token == "!":
        absent = tokens.pop(0) if tokens else ""
        return lambda labels: absent not in labels
    operator = tokens[0] if tokens else ","
    if operator == ",":
        return lambda labels: token in labels
    if operator in {"=", "==", "!="}:
        tokens.pop(0)
        value = tokens.pop(0) if tokens and tokens[0] != "," else ""
        if operator == "!=":
            return lambda labels: labels.get(token) != value
        return lambda labels: labels.get(token) == value
    if operator in {"in", "notin"}:
        tokens.pop(0)
        values = _values(tokens)
        if operator == "in":
            return lambda labels: labels.get(token) in values
        return lambda labels: labels.get(token) not in values
    raise bad_request(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")


def _values(tokens: list[str]) -> set[str]:
    if not tokens or tokens.pop(0) != "(":
        raise bad_request("found '', expected: '('")
    values: set[str] = set()
    while tokens and (token := tokens.pop(0)) != ")":
        if token != ",":
            values.add(token)
    return values


def matches_selector(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Whether a LabelSelector object selects these labels; None selects nothing, an empty one everything."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(
        _expression(item, labels) for item in selector.get("matchExpressions") or []
    )


def _expression(item: Mapping[str, Any], labels: Labels) -> bool:
    value = labels.get(item["key"])
    held: dict[str, bool] = {
        "In": value in (item.get("values") or []),
        "NotIn": value not in (item.get("values") or []),
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    return held.get(item["operator"], False)


_EXTRA_FIELDS = {
    "pods": (
        "spec.nodeName",
        "status.phase",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.podIP",
    ),
    "events": (
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "involvedObject.uid",
        "reason",
        "type",
        "source",
    ),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "jobs.batch": ("status.successful",),
    "nodes": ("spec.unschedulable",),
}


def parse_fields(text: str, plural: str) -> Callable[[Mapping[str, Any]], bool]:
    """Read a field selector; only the few fields a kind indexes are known, others are 400."""
    wanted: list[tuple[str, str, bool]] = []
    for term in filter(None, text.split(",")):
        field, operator, value = _field_term(term)
        if field not in {
            "metadata.name",
            "metadata.namespace",
            *_EXTRA_FIELDS.get(plural, ()),
        }:
            raise _unknown_field(field)
        wanted.append((field, value, operator != "!="))
    return lambda obj: all(
        (_field(obj, field) == value) is equal for field, value, equal in wanted
    )


def _field_term(term: str) -> tuple[str, str, str]:
    for operator in ("!=", "==", "="):
        if operator in term:
            field, _, value = term.partition(operator)
            return field, operator, value
    raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")


def _unknown_field(field: str) -> Refusal:
    text = f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    return bad_request(text)


def _field(obj: Mapping[str, Any], path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
