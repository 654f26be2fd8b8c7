"""A request as the API server understands it, and the answers it gives."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.kinds import Kind, by_resource
from sandbox.kubernetes.ownership import Writer
from sandbox.kubernetes.rbac import Attributes
from sandbox.kubernetes.status import Refusal, options_invalid
from sandbox.kubernetes.store import Entry, Obj

APPLY = "application/apply-patch+yaml"
JSON_TYPE = "application/json"
_NAMESPACE_PARTS = ("finalize", "status")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True)
class Target:
    """What a resource path names."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def kind(self) -> Kind | None:
        """The kind served at this path, or None."""
        return by_resource(self.group, self.version, self.plural)


@dataclass(frozen=True)
class Call:
    """One request, read but not yet judged."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    who: Identity
    target: Target | None = None

    @property
    def content_type(self) -> str:
        """The media type of the body without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip()

    @property
    def watching(self) -> bool:
        """Whether this is a watch."""
        # Every value but these two is true (apimachinery's conversion of a parameter to a boolean).
        return self.method == "GET" and self.query.get(
            "watch", "false"
        ).lower() not in {"false", "0"}

    @property
    def verb(self) -> str:
        """The RBAC verb of the request."""
        named = bool(self.target and self.target.name)
        if self.method == "DELETE":
            return "delete" if named else "deletecollection"
        if self.method in {"GET", "HEAD"}:
            if self.watching:
                return "watch"
            return "get" if named or self.target is None else "list"
        return _VERBS.get(self.method, self.method.lower())

    @property
    def attributes(self) -> Attributes:
        """What to ask the authorizer."""
        if self.target is None:
            return Attributes(self.verb, path=self.path)
        at = self.target
        name = at.name or self._selected_name()
        namespace = (
            at.name if (at.group, at.plural) == ("", "namespaces") else at.namespace
        )
        return Attributes(
            self.verb, at.group, at.plural, at.subresource, namespace, name
        )

    def _selected_name(self) -> str:
        """The one name that a list, watch or deletion of a collection selects: a rule that names it covers it."""
        if self.verb not in {"list", "watch", "deletecollection"}:
            return ""
        terms = (
            one.partition("=") for one in self.query.get("fieldSelector", "").split(",")
        )
        names = [
            value.removeprefix("=") for key, _, value in terms if key == "metadata.name"
        ]
        return names[0] if len(names) == 1 else ""

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be stored; meaningful only after check_options."""
        return "dryRun" in self.query

    def writer(self, operation: str) -> Writer:
        """Whose fields this write claims: fieldManager, else the first word of the User-Agent."""
        agent = self.headers.get("user-agent", "").partition("/")[0]
        sub = self.target.subresource if self.target else ""
        return Writer(self.query.get("fieldManager") or agent, operation, sub)

    def check_options(self, options: str) -> None:
        """Refuse query options that mean nothing (422)."""
        if self.query.get("dryRun", "All") != "All":
            message = f'Unsupported value: {json.dumps([self.query["dryRun"]])}: supported values: "All"'
            raise options_invalid(options, "dryRun", "FieldValueNotSupported", message)
        manager = self.query.get("fieldManager", "")
        if len(manager.encode()) > 128:
            message = "Too long: may not be more than 128 bytes"
            raise options_invalid(options, "fieldManager", "FieldValueTooLong", message)
        strictness = self.query.get("fieldValidation", "")
        if strictness not in {"", "Ignore", "Strict", "Warn"}:
            message = f'Unsupported value: "{strictness}": supported values: "", "Ignore", "Strict", "Warn"'
            raise options_invalid(
                options, "fieldValidation", "FieldValueNotSupported", message
            )


def target_of(path: str) -> Target | None:
    """Read a resource path; None for every other path (discovery, health, nonsense)."""
    parts = path.split("/")[1:]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _NAMESPACE_PARTS:
        namespace, rest = rest[1], rest[2:]
    if "" in rest or (len(rest) > 3 and rest[2] != "proxy"):
        return None
    name, subresource = (*rest[1:], "", "")[:2]
    return Target(group, version, rest[0], namespace, name, subresource)


@dataclass(frozen=True)
class Answer:
    """A complete answer."""

    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)


def json_answer(
    status: int, body: Any, headers: Mapping[str, str] | None = None
) -> Answer:
    """An answer with a JSON body."""
    return Answer(
        status, json.dumps(body, separators=(",", ":")).encode(), headers=headers or {}
    )


def text_answer(
    status: int, text: str, headers: Mapping[str, str] | None = None
) -> Answer:
    """An answer in plain text."""
    return Answer(status, text.encode(), "text/plain; charset=utf-8", headers or {})


def refused(refusal: Refusal) -> Answer:
    """The answer a refusal makes."""
    return json_answer(refusal.code, refusal.body, refusal.headers)


def page_not_found() -> Answer:
    """What paths outside every known group get."""
    return text_answer(404, "404 page not found\n")


def head_of(kind: Kind) -> bytes:
    """The opening of an object's JSON: its type."""
    return f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}",'.encode()


def whole(kind: Kind, entry: Entry) -> bytes:
    """The JSON of one stored object."""
    return head_of(kind) + entry.body


def object_answer(
    kind: Kind,
    entry: Entry,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An answer that is one stored object."""
    return Answer(status, whole(kind, entry), headers=headers or {})


def partial(obj: Obj) -> dict[str, Any]:
    """An object reduced to its metadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def wants(call: Call, what: str) -> bool:
    """Whether the first representation asked for is this one (``PartialObjectMetadata``, …)."""
    return f"as={what};" in call.headers.get("accept", "").partition(",")[0] + ";"
