"""DELETE of one object and of collections: finalizers, propagation, preconditions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.kubernetes import status
from sandbox.kubernetes.admission import Admission
from sandbox.kubernetes.calls import Answer, Call, Target, json_answer, object_answer
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.policies import Attempt
from sandbox.kubernetes.reads import list_answer, selector_of
from sandbox.kubernetes.status import Refusal, options_invalid
from sandbox.kubernetes.store import Entry, Obj, Store

_PROTECTED = frozenset({"default", "kube-public", "kube-system"})
_ANSWERED_WITH_OBJECT = frozenset(
    {"ServiceAccount", "ResourceQuota", "PersistentVolumeClaim", "Pod", "Service"}
)
_JOB_WARNING = (
    '299 - "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove '
    'them or set propagationPolicy=Orphan to suppress this warning"'
)
_FINALIZERS = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}


@dataclass(frozen=True)
class Options:
    """DeleteOptions from the body and the query, the body first."""

    propagation: str
    uid: str
    version: str

    @staticmethod
    def of(call: Call) -> "Options":
        """Read them; 422 for a policy nobody knows."""
        body = _body(call)
        policy = str(
            body.get("propagationPolicy") or call.query.get("propagationPolicy") or ""
        )
        if policy not in {"", "Background", "Foreground", "Orphan"}:
            message = f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan", "nil"'
            raise options_invalid(
                "DeleteOptions", "propagationPolicy", "FieldValueNotSupported", message
            )
        if body.get("orphanDependents") or call.query.get("orphanDependents") == "true":
            policy = policy or "Orphan"
        preconditions = body.get("preconditions") or {}
        return Options(
            policy,
            preconditions.get("uid") or "",
            preconditions.get("resourceVersion") or "",
        )


def _body(call: Call) -> Mapping[str, Any]:
    if not call.body.strip():
        return {}
    try:
        body = json.loads(call.body)
    except ValueError as error:
        raise status.bad_request(f"json parse error: {error}") from error
    return body if isinstance(body, dict) else {}


@dataclass(frozen=True)
class Deletes:
    """The deleting part of the API for one store."""

    store: Store
    admission: Admission

    def delete(self, call: Call, kind: Kind, target: Target) -> Answer:
        """Delete one object: a Status when it is gone, the object when something still holds it."""
        call.check_options("DeleteOptions")
        options = Options.of(call)
        headers: dict[str, str] = {}
        if kind.own_name == "Job" and not options.propagation:
            headers = {"warning": _JOB_WARNING}
        try:
            return self._delete(call, kind, target, options, headers)
        except Refusal as refusal:
            refusal.headers.update(headers)
            raise

    def _delete(
        self,
        call: Call,
        kind: Kind,
        target: Target,
        options: Options,
        headers: Mapping[str, str],
    ) -> Answer:
        if kind.kind == "Namespace" and target.name in _PROTECTED:
            raise status.forbidden(
                kind, target.name, "this namespace may not be deleted"
            )
        live = self.store.entry(kind, target.namespace, target.name)
        if live is None:
            raise status.not_found(kind, target.name)
        _check_preconditions(kind, live.obj, options)
        self.admission.check_end(kind, live.obj)
        self.admission.judged(
            Attempt(kind, "DELETE", call.who, None, live.obj, dry_run=call.dry_run)
        )
        entry, gone = self.remove(kind, live, options.propagation, dry_run=call.dry_run)
        if gone and kind.kind not in _ANSWERED_WITH_OBJECT:
            return json_answer(200, _success(kind, live.obj), headers)
        return object_answer(kind, entry, 200, headers)

    def remove(
        self, kind: Kind, live: Entry, propagation: str = "", *, dry_run: bool = False
    ) -> tuple[Entry, bool]:
        """Delete or mark as being deleted; True when nothing is left of it."""
        metadata = live.obj["metadata"]
        if "deletionTimestamp" in metadata:
            return live, False
        finalizers = _finalizers(kind, metadata, propagation)
        held = finalizers or kind.kind == "Namespace"
        if held:
            obj = _terminating(kind, live.obj, finalizers)
            return (Entry(obj) if dry_run else self.store.put(kind, obj)), False
        if kind.kind == "Pod":
            live = Entry(_terminating(kind, live.obj, []))
        if not dry_run:
            self.store.remove(kind, metadata.get("namespace", ""), metadata["name"])
        return live, True

    def delete_collection(self, call: Call, kind: Kind, target: Target) -> Answer:
        """Delete everything a selector matches; the answer is the list of it as it was."""
        call.check_options("DeleteOptions")
        options = Options.of(call)
        selector = selector_of(call, kind)
        namespace = (target.namespace or None) if kind.namespaced else None
        rows = [
            row
            for row in self.store.table(kind).sorted(namespace)
            if not selector or selector(row[1].obj)
        ]
        version = {"resourceVersion": str(self.store.version)}
        for _, entry in rows:
            self.admission.check_end(kind, entry.obj)
            self.admission.judged(
                Attempt(kind, "DELETE", call.who, None, entry.obj, dry_run=call.dry_run)
            )
        for _, entry in rows:
            self.remove(kind, entry, options.propagation, dry_run=call.dry_run)
        return list_answer(kind, rows, version, call)


def _finalizers(kind: Kind, metadata: Mapping[str, Any], propagation: str) -> list[str]:
    finalizers = list(metadata.get("finalizers") or ())
    if kind.own_name == "Job" and not propagation:
        propagation = "Orphan"
    extra = _FINALIZERS.get(propagation)
    if extra and extra not in finalizers and kind.kind != "Namespace":
        finalizers.append(extra)
    return finalizers


def _terminating(kind: Kind, obj: Obj, finalizers: list[str]) -> dict[str, Any]:
    metadata = {**obj["metadata"], "deletionTimestamp": timestamp()}
    if finalizers:
        metadata["finalizers"] = finalizers
    if "generation" in metadata:
        metadata["generation"] += 1
    if kind.kind == "Namespace":
        return {
            **obj,
            "metadata": metadata,
            "status": {**(obj.get("status") or {}), "phase": "Terminating"},
        }
    metadata["deletionGracePeriodSeconds"] = 0
    return {**obj, "metadata": metadata}


def _check_preconditions(kind: Kind, obj: Obj, options: Options) -> None:
    metadata = obj["metadata"]
    name, uid, version = metadata["name"], metadata["uid"], metadata["resourceVersion"]
    if options.uid and options.uid != uid:
        if kind.kind == "Namespace":
            text = f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {uid}"
            raise status.conflict(kind, name, text)
        raise _precondition(
            kind, name, "UID", options.uid, uid, "deleted and then recreated"
        )
    if options.version and options.version != version:
        raise _precondition(
            kind, name, "ResourceVersion", options.version, version, "modified"
        )


def _precondition(
    kind: Kind, name: str, what: str, wanted: str, found: str, guess: str
) -> Refusal:
    message = (
        f'Operation cannot be fulfilled on {kind.qualified_kind} "{name}": the {what} in the precondition ({wanted}) '
        f"does not match the {what} in record ({found}). The object might have been {guess}"
    )
    details = {
        "name": name,
        **({"group": kind.group} if kind.group else {}),
        "kind": kind.kind,
    }
    return Refusal(409, message, "Conflict", details)


def _success(kind: Kind, obj: Obj) -> dict[str, Any]:
    details = {
        **status.details_of(kind, obj["metadata"]["name"]),
        "uid": obj["metadata"]["uid"],
    }
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
