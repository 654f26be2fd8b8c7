"""The OpenAPI documents, as far as kubectl needs them: which queries a PATCH of each kind understands.

kubectl asks `/openapi/v3` whether the server checks unknown fields itself (`fieldValidation`); otherwise it wants
`/openapi/v2` in protobuf, and gives up. Schemas are left out: kubectl then uses those it was built with.
"""

import hashlib
import json
from functools import cache
from typing import Any

from sandbox.kubernetes.calls import Answer, json_answer
from sandbox.kubernetes.kinds import KINDS, Kind
from sandbox.kubernetes.status import Refusal

ROOT = "/openapi/v3"
VERSION_2 = "/openapi/v2"
INFO = {"title": "Kubernetes", "version": "v1.36.2"}
QUERIES = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
PROTOBUF = "proto-openapi.spec.v2"


def document(path: str, accept: str) -> Answer | None:
    """The answer to an OpenAPI path, or None for any other."""
    if path == ROOT:
        return json_answer(
            200, {"paths": {where: {"serverRelativeURL": _address(where)} for where in _groups()}}
        )
    if path == VERSION_2:
        if PROTOBUF in accept and "json" not in accept and "*/*" not in accept:
            raise Refusal(
                406, "only the following media types are accepted: application/json", "NotAcceptable", {}
            )
        paths = {where: item for group in _groups() for where, item in _paths(group, version=2).items()}
        return json_answer(200, {"swagger": "2.0", "info": INFO, "paths": paths, "definitions": {}})
    where = path.removeprefix(f"{ROOT}/")
    if path.startswith(f"{ROOT}/") and where in _groups():
        body = {
            "openapi": "3.0.0",
            "info": INFO,
            "paths": _paths(where, version=3),
            "components": {"schemas": {}},
        }
        return json_answer(200, body)
    return None


@cache
def _groups() -> tuple[str, ...]:
    found = {f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}" for kind in KINDS}
    return tuple(sorted(found))


def _address(where: str) -> str:
    mark = hashlib.sha256(json.dumps(_paths(where, version=3), sort_keys=True).encode()).hexdigest().upper()
    return f"{ROOT}/{where}?hash={mark}"


def _paths(where: str, *, version: int) -> dict[str, Any]:
    """Each kind of a group with what can be done to one object of it."""
    found = {}
    for kind in KINDS:
        if where != (f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"):
            continue
        place = "namespaces/{namespace}/" if kind.namespaced else ""
        operations = {verb: _operation(kind, verb, version) for verb in ("get", "put", "patch", "delete")}
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
        "x-kubernetes-group-version-kind": {"group": kind.group, "kind": kind.kind, "version": kind.version},
    }
    if verb == "patch" and version == 3:
        found["requestBody"] = {"content": {media: {"schema": {"type": "object"}} for media in PATCHES}}
    elif verb == "patch":
        found["consumes"] = list(PATCHES)
    return found
