"""Faults on demand: how a test makes the API server slow, busy or dead for the next calls."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.kubernetes.status import Refusal, bad_request

KNOWN = frozenset(
    {"match", "status", "body", "retry_after", "hang", "drop_after", "times"}
)


@dataclass
class Fault:
    """What happens to the next ``times`` requests that match.

    ``status`` answers at once (429 as plain text with Retry-After, others as a Status or as ``body``);
    ``hang`` holds the request that many seconds before handling it; ``drop_after`` handles the request,
    sends that many bytes of the answer and cuts the connection: the write happened, the caller cannot know.
    """

    method: str
    path: re.Pattern[str]
    times: int
    status: int = 0
    body: str = ""
    retry_after: int | None = None
    hang: float = 0.0
    drop_after: int | None = None

    def matches(self, method: str, path: str) -> bool:
        """Whether this fault applies to a request now."""
        return (
            self.times > 0
            and self.method in {"", method}
            and bool(self.path.search(path))
        )


class Faults:
    """The faults set so far; they are used up in the order in which they were set."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, spec: Mapping[str, Any]) -> None:
        """Set one fault from its JSON; raises 400 for one that says nothing or something unknown."""
        unknown = sorted(set(spec) - KNOWN)
        if unknown or not {"status", "hang", "drop_after"} & set(spec):
            raise bad_request(
                f"a fault needs status, hang or drop_after; unknown: {', '.join(unknown) or 'none'}"
            )
        match = spec.get("match") or {}
        self._faults.append(
            Fault(
                method=str(match.get("method", "")).upper(),
                path=re.compile(match.get("path_regex", "")),
                times=int(spec.get("times", 1)),
                status=int(spec.get("status", 0)),
                body=str(spec.get("body", "")),
                retry_after=spec.get("retry_after"),
                hang=float(spec.get("hang", 0)),
                drop_after=spec.get("drop_after"),
            )
        )

    def clear(self) -> None:
        """Forget all faults."""
        self._faults.clear()

    @property
    def waiting(self) -> bool:
        """Whether a fault is left for some request."""
        return any(fault.times > 0 for fault in self._faults)

    def take(self, method: str, path: str) -> Fault | None:
        """The fault for this request, used up once; None when there is none."""
        for fault in self._faults:
            if fault.matches(method, path):
                fault.times -= 1
                return fault
        return None


def refusal_of(fault: Fault) -> Refusal:
    """The Status a fault answers with when it has no body of its own."""
    reasons = {
        401: "Unauthorized",
        403: "Forbidden",
        409: "Conflict",
        500: "InternalError",
        503: "ServiceUnavailable",
        504: "Timeout",
    }
    headers = (
        {} if fault.retry_after is None else {"retry-after": str(fault.retry_after)}
    )
    return Refusal(
        fault.status,
        "injected fault",
        reasons.get(fault.status, ""),
        {},
        headers=headers,
    )
