"""Access reviews: may I, may they, what may I, who am I."""

import json
from collections.abc import Mapping
from typing import Any

from sandbox.kubernetes import protobuf
from sandbox.kubernetes.calls import Answer, Call, json_answer
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.rbac import Attributes, Authorizer
from sandbox.kubernetes.status import bad_request

_AUTHORIZATION = ("authorization.k8s.io", "v1")
_AUTHENTICATION = ("authentication.k8s.io", "v1")


def review(call: Call, authorizer: Authorizer) -> Answer | None:
    """The answer to a POST of a review, or None when the path is no review."""
    at = call.target
    if at is None or at.name or call.method != "POST":
        return None
    if (at.group, at.version) == _AUTHENTICATION and at.plural == "selfsubjectreviews":
        return _who_am_i(call)
    if (at.group, at.version) != _AUTHORIZATION:
        return None
    if at.plural == "selfsubjectaccessreviews":
        return _access(call, authorizer, "SelfSubjectAccessReview", call.who)
    if at.plural in {"subjectaccessreviews", "localsubjectaccessreviews"}:
        spec = _spec(call)
        who = Identity(str(spec.get("user", "")), tuple(spec.get("groups") or ()))
        kind = (
            "SubjectAccessReview"
            if at.plural == "subjectaccessreviews"
            else "LocalSubjectAccessReview"
        )
        return _access(call, authorizer, kind, who)
    if at.plural == "selfsubjectrulesreviews":
        return _rules(call, authorizer)
    return None


def _spec(call: Call) -> Mapping[str, Any]:
    if call.content_type == protobuf.MEDIA_TYPE:
        asked: Mapping[str, Any] = protobuf.read(call.body).get("spec") or {}
        return asked
    try:
        body = json.loads(call.body)
    except ValueError as error:
        raise bad_request(f"json parse error: {error}") from error
    spec: Mapping[str, Any] = body.get("spec") or {}
    return spec


def _access(call: Call, authorizer: Authorizer, kind: str, who: Identity) -> Answer:
    spec = _filled(_spec(call))
    allowed, reason = authorizer.allowed(who, _attributes(spec))
    said: dict[str, Any] = {
        "allowed": allowed,
        **({"reason": reason} if reason else {}),
    }
    body = {
        "kind": kind,
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {"managedFields": [_entry(call, spec)]},
        "spec": spec,
        "status": said,
    }
    return json_answer(201, body)


def _filled(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec as its struct holds it: without empty strings."""
    cleaned = {key: value for key, value in spec.items() if value not in ("", None)}
    for name in ("resourceAttributes", "nonResourceAttributes"):
        if name in cleaned:
            cleaned[name] = {
                key: value
                for key, value in cleaned[name].items()
                if value not in ("", None)
            }
    return cleaned


def _attributes(spec: Mapping[str, Any]) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path:
        return Attributes(path.get("verb", ""), path=path.get("path", ""))
    asked = spec.get("resourceAttributes") or {}
    return Attributes(
        asked.get("verb", ""),
        asked.get("group", ""),
        asked.get("resource", ""),
        asked.get("subresource", ""),
        asked.get("namespace", ""),
        asked.get("name", ""),
    )


def _entry(call: Call, spec: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in spec.items():
        inner: dict[str, Any] = (
            {f"f:{key}": {} for key in value} if isinstance(value, Mapping) else {}
        )
        fields[f"f:{name}"] = {".": {}, **inner} if inner else {}
    return {
        "manager": call.writer("Update").manager,
        "operation": "Update",
        "apiVersion": "authorization.k8s.io/v1",
        "time": timestamp(),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": fields},
    }


def _rules(call: Call, authorizer: Authorizer) -> Answer:
    namespace = str(_spec(call).get("namespace", ""))
    rules = [grant.rule for grant in authorizer.grants(call.who, namespace)]
    said = {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }
    body = {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
    }
    return json_answer(201, {**body, "status": said})


def _who_am_i(call: Call) -> Answer:
    user: dict[str, Any] = {"username": call.who.user}
    if call.who.uid:
        user["uid"] = call.who.uid
    user["groups"] = list(call.who.all_groups)
    body = {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": timestamp()},
        "status": {"userInfo": user},
    }
    return json_answer(201, body)
