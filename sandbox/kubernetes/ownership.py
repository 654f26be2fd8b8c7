"""Who owns which field: managedFields after an apply or any other write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.kubernetes import fieldsets, typed
from sandbox.kubernetes.fieldsets import EMPTY, FieldSet
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.schema import schema_for
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.store import Obj

_M: dict[str, Any] = {}
_STRIPPED: FieldSet = {
    "f:apiVersion": _M,
    "f:kind": _M,
    "f:metadata": {
        ".": _M,
        "f:name": _M,
        "f:namespace": _M,
        "f:creationTimestamp": _M,
        "f:selfLink": _M,
        "f:uid": _M,
        "f:clusterName": _M,
        "f:generation": _M,
        "f:managedFields": _M,
        "f:resourceVersion": _M,
    },
}


@dataclass(frozen=True)
class Writer:
    """Who writes, as managedFields tells writers apart."""

    manager: str
    operation: str
    subresource: str = ""


@dataclass(frozen=True)
class Claim:
    """The fields of one writer, with the version of the object it wrote and when."""

    fields: FieldSet
    api_version: str
    time: str


Claims = dict[Writer, Claim]


def claims_of(obj: Obj) -> Claims:
    """Read an object's managedFields."""
    entries: Sequence[Mapping[str, Any]] = obj["metadata"].get("managedFields") or ()
    return {
        Writer(
            entry["manager"], entry["operation"], entry.get("subresource", "")
        ): Claim(
            entry.get("fieldsV1", EMPTY), entry["apiVersion"], entry.get("time", "")
        )
        for entry in entries
    }


def with_claims(obj: Obj, claims: Claims) -> dict[str, Any]:
    """The object with these managedFields; none at all leaves the field out."""
    metadata = {
        key: value for key, value in obj["metadata"].items() if key != "managedFields"
    }
    order = sorted(
        claims.items(),
        key=lambda item: (item[0].operation, item[1].time, item[0].manager),
    )
    entries = [_entry(writer, claim) for writer, claim in order]
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}


def _entry(writer: Writer, claim: Claim) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": writer.manager,
        "operation": writer.operation,
        "apiVersion": claim.api_version,
        "time": claim.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": claim.fields,
    }
    if writer.subresource:
        entry["subresource"] = writer.subresource
    return entry


def without_claims(obj: Obj) -> dict[str, Any]:
    """The object without managedFields."""
    metadata = {
        key: value for key, value in obj["metadata"].items() if key != "managedFields"
    }
    return {**obj, "metadata": metadata}


def _own(kind: Kind, fields: FieldSet, subresource: str) -> FieldSet:
    """What of a set a writer may own: nothing the server sets, and status only through its subresource."""
    if "f:status" in fields and not subresource and "status" in kind.subresources:
        fields = {key: node for key, node in fields.items() if key != "f:status"}
    return fieldsets.difference(fields, _STRIPPED)


def apply(
    kind: Kind, live: Obj | None, config: Obj, writer: Writer, now: str, *, force: bool
) -> tuple[dict[str, Any], Claims]:
    """Lay an applied configuration over the live object; raises 409 when others own what would change.

    Returns the merged object without managedFields, and the claims it then has.
    """
    schema = schema_for(kind)
    mine = _own(kind, typed.fields_of(schema, config), writer.subresource)
    if live is None:
        return dict(config), _set({}, writer, mine, kind.api_version, now)
    claims = claims_of(live)
    before = without_claims(live)
    last = claims.pop(writer, None)
    merged = typed.merge(schema, before, config)
    if last:
        held = mine
        for claim in claims.values():
            held = fieldsets.union(held, claim.fields)
        merged = typed.remove(schema, merged, fieldsets.difference(last.fields, held))
    if merged != before:
        claims = _yield(claims, typed.compare(schema, before, merged), force=force)
    time = last.time if last and last.fields == mine and merged == before else now
    return merged, _set(claims, writer, mine, kind.api_version, time)


