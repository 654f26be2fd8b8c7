"""Reading request bodies: JSON, YAML and some protobuf, with the API server's words for what is wrong with them."""

import json
from typing import Any

import yaml

from sandbox.kubernetes import protobuf
from sandbox.kubernetes.calls import Call, Target
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.status import Refusal, bad_request

_YAML_TYPES = {"application/yaml", "application/apply-patch+yaml"}


class _StrictLoader(yaml.CSafeLoader):
    """A YAML loader that refuses a key given twice, like the API server's."""


def _unique_mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            line = key_node.start_mark.line + 1
            raise _DuplicateKey(f'line {line}: key "{key}" already set in map')
        seen.add(key)
    return dict(loader.construct_mapping(node, deep=True))


class _DuplicateKey(Exception):
    """A key given twice."""


_StrictLoader.add_constructor(
    yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping
)


def applied(call: Call) -> dict[str, Any]:
    """The configuration of an apply: YAML, of which JSON is a part; 400 when it is neither."""
    if call.body[:1] == b"{":
        try:
            return _object(json.loads(call.body))
        except ValueError:
            pass
    try:
        return _object(yaml.load(call.body, Loader=_StrictLoader))  # noqa: S506 - a safe loader
    except _DuplicateKey as error:
        text = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  "
        raise bad_request(f"{text}{error}") from error
    except yaml.YAMLError as error:
        raise bad_request(
            f"error decoding YAML: error converting YAML to JSON: {_go_yaml(error)}"
        ) from error


def _go_yaml(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + (mark.column > 0) if mark else 1
    problem = str(getattr(error, "problem", error))
    if "did not find expected" not in problem:
        problem = "did not find expected node content"
    return f"yaml: line {line}: {problem}"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def posted(call: Call, kind: Kind) -> dict[str, Any]:
    """The object of a POST or PUT; 400 when it cannot be read or is of another kind, 415 for other media types."""
    if call.content_type == protobuf.MEDIA_TYPE:
        obj = protobuf.read(call.body)
    elif call.content_type in _YAML_TYPES:
        obj = applied(call)
    elif call.content_type in {"application/json", ""}:
        obj = _json(call, kind)
    else:
        text = "the body of the request was in an unknown format - accepted media types include: "
        raise Refusal(
            415, text + "application/json, application/yaml", "UnsupportedMediaType"
        )
    if (obj.get("apiVersion", kind.api_version), obj.get("kind", kind.kind)) != (
        kind.api_version,
        kind.kind,
    ):
        said = f"{obj.get('kind')} in version {json.dumps(obj.get('apiVersion', ''))}"
        raise bad_request(
            f"{said} cannot be handled as a {kind.kind}: converting is not possible"
        )
    return obj


def _json(call: Call, kind: Kind) -> dict[str, Any]:
    try:
        return _object(json.loads(call.body))
    except ValueError as error:
        text = call.body.decode(errors="replace")
        whole = f"the object provided is unrecognized (must be of type {kind.kind}): couldn't get version/kind; "
        raise bad_request(
            f"{whole}json parse error: {_go_json(error, text)} ({text})"
        ) from error


def _go_json(error: ValueError, text: str) -> str:
    position = getattr(error, "pos", len(text))
    if position >= len(text):
        return "unexpected end of JSON input"
    return f"invalid character '{text[position]}' looking for beginning of value"


def check_apply_identity(kind: Kind, obj: dict[str, Any], target: Target) -> None:
    """Refuse an applied configuration that speaks of another object than the path (400)."""
    if (obj.get("apiVersion"), obj.get("kind")) != (kind.api_version, kind.kind):
        raise bad_request(f"invalid object type: {_gvk(obj)}")
    metadata = obj.get("metadata") or {}
    if "managedFields" in metadata:
        raise bad_request("metadata.managedFields must be nil")
    check_identity(kind, metadata, target)


def check_identity(kind: Kind, metadata: dict[str, Any], target: Target) -> None:
    """Refuse a body whose name or namespace is not the path's (400)."""
    name = metadata.get("name") or target.name
    if name != target.name:
        text = f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        raise bad_request(text)
    check_namespace(kind, metadata, target)


def check_namespace(kind: Kind, metadata: dict[str, Any], target: Target) -> None:
    """Refuse a body whose namespace is not the path's (400); cluster-scoped kinds do not look."""
    namespace = metadata.get("namespace") or target.namespace
    if kind.namespaced and namespace != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _gvk(obj: dict[str, Any]) -> str:
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    return f"{group}/{version}, Kind={obj.get('kind', '')}"
