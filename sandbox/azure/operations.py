"""Long operations: begun by a call, over on the clock, and asked after until then.

What an operation does at its end is a function by its kind, so that it goes on after a restart.
"""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sandbox.azure.errors import ArmError, no_such_resource
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.state import State

SECONDS = 1.0
RETRY_AFTER = 1
# Who asks after an operation does so in the version in which it was begun, and by the provider's own word for it.
VERSIONS = {
    "Microsoft.Compute": "2026-04-01",
    "Microsoft.ContainerService": "2026-08-01",
    "Microsoft.CognitiveServices": "2025-09-01",
}
WORDS = {
    "Microsoft.Compute": "operations",
    "Microsoft.ContainerService": "operations",
    "Microsoft.CognitiveServices": "operationResults",
}
IN_PROGRESS, SUCCEEDED, FAILED = "InProgress", "Succeeded", "Failed"
Operation = dict[str, Any]
# What is done at the end of an operation on a resource; raises ArmError where that cannot be.
Finish = Callable[[str, Mapping[str, Any]], None]
# What is done when it fails instead.
Fail = Callable[[str, Mapping[str, Any]], None]


class Operations:
    """All operations of a subscription; `seconds` is how long each takes unless a fault says otherwise."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.seconds = SECONDS
        self._kinds: dict[str, tuple[Finish, Fail]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def teach(
        self, kind: str, finish: Finish, fail: Fail = lambda _id, _given: None
    ) -> None:
        """Say what operations of a kind do at their end."""
        self._kinds[kind] = finish, fail

    def begin(self, call: Call, kind: str, resource_id: str, **given: Any) -> Operation:
        """Begin one on a resource; what the call's fault says of it holds."""
        wish = call.fault.operation if call.fault else {}
        now = self._state.clock.now()
        seconds = float(wish.get("seconds", self.seconds))
        name = str(uuid.uuid4())
        operation = {
            "name": name,
            "kind": kind,
            "target": resource_id,
            "given": given,
            "begun": now,
            "due": None if wish.get("hangs") else now + seconds,
            "planned": wish.get("error"),
            "status": IN_PROGRESS,
        }
        self._table[name] = operation
        self._state.touch()
        self._schedule()
        return operation

    def running(self, resource_id: str) -> Operation | None:
        """Return what is going on with a resource or with a part of it."""
        below = f"{resource_id.lower()}/"
        return next(
            (
                one
                for one in self._table.values()
                if one["status"] == IN_PROGRESS
                and f"{one['target'].lower()}/".startswith(below)
            ),
            None,
        )

    def routes(self) -> list[Route]:
        """Where it is asked after them."""
        at = "/subscriptions/{subscription}/providers/"
        return [
            Route(
                "GET",
                f"{at}{provider}/locations/{{location}}/{word}/{{operation}}",
                VERSIONS[provider],
                self.answer,
            )
            for provider, word in WORDS.items()
        ]

    def settle(self) -> None:
        """End those whose time has come, in its order."""
        while due := self._due():
            self._end(due)
        self._schedule()

    def headers(
        self, call: Call, operation: Operation, location: str
    ) -> dict[str, str]:
        """Return where the operation is asked after, by its status or by its result."""
        subscription, provider = (
            call.part("subscription"),
            _provider(operation["target"]),
        )
        at = f"{call.base}/subscriptions/{subscription}/providers/{provider}/locations/{location}"
        address = f"{at}/{WORDS[provider]}/{operation['name']}"
        return {
            "Azure-AsyncOperation": f"{address}?api-version={call.version}",
            "Location": f"{address}?monitor=true&api-version={call.version}",
            "Retry-After": str(self.retry_after),
        }

    @property
    def retry_after(self) -> int:
        """How many seconds a client is told to wait: none where operations are over at once."""
        return min(RETRY_AFTER, int(self.seconds + 0.999))

    def answer(self, call: Call) -> Answer:
        """Answer who asks after one: with its status, or by `monitor` with its result."""
        operation = self._find(call)
        return (
            self._result(call, operation)
            if "monitor" in call.query
            else self._status(operation)
        )

    def _status(self, operation: Operation) -> Answer:
        """What has become of one, which is always 200."""
        body = {
            "name": operation["name"],
            "startTime": _moment(operation["begun"]),
            "status": operation["status"],
        }
        if operation["status"] == IN_PROGRESS:
            return Answer(200, body, {"Retry-After": str(self.retry_after)})
        body["endTime"] = _moment(operation["due"])
        return Answer(
            200,
            body
            | ({"error": operation["error"]} if operation["status"] == FAILED else {}),
        )

    def _result(self, call: Call, operation: Operation) -> Answer:
        """202 until it is over, then its outcome."""
        if operation["status"] == IN_PROGRESS:
            where = f"{call.base}{call.path}?monitor=true&api-version={call.version}"
            return Answer(
                202, None, {"Location": where, "Retry-After": str(self.retry_after)}
            )
        if operation["status"] == FAILED:
            return Answer(409, {"error": operation["error"]})
        resource = self._state.get(operation["target"])
        return Answer(204) if resource is None else Answer(200, resource)

    @property
    def _table(self) -> dict[str, Operation]:
        return self._state.table("operations")

    def _find(self, call: Call) -> Operation:
        operation = self._table.get(call.part("operation"))
        if operation is None:
            raise no_such_resource("operations", call.part("operation"), "")
        return operation

    def _due(self) -> Operation | None:
        now = self._state.clock.now()
        rows = [
            one
            for one in self._table.values()
            if one["status"] == IN_PROGRESS
            and one["due"] is not None
            and one["due"] <= now
        ]
        return min(rows, key=lambda one: float(one["due"]), default=None)

    def _end(self, operation: Operation) -> None:
        finish, fail = self._kinds[operation["kind"]]
        operation["status"] = SUCCEEDED
        error = operation["planned"]
        try:
            if error is None:
                finish(operation["target"], operation["given"])
        except ArmError as refusal:
            error = refusal.body()["error"]
        if error is not None:
            operation["status"], operation["error"] = FAILED, error
            fail(operation["target"], operation["given"])
        self._state.touch()

    def _schedule(self) -> None:
        """Come again when the next one is over, also when nobody asks after it."""
        now = self._state.clock.now()
        waits = [
            max(0.0, one["due"] - now)
            for one in self._table.values()
            if one["status"] == IN_PROGRESS and one["due"] is not None
        ]
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(min(waits), self.settle) if waits else None


def _provider(resource_id: str) -> str:
    return resource_id.rpartition("/providers/")[2].partition("/")[0]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
