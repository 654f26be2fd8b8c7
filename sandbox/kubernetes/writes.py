"""Creating and changing objects: POST, PUT, PATCH and server-side apply."""

import json
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sandbox.kubernetes import bodies, ownership, patches, schema, status
from sandbox.kubernetes.admission import Admission
from sandbox.kubernetes.calls import APPLY, Answer, Call, Target, object_answer
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.ownership import Claims
from sandbox.kubernetes.policies import Attempt
from sandbox.kubernetes.rbac import Authorizer
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.store import Entry, Obj, Store

_COUNTED = frozenset(
    {
        "NetworkPolicy",
        "PriorityClass",
        "Job",
        "Pod",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
)
_SERVER_SET = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_STRATEGIC_REFUSED = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)


@dataclass(frozen=True)
class Writes:
    """The writing half of the API for one store."""

    store: Store
    admission: Admission
    authorizer: Authorizer

    def create(self, call: Call, kind: Kind, target: Target) -> Answer:
        """POST: 201 with the object as stored, 409 when the name is taken."""
        call.check_options("CreateOptions")
        obj = bodies.posted(call, kind)
        metadata = dict(obj.get("metadata") or {})
        bodies.check_namespace(kind, metadata, target)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + secrets.token_hex(3)[:5]
        target = replace(target, name=str(metadata.get("name", "")))
        obj, headers = self._known_fields(call, kind, {**obj, "metadata": metadata})
        obj = _typed(kind, obj)
        uid = str(uuid.uuid4())
        stored = self.admission.mutated(
            kind, self.admission.defaulted(kind, obj, uid), target
        )
        writer = call.writer("Update")
        claims = ownership.update(
            kind,
            ownership.unborn(kind),
            _written(kind, stored, obj),
            writer,
            timestamp(),
        )
        return self._born(call, kind, target, stored, uid, claims, headers)

    def update(self, call: Call, kind: Kind, target: Target) -> Answer:
        """PUT: unconditional without a resourceVersion, 409 with a stale one, 404 when nothing is there."""
        call.check_options("UpdateOptions")
        obj = bodies.posted(call, kind)
        bodies.check_identity(kind, obj.get("metadata") or {}, target)
        live = self._live(kind, target)
        obj, headers = self._known_fields(call, kind, obj)
        return self._changed(call, kind, target, live, obj, headers)

    def patch(self, call: Call, kind: Kind, target: Target) -> Answer:
        """PATCH of any type; only an apply may create what is not there."""
        if call.content_type == APPLY:
            return self._apply(call, kind, target)
        if call.content_type not in {
            patches.MERGE,
            patches.JSON_PATCH,
            patches.STRATEGIC,
        }:
            raise Refusal(
                415, "415: Unsupported Media Type", "UnsupportedMediaType", {}
            )
        if call.content_type == patches.STRATEGIC and not kind.builtin:
            raise Refusal(415, _STRATEGIC_REFUSED, "UnsupportedMediaType")
        if "force" in call.query:
            message = "Forbidden: may not be specified for non-apply patch"
            raise status.options_invalid(
                "PatchOptions", "force", "FieldValueForbidden", message
            )
        call.check_options("PatchOptions")
        live = self._live(kind, target)
        shape = schema.schema_for(kind)
        obj = patches.patched(shape, live.obj, call.body, call.content_type)
        obj, headers = self._known_fields(call, kind, obj)
        return self._changed(call, kind, target, live, obj, headers)

    def _live(self, kind: Kind, target: Target) -> Entry:
        live = self.store.entry(kind, target.namespace, target.name)
        if live is None:
            raise status.not_found(kind, target.name)
        return live

    def _known_fields(
        self, call: Call, kind: Kind, obj: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The body without unknown fields, and the Warning header that says so; 400 when strict."""
        unknown = schema.strict_unknown_fields(kind, obj)
        if not unknown:
            return obj, {}
        if call.query.get("fieldValidation") == "Strict" and (
            text := schema.strict_error(kind, obj)
        ):
            raise status.bad_request(text)
        warn = call.query.get("fieldValidation") != "Ignore"
        headers = {"warning": ", ".join(schema.warnings(kind, obj))} if warn else {}
        return schema.prune(kind, obj), headers

    def _apply(self, call: Call, kind: Kind, target: Target) -> Answer:
        if not call.query.get("fieldManager"):
            message = "Required value: is required for apply patch"
            raise status.options_invalid(
                "PatchOptions", "fieldManager", "FieldValueRequired", message
            )
        call.check_options("PatchOptions")
        config = bodies.applied(call)
        bodies.check_apply_identity(kind, config, target)
        live = self.store.entry(kind, target.namespace, target.name)
        if live is None:
            self._may_create(call, kind, target)
        if text := schema.apply_error(kind, target.namespace, target.name, config):
            raise Refusal(500, text)
        config = _configuration(kind, config, target)
        _check_version(kind, target, live, config["metadata"])
        uid = config["metadata"].pop("uid", None)
        config["metadata"].pop("resourceVersion", None)
        if live is not None and uid not in {None, live.obj["metadata"]["uid"]}:
            raise _immutable_uid(kind, target, str(uid))
        force = call.query.get("force") == "true"
        obj, claims = ownership.apply(
            kind,
            live.obj if live else None,
            config,
            call.writer("Apply"),
            timestamp(),
            force=force,
        )
        if live is None:
            uid = str(uuid.uuid4())
            obj = self.admission.mutated(
                kind, self.admission.defaulted(kind, obj, uid), target
            )
            return self._born(call, kind, target, obj, uid, claims, {})
        obj = self.admission.defaulted(kind, obj, str(live.obj["metadata"]["uid"]))
        obj = _only_what_may_change(kind, live.obj, obj, target.subresource)
        return self._finish(call, kind, live, obj, claims, {})

    def _may_create(self, call: Call, kind: Kind, target: Target) -> None:
        wanted = replace(call.attributes, verb="create")
        allowed, _ = self.authorizer.allowed(call.who, wanted)
        if not allowed:
            raise forbidden_verb(call, kind, "create", target)

    def _born(
        self,
        call: Call,
        kind: Kind,
        target: Target,
        obj: dict[str, Any],
        uid: str,
        claims: Claims,
        headers: Mapping[str, str],
    ) -> Answer:
        """Finish a creation: admission, validation, rights and quota, in this order."""
        self.admission.check_namespace(kind, target)
        metadata = {
            key: value
            for key, value in obj["metadata"].items()
            if key not in _SERVER_SET
        }
        metadata.pop("resourceVersion", None)
        metadata |= {"name": target.name, "uid": uid, "creationTimestamp": timestamp()}
        if kind.namespaced:
            metadata["namespace"] = target.namespace
        else:
            metadata.pop("namespace", None)
        if kind.own_name in _COUNTED or not kind.builtin:
            metadata["generation"] = 1
        obj = self.admission.limited(kind, {**obj, "metadata": metadata})
        self.admission.check_rights(kind, obj, call.who)
        self.admission.asked(kind, obj, "")
        self.admission.validated(kind, obj, None)
        self.admission.judged(
            Attempt(
                kind,
                "CREATE",
                call.who,
                obj,
                None,
                target.subresource,
                dry_run=call.dry_run,
            )
        )
        present = self.store.get(kind, target.namespace, target.name)
        if present is not None:
            deleting = "deletionTimestamp" in present["metadata"]
            raise status.already_exists(kind, target.name, deleting=deleting)
        headers = {**self.admission.warnings(kind, obj), **headers}
        try:
            self.admission.charged(kind, obj, None, dry_run=call.dry_run)
        except Refusal as refusal:
            # What was warned of before the quota was asked is said all the same.
            refusal.headers |= headers
            raise
        obj = ownership.with_claims(obj, claims)
        entry = Entry(obj) if call.dry_run else self.store.put(kind, obj)
        return object_answer(kind, entry, 201, headers)

    def _changed(
        self,
        call: Call,
        kind: Kind,
        target: Target,
        live: Entry,
        obj: dict[str, Any],
        headers: Mapping[str, str],
    ) -> Answer:
        """Finish a PUT or a patch: work out what it changed and who owns that now."""
        metadata = {**live.obj["metadata"], **(obj.get("metadata") or {})}
        _check_version(kind, target, live, obj.get("metadata") or {})
        if metadata["uid"] != live.obj["metadata"]["uid"]:
            raise _immutable_uid(kind, target, str(metadata["uid"]))
        obj = self.admission.defaulted(
            kind, _typed(kind, obj), str(live.obj["metadata"]["uid"])
        )
        obj = _only_what_may_change(kind, live.obj, obj, target.subresource)
        claims = ownership.update(
            kind, live.obj, obj, call.writer("Update"), timestamp()
        )
        return self._finish(call, kind, live, obj, claims, headers)

    def _finish(
        self,
        call: Call,
        kind: Kind,
        live: Entry,
        obj: dict[str, Any],
        claims: Claims,
        headers: Mapping[str, str],
    ) -> Answer:
        """Finish a change: nothing is stored and no version is used when nothing differs."""
        obj = _counted(kind, live.obj, obj)
        obj = ownership.with_claims(obj, claims)
        part = call.target.subresource if call.target else ""
        self.admission.asked(kind, obj, part)
        if _same(live.obj, obj):
            return object_answer(kind, live, 200, headers)
        self.admission.check_rights(kind, obj, call.who)
        self.admission.validated(kind, obj, live.obj, part)
        self.admission.judged(
            Attempt(kind, "UPDATE", call.who, obj, live.obj, part, dry_run=call.dry_run)
        )
        self.admission.charged(kind, obj, live.obj, dry_run=call.dry_run)
        return object_answer(kind, self._keep(call, kind, obj, live), 200, headers)

    def _keep(self, call: Call, kind: Kind, obj: dict[str, Any], live: Entry) -> Entry:
        if call.dry_run:
            return Entry(obj)
        if is_released(obj):
            self.store.put(kind, obj)
            metadata = obj["metadata"]
            self.store.remove(kind, metadata.get("namespace", ""), metadata["name"])
            return Entry(
                {**obj, "metadata": {**metadata, "resourceVersion": _version(live.obj)}}
            )
        return self.store.put(kind, obj)


def is_released(obj: Obj) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    return not (
        obj["kind"] == "Namespace" and (obj.get("spec") or {}).get("finalizers")
    )


def forbidden_verb(call: Call, kind: Kind, verb: str, target: Target) -> Refusal:
    """403 for a verb that the caller's roles do not give."""
    what = call.attributes
    return status.forbidden(
        kind, target.name, denial(call.who.user, replace(what, verb=verb))
    )


def denial(user: str, what: Any) -> str:
    """The sentence of a denied request on a resource."""
    where = (
        f'in the namespace "{what.namespace}"'
        if what.namespace
        else "at the cluster scope"
    )
    resource = f'resource "{what.qualified}" in API group "{what.group}"'
    return f'User "{user}" cannot {what.verb} {resource} {where}'


def _written(
    kind: Kind, stored: dict[str, Any], body: dict[str, Any]
) -> dict[str, Any]:
    """What of a stored object its writer wrote: the defaults of decoding count, later additions do not."""
    written = {**stored, "metadata": body.get("metadata") or {}}
    if kind.own_name == "Job":
        template = {
            **stored["spec"]["template"],
            "metadata": body["spec"]["template"].get("metadata") or {},
        }
        written["spec"] = {
            k: v for k, v in stored["spec"].items() if k != "selector"
        } | {"template": template}
    return written


def _typed(kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]:
    return {**obj, "apiVersion": kind.api_version, "kind": kind.kind}


def _configuration(
    kind: Kind, config: dict[str, Any], target: Target
) -> dict[str, Any]:
    metadata = {**(config.get("metadata") or {}), "name": target.name}
    if kind.namespaced:
        metadata["namespace"] = target.namespace
    else:
        metadata.pop("namespace", None)
    config = {**config, "metadata": metadata}
    if "status" in kind.subresources and target.subresource != "status":
        config.pop("status", None)
    return config


def _check_version(
    kind: Kind, target: Target, live: Entry | None, metadata: Mapping[str, Any]
) -> None:
    asked = metadata.get("resourceVersion")
    if live is not None and asked and asked != _version(live.obj):
        raise status.modified(kind, target.name)


def _version(obj: Obj) -> str:
    return str(obj["metadata"]["resourceVersion"])


def _immutable_uid(kind: Kind, target: Target, uid: str) -> Refusal:
    message = f"Invalid value: {json.dumps(uid)}: field is immutable"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "metadata.uid"}
    return status.invalid(kind, target.name, [cause, cause])


