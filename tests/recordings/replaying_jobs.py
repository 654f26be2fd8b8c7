"""Playing recordings of Jobs, whose objects get names and uids that nobody can know beforehand."""

import asyncio
import json
import re
from typing import Any

from sandbox.kubernetes import Cluster
from tests.recordings.comparing import comparable, difference
from tests.recordings.replaying import Player, Step, namespace, steps_of
from tests.recordings.surroundings import set_nodes

_SUFFIX = re.compile(
    r"\b(job-[a-z0-9-]+?|[a-z0-9-]+?)-([0-9a-f]{5}|[bcdfghjklmnpqrstvwxz2456789]{5})\b"
)
# What the recorded node agent wrote of a pod is its own; of events only what they say is compared.
_OF_EVENTS = ("involvedObject", "type", "reason", "message")
_WAITED = re.compile(r"wait time since (queued|reservation) was \d+s")
_LINE_TIME = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ", re.MULTILINE)
_WHERE = re.compile(r"(Successfully assigned \S+ to )\S+")
_EXECUTED = "accumulatedPastExecutionTimeSeconds"


class JobPlayer(Player):
    """A cluster whose time stands still unless it is told to pass; without one of its own, with the recorded queues."""

    def __init__(self, cluster: Cluster | None = None, **more: str) -> None:
        super().__init__(cluster, **more)
        self.time = 1_000_000_000.0
        self.cluster.controllers.now = lambda: self.time
        self.cluster.logs.wait = self._passing
        self._ours: dict[str, str] = {}
        if cluster is None:
            self._fill()

    def _fill(self) -> None:
        """The nodes, namespaces and queues of the first recordings."""
        set_nodes(self)
        for name in ("qm-t-alpha", "qm-t-beta"):
            namespace(self, name)
        for step in steps_of("09-kueue-objects"):
            if step["request"]["method"] != "GET":
                self.play(step)

    def pass_time(self, seconds: float) -> None:
        """Let pods start and end; in small steps, since what starts late ends later."""
        for _ in range(20):
            self.time += seconds / 20
            self.cluster.controllers.settle()

    async def _passing(self, _news: asyncio.Event, seconds: float) -> None:
        self.pass_time(seconds)

    def play_job(self, step: Step) -> list[str]:
        """Send one recorded request with our own names in it; the lines say where the answers differ."""
        request, want = step["request"], step["response"]
        query = {
            key: self._translated(value) for key, value in request["query"].items()
        }
        answer = self.send(
            request["as"],
            request["method"],
            self._translated(request["path"]),
            query,
            request["headers"],
            self._translated_body(request["body"]),
        )
        got = json.loads(answer.text) if answer.text[:1] in {"{", "["} else answer.text
        self._learn_names(want["body"], got)
        lines = difference(_bare(want["body"]), _bare(got))
        warned = want["headers"].get("warning")
        if warned != answer.headers.get("warning"):
            lines.append(f"warning {answer.headers.get('warning')}, wanted {warned}")
        return (
            lines
            if answer.status == want["status"]
            else [f"status {answer.status}, {want['status']}", *lines]
        )

    def _translated(self, text: str) -> str:
        for recorded, own in self._ours.items():
            text = text.replace(recorded, own)
        return text

    def _translated_body(self, body: Any) -> Any:
        if isinstance(body, dict):
            return {key: self._translated_body(value) for key, value in body.items()}
        if isinstance(body, list):
            return [self._translated_body(one) for one in body]
        return self._translated(body) if isinstance(body, str) else body

    def _learn_names(self, want: Any, got: Any) -> None:
        for recorded, own in zip(_objects(want), _objects(got), strict=False):
            for field in ("uid", "name"):
                before, now = recorded.get(field), own.get(field)
                if (
                    before
                    and now
                    and before != now
                    and _SUFFIX.sub(r"\1", before) == _SUFFIX.sub(r"\1", now)
                ):
                    self._ours[before] = now
            if recorded.get("uid") and own.get("uid"):
                self._ours[recorded["uid"]] = own["uid"]


def _objects(body: Any) -> list[dict[str, Any]]:
    if not isinstance(body, dict):
        return []
    return [
        one["metadata"]
        for one in body.get("items") or [body]
        if isinstance(one.get("metadata"), dict)
    ]


def _bare(body: Any) -> Any:
    if isinstance(body, dict) and str(body.get("kind")) == "EventList":
        return sorted({_event(one) for one in body["items"]})
    if isinstance(body, dict) and "items" in body:
        items = sorted(
            (_object(one) for one in body["items"]),
            key=lambda one: str(one["metadata"]["name"]),
        )
        return {**body, "metadata": {}, "items": items}
    if isinstance(body, str):
        return _LINE_TIME.sub("<time> ", body)
    return _object(body) if isinstance(body, dict) else body


def _event(event: dict[str, Any]) -> str:
    if "involvedObject" not in event:
        return str(event.get("note"))
    message = _WAITED.sub(r"wait time since \1", str(comparable(event["message"])))
    message = _WHERE.sub(r"\1<node>", message)
    return f"{event['involvedObject']['kind']} {event['type']} {event['reason']}: {_named(message)}"


def _named(text: str) -> str:
    return _SUFFIX.sub(r"\1-<random>", text)


def _object(obj: dict[str, Any]) -> Any:
    obj = comparable(obj)
    metadata = {
        k: v
        for k, v in (obj.get("metadata") or {}).items()
        if k not in {"managedFields", "generation"}
    }
    obj = {**obj, "metadata": metadata}
    status = obj.get("status")
    if obj.get("kind") == "Workload" and isinstance(status, dict):
        obj["status"] = {
            key: value for key, value in status.items() if key != _EXECUTED
        }
    if obj.get("kind") == "ClusterQueue" and isinstance(status, dict):
        said = [
            {k: v for k, v in one.items() if k != "observedGeneration"}
            for one in status.get("conditions") or ()
        ]
        obj["status"] = {**status, "conditions": said}
    if "containers" in (obj.get("spec") or {}):
        obj["spec"] = {**obj["spec"], "nodeName": "<node>"}
        obj["status"] = {"phase": obj["status"].get("phase")}
    return _masked(obj)


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _masked(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(one) for one in value]
    return _named(value) if isinstance(value, str) and _SUFFIX.search(value) else value