def _set(
    claims: Claims, writer: Writer, fields: FieldSet, api_version: str, now: str
) -> Claims:
    if fields:
        return {**claims, writer: Claim(fields, api_version, now)}
    return {key: claim for key, claim in claims.items() if key != writer}


def _yield(others: Claims, change: typed.Comparison, *, force: bool) -> Claims:
    """The claims of the others after a change, or 409 when the change takes something from them unforced."""
    written = fieldsets.union(change.modified, change.added)
    taken = {
        writer: fieldsets.intersection(claim.fields, written)
        for writer, claim in others.items()
    }
    conflicts = {writer: fields for writer, fields in taken.items() if fields}
    if conflicts and not force:
        raise _conflict(conflicts, others)
    kept: Claims = {}
    for writer, claim in others.items():
        fields = fieldsets.difference(
            fieldsets.difference(claim.fields, taken[writer]), change.removed
        )
        if fields:
            kept[writer] = Claim(fields, claim.api_version, claim.time)
    return kept


def _conflict(conflicts: Mapping[Writer, FieldSet], claims: Claims) -> Refusal:
    causes, parts = [], []
    for writer, fields in sorted(conflicts.items(), key=lambda item: item[0].manager):
        using = (
            f" using {claims[writer].api_version}"
            if writer.operation == "Update"
            else ""
        )
        where = (
            f' with subresource "{writer.subresource}"' if writer.subresource else ""
        )
        who = f'"{writer.manager}"{where}{using}'
        said = [fieldsets.dotted(path) for path in fieldsets.paths(fields)]
        causes += [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {who}",
                "field": field,
            }
            for field in said
        ]
        parts.append((who, said))
    total = len(causes)
    if total == 1:
        text = f"conflict with {parts[0][0]}: {parts[0][1][0]}"
    else:
        text = "\n".join(
            f"conflicts with {who}:\n" + "\n".join(f"- {f}" for f in said)
            for who, said in parts
        )
    plural = "conflict" if total == 1 else "conflicts"
    return Refusal(
        409,
        f"Apply failed with {total} {plural}: {text}",
        "Conflict",
        {"causes": causes},
    )


def update(kind: Kind, live: Obj, new: Obj, writer: Writer, now: str) -> Claims:
    """The claims after a write that is no apply: what it changed is the writer's, nobody else's."""
    claims = claims_of(live)
    change = typed.compare(schema_for(kind), without_claims(live), without_claims(new))
    if not any(change):
        return claims
    mine = claims.pop(writer, None)
    held = fieldsets.difference(mine.fields if mine else EMPTY, change.removed)
    held = fieldsets.union(fieldsets.union(held, change.modified), change.added)
    fields = _own(kind, held, writer.subresource)
    others = _yield(claims, change, force=True)
    time = mine.time if mine and mine.fields == fields else now
    return _set(others, writer, fields, kind.api_version, time)


_STRUCTS: Mapping[str, Mapping[str, Any]] = {
    "PersistentVolumeClaim": {"spec": {"resources": {}}},
    "Pod": {"spec": {"containers": None}},
    "Job": {"spec": {"template": {"metadata": {}, "spec": {"containers": None}}}},
    "NetworkPolicy": {"spec": {"podSelector": {}}},
    "LimitRange": {"spec": {"limits": None}},
    "Node": {
        "status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": {}}
    },
    "RoleBinding": {"roleRef": {"apiGroup": "", "kind": "", "name": ""}},
    "ClusterRoleBinding": {"roleRef": {"apiGroup": "", "kind": "", "name": ""}},
    "Role": {"rules": None},
    "ClusterRole": {"rules": None},
}


def unborn(kind: Kind) -> dict[str, Any]:
    """What a creation is compared with: the struct of a builtin kind has its parts before anyone sets them."""
    if not kind.builtin:
        return {"metadata": {}}
    parts: dict[str, Any] = {
        name: {} for name in ("spec", "status") if name in schema_for(kind).fields
    }
    return {"metadata": {}, **parts, **_STRUCTS.get(kind.kind, {})}