def _only_what_may_change(
    kind: Kind, live: Obj, obj: dict[str, Any], subresource: str
) -> dict[str, Any]:
    """The new object with what this path may not touch taken from the live one."""
    metadata = dict(obj.get("metadata") or {})
    for name in (*_SERVER_SET, "resourceVersion", "name", "namespace", "managedFields"):
        metadata.pop(name, None)
        if name in live["metadata"]:
            metadata[name] = live["metadata"][name]
    if subresource == "status":
        changed = {**live, "metadata": {**live["metadata"], **_labels(metadata)}}
        changed.pop("status", None)
        return {**changed, "status": obj["status"]} if "status" in obj else changed
    obj = {**obj, "metadata": metadata}
    if "status" in kind.subresources:
        obj.pop("status", None)
        if "status" in live:
            obj["status"] = live["status"]
    return obj


def _labels(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: metadata[name] for name in ("labels", "annotations") if name in metadata
    }


def _counted(kind: Kind, live: Obj, obj: dict[str, Any]) -> dict[str, Any]:
    """Raise the generation when something outside metadata and status changed."""
    if "generation" not in live["metadata"]:
        return obj
    keys = ({*live, *obj} - {"metadata", "status"}) if not kind.builtin else {"spec"}
    if all(live.get(key) == obj.get(key) for key in keys):
        return obj
    return {
        **obj,
        "metadata": {
            **obj["metadata"],
            "generation": live["metadata"]["generation"] + 1,
        },
    }


def _same(live: Obj, obj: Obj) -> bool:
    return live == obj or (
        ownership.without_claims(live) == ownership.without_claims(obj)
        and _fields(ownership.claims_of(live)) == _fields(ownership.claims_of(obj))
    )


def _fields(claims: Claims) -> dict[Any, Any]:
    return {writer: claim.fields for writer, claim in claims.items()}
