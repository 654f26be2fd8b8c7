"""What a Kubernetes API server means by an answer of 400 or more."""

import json
from collections.abc import Mapping
from typing import Any

from connectors.errors import ConnectorError, PermanentError, TemporaryError

# 429 is not among them: it is for the next pass, when the server said to come back.
MOMENTARY = frozenset({500, 502, 503, 504})
_BODY_LIMIT = 500
_FORBIDDEN = (
    ("exceeded quota", "quota"),
    ("failed quota", "quota"),
    ("attempting to grant RBAC permissions not currently held", "escalation"),
    ("denied the request", "denied"),
)
_CODES = {
    400: "bad_request",
    401: "unauthorized",
    404: "not_found",
    410: "expired",
    422: "invalid",
}
_MALFORMED = (
    "field not declared in schema",
    "failed to convert",
    "failed to create typed patch object",
)


def failure(status: int, text: str, retry_after: str | None = None) -> ConnectorError:
    """What an answer of 400 or more means, by (status, reason, message); the status alone would mislead.

    Codes: unauthorized, forbidden, quota, escalation, denied, not_found, conflict, already_exists, invalid,
    bad_request, expired; a 500 is temporary unless it complains about the object itself (code="invalid").
    """
    said = _status_of(text)
    message = f"{status} {said.get('reason') or ''}: {said.get('message') or text}"[
        :_BODY_LIMIT
    ]
    wait = _seconds(retry_after, said)
    if _is_temporary(status, message):
        return TemporaryError(message, retry_after=wait)
    return PermanentError(message, code=_code(status, str(said.get("reason")), message))


def is_momentary(status: int, error: ConnectorError) -> bool:
    """Whether the server just failed: it neither complains of what was sent nor says when to come back."""
    return (
        status in MOMENTARY
        and isinstance(error, TemporaryError)
        and error.retry_after is None
    )


def _status_of(text: str) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _seconds(header: str | None, said: Mapping[str, Any]) -> float | None:
    value = header or (said.get("details") or {}).get("retryAfterSeconds")
    try:
        return float(value) if value else None
    except ValueError:
        return None


def _is_temporary(status: int, message: str) -> bool:
    if status == 500:
        return not any(text in message for text in _MALFORMED)
    if status in {408, 429} or status > 500:
        return True
    return (status == 403 and "being terminated" in message) or (
        status == 409 and "being deleted" in message
    )


def _code(status: int, reason: str, message: str) -> str:
    if status == 403:
        return next((code for text, code in _FORBIDDEN if text in message), "forbidden")
    if status == 409:
        return "already_exists" if reason == "AlreadyExists" else "conflict"
    return _CODES.get(status, "invalid" if status == 500 else "bad_request")
