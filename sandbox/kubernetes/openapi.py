"""The OpenAPI documents, as far as kubectl needs them: which queries a PATCH of each kind understands.

kubectl asks `/openapi/v3` whether the server checks unknown fields itself (`fieldValidation`); otherwise it wants
`/openapi/v2` in protobuf, and gives up. Schemas of builtin kinds are left out: kubectl then uses those it was built
with. Those of other kinds are shown, of which a client may want to know which fields a release has.
"""

import hashlib
import json
from functools import cache
from typing import Any

from sandbox.kubernetes.calls import Answer, json_answer
from sandbox.kubernetes.kinds import KINDS, OPTIONAL_GROUPS, Kind
from sandbox.kubernetes.schema import schema_for
from sandbox.kubernetes.schema_language import Schema
from sandbox.kubernetes.status import Refusal

ROOT = "/openapi/v3"
VERSION_2 = "/openapi/v2"
INFO = {"title": "Kubernetes", "version": "v1.36.2"}
QUERIES = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
# Only builtin kinds know how their lists are merged by it.
STRATEGIC = "application/strategic-merge-patch+json"
PROTOBUF = "proto-openapi.spec.v2"
_ANY_SCALAR: dict[str, Any] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_SCALARS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "time": {"type": "string", "format": "date-time"},
    "int": {"type": "integer"},
    "number": {"type": "number"},
    "bool": {"type": "boolean"},
    "quantity": _ANY_SCALAR,
    "int-or-string": _ANY_SCALAR,
    "any": {"x-kubernetes-preserve-unknown-fields": True},
}


def document(path: str, accept: str, installed: frozenset[str]) -> Answer | None:
    """The answer to an OpenAPI path, or None for any other; `installed` are the groups that not every server has."""
    groups = _groups(installed)
    if path == ROOT:
        return json_answer(
            200,
            {
                "paths": {
                    where: {"serverRelativeURL": _address(where)} for where in groups
                }
            },
        )
    if path == VERSION_2:
        if PROTOBUF in accept and "json" not in accept and "*/*" not in accept:
            raise Refusal(
                406,
                "only the following media types are accepted: application/json",
                "NotAcceptable",
                {},
            )
        paths = {
            where: item
            for group in groups
            for where, item in _paths(group, version=2).items()
        }
        return json_answer(
            200, {"swagger": "2.0", "info": INFO, "paths": paths, "definitions": {}}
        )
    where = path.removeprefix(f"{ROOT}/")
    if path.startswith(f"{ROOT}/") and where in groups:
        body = {
            "openapi": "3.0.0",
            "info": INFO,
            "paths": _paths(where, version=3),
            "components": {"schemas": _schemas(where)},
        }
        return json_answer(200, body)
    return None


@cache
def _groups(installed: frozenset[str]) -> tuple[str, ...]:
    served = (kind for kind in KINDS if kind.group not in OPTIONAL_GROUPS - installed)
    return tuple(sorted({_place(kind) for kind in served}))


def _place(kind: Kind) -> str:
    return f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"


@cache
def _schemas(where: str) -> dict[str, Any]:
    """The schemas of a group's kinds that a project of their own defines, each whole."""
    found = {}
    for kind in KINDS:
        if _place(kind) == where and not kind.builtin:
            named = [{"group": kind.group, "kind": kind.kind, "version": kind.version}]
            name = ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])
            found[name] = {
                **_shown(schema_for(kind)),
                "x-kubernetes-group-version-kind": named,
            }
    return found


def _shown(schema: Schema) -> dict[str, Any]:
    """A schema as OpenAPI has it, without what it says of merging."""
    if schema.type == "object":
        return {
            "type": "object",
            "properties": {name: _shown(one) for name, one in schema.fields.items()},
        }
    if schema.type == "list" and schema.items is not None:
        return {"type": "array", "items": _shown(schema.items)}
    if schema.type == "map" and schema.items is not None:
        return {"type": "object", "additionalProperties": _shown(schema.items)}
    return dict(_SCALARS.get(schema.type, {}))


@cache
def _address(where: str) -> str:
    mark = (
        hashlib.sha256(json.dumps(_paths(where, version=3), sort_keys=True).encode())
        .hexdigest()
        .upper()
    )
    return f"{ROOT}/{where}?hash={mark}"


def _paths(where: str, *, version: int) -> dict[str, Any]:
    """Each kind of a group with what can be done to one object of it."""
    found = {}
    for kind in KINDS:
        if where != _place(kind):
            continue
        place = "namespaces/{namespace}/" if kind.namespaced else ""
        operations = {
            verb: _operation(kind, verb, version)
            for verb in ("get", "put", "patch", "delete")
        }
        found[f"/{where}/{place}{kind.plural}/{{name}}"] = operations
        found[f"/{where}/{place}{kind.plural}"] = {
            "get": _operation(kind, "list", version),
            "post": _operation(kind, "post", version),
        }
    return found


def _operation(kind: Kind, verb: str, version: int) -> dict[str, Any]:
    typed = {"type": "string"} if version == 2 else {"schema": {"type": "string"}}
    queries = QUERIES if verb in ("patch", "put", "post") else QUERIES[-1:]
    found: dict[str, Any] = {
        "operationId": f"{verb}{kind.version.capitalize()}{kind.kind}",
        "parameters": [{"name": name, "in": "query", **typed} for name in queries],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": {
            "group": kind.group,
            "kind": kind.kind,
            "version": kind.version,
        },
    }
    patches = (*PATCHES, STRATEGIC) if kind.builtin else PATCHES
    if verb == "patch" and version == 3:
        found["requestBody"] = {
            "content": {media: {"schema": {"type": "object"}} for media in patches}
        }
    elif verb == "patch":
        found["consumes"] = list(patches)
    return found
