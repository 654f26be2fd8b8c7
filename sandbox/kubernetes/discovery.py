"""What the server says it serves: versions, groups and resource lists, as a real server listed them."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sandbox.kubernetes import openapi, visibility
from sandbox.kubernetes.calls import (
    Answer,
    Call,
    json_answer,
    page_not_found,
    text_answer,
)
from sandbox.kubernetes.kinds import KINDS, KUEUE_GROUP, OPTIONAL_GROUPS, Kind
from sandbox.kubernetes.seeds import DATA
from sandbox.kubernetes.status import Refusal, method_not_allowed, no_such_resource

_HEALTH = ("/healthz", "/livez", "/readyz")
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads((DATA / "discovery.json").read_text())
    return data


@cache
def _with_groups(groups: frozenset[str]) -> Mapping[str, Any]:
    """The same where definitions of other projects are installed, or Kueue's are not: more or fewer groups."""
    data = _data() if KUEUE_GROUP in groups else _without(_data(), KUEUE_GROUP)
    for group in dict.fromkeys(kind.group for kind in KINDS):
        if group in groups - {KUEUE_GROUP}:
            data = _with_kinds(data, [kind for kind in KINDS if kind.group == group])
    return data


def _without(data: Mapping[str, Any], group: str) -> Mapping[str, Any]:
    listed = data["aggregated"]["/apis"]
    items = [one for one in listed["items"] if one["metadata"]["name"] != group]
    groups = [one for one in data["apis"]["groups"] if one["name"] != group]
    return {
        **data,
        "apis": {**data["apis"], "groups": groups},
        "aggregated": {**data["aggregated"], "/apis": {**listed, "items": items}},
        "resources": {
            path: one
            for path, one in data["resources"].items()
            if not path.startswith(f"/apis/{group}/")
        },
    }


def _with_kinds(data: Mapping[str, Any], kinds: Sequence[Kind]) -> Mapping[str, Any]:
    """The same with one group more, whose kinds have one version."""
    first = kinds[0]
    version = {"groupVersion": first.api_version, "version": first.version}
    group = {"name": first.group, "versions": [version], "preferredVersion": version}
    resources = [_listed(kind) for kind in kinds]
    served = {"version": first.version, "resources": resources, "freshness": "Current"}
    item = {
        "metadata": {"name": first.group, "creationTimestamp": None},
        "versions": [served],
    }
    listed = data["aggregated"]["/apis"]
    return {
        **data,
        "apis": {**data["apis"], "groups": [*data["apis"]["groups"], group]},
        "aggregated": {
            **data["aggregated"],
            "/apis": {**listed, "items": [*listed["items"], item]},
        },
    }


def _listed(kind: Kind) -> Mapping[str, Any]:
    whole = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    return {
        "resource": kind.plural,
        "responseKind": whole,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
        "subresources": [
            {
                "subresource": part,
                "responseKind": whole,
                "verbs": ["get", "patch", "update"],
            }
            for part in kind.subresources
        ],
    }


@cache
def _with_visibility(groups: frozenset[str]) -> Mapping[str, Any]:
    """The same where Kueue's visibility API is registered: a group with two versions."""
    data = _with_groups(groups)
    versions = [
        {"groupVersion": f"{visibility.GROUP}/{one}", "version": one}
        for one in visibility.VERSIONS
    ]
    group = {
        "name": visibility.GROUP,
        "versions": versions,
        "preferredVersion": versions[0],
    }
    listed = {
        f"/apis/{visibility.GROUP}/{one}": visibility.resources(one)
        for one in visibility.VERSIONS
    }
    served = [
        {"version": one, "resources": [], "freshness": "Current"}
        for one in visibility.VERSIONS
    ]
    item = {
        "metadata": {"name": visibility.GROUP, "creationTimestamp": None},
        "versions": served,
    }
    known = data["aggregated"]["/apis"]
    return {
        **data,
        "apis": {**data["apis"], "groups": [*data["apis"]["groups"], group]},
        "resources": {**data["resources"], **listed},
        "aggregated": {
            **data["aggregated"],
            "/apis": {**known, "items": [*known["items"], item]},
        },
    }


