"""Logs of pods: whose container, what of it, and what comes while somebody follows."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sandbox.kubernetes import log_options
from sandbox.kubernetes.calls import Answer, Call, Target
from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.controllers_pods import POD
from sandbox.kubernetes.log_lines import Lines, lines_of
from sandbox.kubernetes.log_options import LogOptions
from sandbox.kubernetes.spans import Spans, started_at
from sandbox.kubernetes.status import bad_request, not_found
from sandbox.kubernetes.store import Change, Obj, Store

TEXT_PLAIN = "text/plain"
# A node agent keeps a log up to a size; what is older is rotated away.
KEPT_LINES = 50_000
# What is written faster than this comes in bundles, so that many may follow one log.
LEAST_WAIT = 0.1
# What the kubelet says of a container that waits; any other reason is given as it is.
_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}
Wait = Callable[[asyncio.Event, float], Awaitable[None]]


async def wait_for_news(news: asyncio.Event, seconds: float) -> None:
    """Until there is news or the time is up."""
    try:
        await asyncio.wait_for(news.wait(), seconds)
    except TimeoutError:
        return


class Logs:
    """Reads the logs of the pods of one store; `wait` may be replaced where time is not the machine's."""

    def __init__(self, store: Store, spans: Spans) -> None:
        self._store = store
        self._spans = spans
        self.wait: Wait = wait_for_news

    def read(self, call: Call, at: Target) -> "Answer | LogStream":
        """The log of a pod; raises Refusal for a pod that is not there or a container that has not started."""
        options = log_options.read(call.query, at.name)
        pod = self._store.get(POD, at.namespace, at.name)
        if pod is None:
            raise not_found(POD, at.name)
        container = _container(pod, options.container)
        if not pod["spec"].get("nodeName"):
            return Answer(204, b"", "")
        _check_started(pod, container, previous=options.previous)
        lines = lines_of(pod, container)
        stream = LogStream(self, self._store, pod, lines, options)
        return (
            stream
            if options.follow
            else Answer(200, b"".join(stream.now()), TEXT_PLAIN)
        )

    def seconds(self, pod: Obj) -> float:
        """How long the containers of a pod have run."""
        return self._spans.seconds(pod)


@dataclass
class LogStream:
    """One reading of a log; iterate ``now()`` for what there is, ``chunks()`` to follow it to its end."""

    logs: Logs
    store: Store
    pod: Obj
    lines: Lines
    options: LogOptions

    def __post_init__(self) -> None:
        self._left = self.options.limit
        self._next = self._first()

    def now(self) -> Iterator[bytes]:
        """The lines that there are and were not given yet, up to the limit."""
        count = self.lines.count(self.logs.seconds(self.pod))
        for number in range(self._next, count):
            yield self._cut(self._encoded(number))
        self._next = max(self._next, count)

    async def chunks(self) -> AsyncIterator[bytes]:
        """What there is, then what comes, until the container has ended or the pod is gone."""
        news = asyncio.Event()
        metadata = self.pod["metadata"]
        key = metadata["namespace"], metadata["name"]

        def hear(change: Change) -> None:
            if change.key == key and change.resource == ("", "pods"):
                news.set()

        stop = self.store.listen(hear)
        try:
            while True:
                ended = self._refresh()
                if chunk := b"".join(self.now()):
                    yield chunk
                if ended or self._left == 0:
                    return
                news.clear()
                await self.logs.wait(news, self._until_next())
        finally:
            stop()

    def _refresh(self) -> bool:
        """See how the pod is now; True when nothing can come any more."""
        metadata = self.pod["metadata"]
        found = self.store.get(POD, metadata["namespace"], metadata["name"])
        if found is None or found["metadata"]["uid"] != metadata["uid"]:
            return True
        self.pod = found
        return "terminated" in _state(found, self.lines.container)

    def _until_next(self) -> float:
        passed = self.logs.seconds(self.pod)
        if passed < self.lines.after:
            return max(LEAST_WAIT, self.lines.after - passed)
        return max(LEAST_WAIT, self.lines.every - passed % self.lines.every)

    def _first(self) -> int:
        """The number of the first line that is asked for."""
        count = self.lines.count(self.logs.seconds(self.pod))
        first = max(0, count - KEPT_LINES)
        if self.options.tail is not None:
            first = max(first, count - self.options.tail)
        since = self.options.since_time
        if self.options.since_seconds is not None:
            passed = self.logs.seconds(self.pod) - self.options.since_seconds
            since = self._began() + timedelta(seconds=passed)
        while since is not None and first < count and self._time_of(first) < since:
            first += 1
        return first

    def _began(self) -> datetime:
        return started_at(self.pod) or datetime.now(UTC)

    def _time_of(self, number: int) -> datetime:
        passed = self.lines.after + number * self.lines.every
        return self._began() + timedelta(seconds=passed)

    def _encoded(self, number: int) -> bytes:
        stamp = (
            f"{self._time_of(number):%Y-%m-%dT%H:%M:%S.%f}000Z "
            if self.options.timestamps
            else ""
        )
        return f"{stamp}{self.lines.line(number)}\n".encode()

    def _cut(self, line: bytes) -> bytes:
        if self._left is None:
            return line
        line = line[: self._left]
        self._left -= len(line)
        return line


def _container(pod: Obj, name: str) -> str:
    """The container meant; raises 400 where that is not clear, or there is none of that name."""
    names = [str(one["name"]) for one in items(pod["spec"], "containers")]
    first = [str(one["name"]) for one in items(pod["spec"], "initContainers")]
    if name:
        if name not in names + first:
            raise bad_request(
                f"container {name} is not valid for pod {pod['metadata']['name']}"
            )
        return name
    if len(names) == 1:
        return names[0]
    more = f" or one of the init containers: [{' '.join(first)}]" if first else ""
    choice = f"[{' '.join(names)}]{more}"
    whose = pod["metadata"]["name"]
    raise bad_request(
        f"a container name must be specified for pod {whose}, choose one of: {choice}"
    )


def _state(pod: Obj, container: str) -> dict[str, Any]:
    listed = items(part(dict(pod), "status"), "containerStatuses")
    return next((part(one, "state") for one in listed if one["name"] == container), {})


def _check_started(pod: Obj, container: str, *, previous: bool) -> None:
    """Refuse the log of a container that does not run and never did, and of one before it (400)."""
    where = f'"{container}" in pod "{pod["metadata"]["name"]}"'
    if previous:
        raise bad_request(f"previous terminated container {where} not found")
    state = _state(pod, container)
    if "running" in state or "terminated" in state:
        return
    reason = str(part(state, "waiting").get("reason") or "ContainerCreating")
    raise bad_request(
        f"container {where} is waiting to start: {_WAITING.get(reason, reason)}"
    )
