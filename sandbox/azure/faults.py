"""Faults on demand: what is to go wrong with the next calls of a method and path.

`POST /sandbox/faults` takes `{match: {method, path_regex}, times}` and what happens:

* `status`, with `code`, `message`, `retry_after` or a whole `body`: that is answered, and nothing is done;
* `hang`: the call is held for so many seconds before;
* `drop`: the call is done, and the connection closed without an answer;
* `cut`: the call is done, and the connection closed after so many bytes of the body;
* `truncate`: the call is done, and so many bytes of the body are sent as if they were all;
* `operation`: what becomes of the long operation that the call begins: `{error: {code, message}}` fails it at its end,
  `{hangs: true}` never ends it, `{seconds: n}` makes it last.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.azure.errors import invalid

KNOWN = frozenset(
    {
        *("match", "times", "status", "code", "message", "retry_after", "body"),
        *("hang", "drop", "cut", "truncate", "operation"),
    }
)
WHAT = frozenset({"status", "hang", "drop", "cut", "truncate", "operation"})
CODES = {
    401: "InvalidAuthenticationToken",
    403: "AuthorizationFailed",
    404: "ResourceNotFound",
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalServerError",
    502: "BadGateway",
    503: "ServerBusy",
    504: "GatewayTimeout",
}


@dataclass
class Fault:
    """One fault and for how many calls it is still good."""

    method: str
    path: re.Pattern[str]
    times: int
    spec: Mapping[str, Any] = field(default_factory=dict)

    def matches(self, method: str, path: str) -> bool:
        """Whether it applies to a call now."""
        return (
            self.times > 0
            and self.method in {"", method}
            and bool(self.path.search(path))
        )

    @property
    def status(self) -> int:
        return int(self.spec.get("status", 0))

    @property
    def error(self) -> dict[str, Any]:
        """The body of a refusal that has none of its own."""
        code = str(self.spec.get("code") or CODES.get(self.status, "UnknownError"))
        return {
            "error": {
                "code": code,
                "message": str(self.spec.get("message", "Injected fault.")),
            }
        }

    @property
    def headers(self) -> dict[str, str]:
        wait = self.spec.get("retry_after")
        return {} if wait is None else {"Retry-After": str(wait)}

    @property
    def operation(self) -> Mapping[str, Any]:
        """What becomes of the operation that is begun."""
        found = self.spec.get("operation") or {}
        return found if isinstance(found, dict) else {}


class Faults:
    """The faults set so far; they are used up in the order in which they were set."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, spec: Mapping[str, Any]) -> None:
        """Set one; raise ArmError 400 for one that says nothing or something unknown."""
        match = spec.get("match") or {}
        try:
            if set(spec) - KNOWN or not WHAT & set(spec):
                raise ValueError("a fault needs one of " + ", ".join(sorted(WHAT)))
            path = re.compile(str(match.get("path_regex", "")), re.IGNORECASE)
            times = int(spec.get("times", 1))
        except (ValueError, TypeError, AttributeError, re.error) as error:
            raise invalid(f"Not a fault: {error}", "BadRequest") from error
        self._faults.append(
            Fault(str(match.get("method", "")).upper(), path, times, dict(spec))
        )

    def clear(self) -> None:
        """Forget all of them."""
        self._faults.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Return the fault for this call, used up once; None when there is none."""
        for fault in self._faults:
            if fault.matches(method, path):
                fault.times -= 1
                return fault
        return None