def answer(call: Call, groups: frozenset[str], *, has_visibility: bool) -> Answer:
    """The answer to a path that names no object; raises 404 and 405 as the API server does."""
    path = call.path.rstrip("/") or "/"
    served = _with_visibility(groups) if has_visibility else _with_groups(groups)
    body = _document(call, path, served, groups)
    if body is None:
        return _missing(path)
    if call.method not in {"GET", "HEAD"}:
        raise method_not_allowed()
    return body


def _document(
    call: Call, path: str, data: Mapping[str, Any], installed: frozenset[str]
) -> Answer | None:
    if path in _HEALTH:
        return text_answer(200, "ok")
    if path.startswith("/openapi/"):
        return openapi.document(path, call.headers.get("accept", ""), installed)
    if path == "/version":
        return json_answer(200, data["version"])
    if path in {"/api", "/apis"}:
        if call.headers.get("accept", "").startswith(_AGGREGATED):
            found = json_answer(200, data["aggregated"][path])
            return Answer(200, found.body, _AGGREGATED)
        return json_answer(200, _with_address(call, data[path[1:]]))
    groups = {f"/apis/{group['name']}": group for group in data["apis"]["groups"]}
    if path in groups:
        return json_answer(
            200, {"kind": "APIGroup", "apiVersion": "v1", **groups[path]}
        )
    resources = data["resources"].get(path) or _from_aggregated(path, data)
    return json_answer(200, resources) if resources else None


def _with_address(call: Call, body: Mapping[str, Any]) -> Mapping[str, Any]:
    if "serverAddressByClientCIDRs" not in body:
        return body
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": call.headers.get("host", "")}
    return {**body, "serverAddressByClientCIDRs": [address]}


def _from_aggregated(path: str, data: Mapping[str, Any]) -> dict[str, Any] | None:
    group, _, version = path.removeprefix("/apis/").partition("/")
    for item in data["aggregated"]["/apis"]["items"]:
        for served in item["versions"]:
            if (item["metadata"]["name"], served["version"]) == (group, version):
                listed = [
                    entry
                    for resource in served["resources"]
                    for entry in _resource(resource)
                ]
                head = {
                    "kind": "APIResourceList",
                    "apiVersion": "v1",
                    "groupVersion": f"{group}/{version}",
                }
                return {**head, "resources": listed}
    return None


def _resource(resource: Mapping[str, Any]) -> list[dict[str, Any]]:
    common = {"namespaced": resource["scope"] == "Namespaced"}
    entry = {
        "name": resource["resource"],
        "singularName": resource["singularResource"],
        **common,
        "kind": resource["responseKind"]["kind"],
        "verbs": resource["verbs"],
    }
    parts = [
        {
            "name": f"{resource['resource']}/{part['subresource']}",
            "singularName": "",
            **common,
            "kind": part["responseKind"]["kind"],
            "verbs": part["verbs"],
        }
        for part in resource.get("subresources") or ()
    ]
    return [entry, *parts]


def _missing(path: str) -> Answer:
    parts = path.split("/")[1:]
    if is_builtin_group(parts):
        raise no_such_resource()
    return page_not_found()


def is_builtin_group(parts: list[str]) -> bool:
    """Whether path parts lie in a group that the server itself serves, not one of custom resources."""
    if parts[0] == "api":
        return len(parts) > 1 and parts[1] == "v1" and len(parts) > 2
    if parts[0] != "apis" or len(parts) < 3:
        return False
    return parts[1] not in OPTIONAL_GROUPS and any(
        group["name"] == parts[1] for group in _data()["apis"]["groups"]
    )


def unknown_resource(path: str) -> Answer:
    """The 404 for a plural nobody serves: a Status in builtin groups, plain text elsewhere."""
    if is_builtin_group(path.split("/")[1:]):
        refusal: Refusal = no_such_resource()
        raise refusal
    return page_not_found()
