"""Failures as the API server words them: a Status object with its HTTP code."""

from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.kubernetes.kinds import Kind


class Refusal(Exception):
    """An answer that is a Status; raised anywhere below the HTTP layer and sent as it is."""

    def __init__(
        self,
        code: int,
        message: str,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.headers = dict(headers or {})
        self.body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(metadata or {}),
            "status": "Failure",
            "message": message,
        }
        if reason:
            self.body["reason"] = reason
        if details is not None:
            self.body["details"] = dict(details)
        self.body["code"] = code


def details_of(kind: Kind, name: str = "") -> dict[str, Any]:
    """The details block naming an object by its plural, as most refusals carry it."""
    details: dict[str, Any] = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    return {**details, "kind": kind.plural}


def not_found(kind: Kind, name: str) -> Refusal:
    """404 for one named object."""
    return Refusal(
        404,
        f'{kind.qualified_plural} "{name}" not found',
        "NotFound",
        details_of(kind, name),
    )


def already_exists(kind: Kind, name: str, *, deleting: bool = False) -> Refusal:
    """409 for a POST of a name that is taken, worded otherwise while its holder is being deleted."""
    prefix = "object is being deleted: " if deleting else ""
    message = f'{prefix}{kind.qualified_plural} "{name}" already exists'
    return Refusal(409, message, "AlreadyExists", details_of(kind, name))


def conflict(kind: Kind, name: str, text: str) -> Refusal:
    """409 for a write that lost a race."""
    message = (
        f'Operation cannot be fulfilled on {kind.qualified_plural} "{name}": {text}'
    )
    return Refusal(409, message, "Conflict", details_of(kind, name))


def modified(kind: Kind, name: str) -> Refusal:
    """409 for a stale resourceVersion."""
    text = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, text)


def forbidden(
    kind: Kind, name: str, text: str, causes: Sequence[Mapping[str, str]] = ()
) -> Refusal:
    """403 on one object (or on the kind, when name is empty)."""
    subject = f'{kind.qualified_plural} "{name}"' if name else kind.qualified_plural
    details = details_of(kind, name)
    if causes:
        details["causes"] = [dict(cause) for cause in causes]
    return Refusal(403, f"{subject} is forbidden: {text}", "Forbidden", details)


def invalid(kind: Kind, name: str, causes: Sequence[Mapping[str, str]]) -> Refusal:
    """422 with one cause per field; causes are {reason, message, field} and repeated ones are said once."""
    said = list(
        dict.fromkeys(f"{cause['field']}: {cause['message']}" for cause in causes)
    )
    text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    details: dict[str, Any] = {"name": name}
    if kind.group:
        details["group"] = kind.group
    details |= {"kind": kind.kind, "causes": [dict(cause) for cause in causes]}
    return Refusal(
        422, f'{kind.qualified_kind} "{name}" is invalid: {text}', "Invalid", details
    )


def bad_request(message: str) -> Refusal:
    """400 without details."""
    return Refusal(400, message, "BadRequest")


def options_invalid(options: str, field: str, reason: str, message: str) -> Refusal:
    """422 about a query option (PatchOptions, DeleteOptions) instead of the object."""
    details = {
        "group": "meta.k8s.io",
        "kind": options,
        "causes": [{"reason": reason, "message": message, "field": field}],
    }
    return Refusal(
        422,
        f'{options}.meta.k8s.io "" is invalid: {field}: {message}',
        "Invalid",
        details,
    )


def no_such_resource() -> Refusal:
    """404 for a path that names no resource of a builtin group."""
    return Refusal(
        404, "the server could not find the requested resource", "NotFound", {}
    )


def method_not_allowed() -> Refusal:
    """405."""
    text = "the server does not allow this method on the requested resource"
    return Refusal(405, text, "MethodNotAllowed", {})


def unauthorized() -> Refusal:
    """401 for a token nobody knows."""
    return Refusal(401, "Unauthorized", "Unauthorized")
