"""Playing a recorded exchange against a fresh sandbox cluster, step by step."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sandbox.kubernetes import Cluster, Identity
from tests.recordings.calling import Reply, call
from tests.recordings.comparing import comparable, difference

HERE = Path(__file__).parent
MEMBERS = "7c9a2b1e-4d35-4f0a-9a6e-1b2c3d4e5f60"
CALLERS = {
    "admin": Identity("admin", ("system:masters",)),
    "quartermaster": Identity("quartermaster"),
    "alice": Identity("alice@example.com", (MEMBERS,), "alice-uid"),
    "bob": Identity(
        "bob@example.com", ("0a1b2c3d-5e6f-4a7b-8c9d-e0f1a2b3c4d5",), "bob-uid"
    ),
}
Step = Mapping[str, Any]
_SHORT_WATCH = "0.2"


class Player:
    """One cluster and the steps played on it; versions and page tokens of the recording are translated."""

    def __init__(
        self, cluster: Cluster | None = None, *, agent: str = "python-urllib3/2.6.0"
    ) -> None:
        self.cluster = cluster or Cluster(
            "recorded", tokens=CALLERS, ca="-----BEGIN CERTIFICATE-----"
        )
        self.agent = agent
        self._known: dict[str, str] = {}

    def play(self, step: Step) -> list[str]:
        """Send one recorded request; the lines say where the answer differs from the recorded one."""
        request, want = step["request"], step["response"]
        answer = self.send(
            request["as"],
            request["method"],
            request["path"],
            self._query(request["query"]),
            request["headers"],
            request["body"],
        )
        got = _body(answer.text, watching=request["query"].get("watch") == "true")
        self._learn(want["body"], got)
        lines = difference(comparable(want["body"]), comparable(got))
        if answer.status != want["status"]:
            lines.insert(0, f"status {answer.status}, wanted {want['status']}")
        warning = want["headers"].get("warning")
        if warning != answer.headers.get("warning"):
            lines.append(f"warning {answer.headers.get('warning')}, wanted {warning}")
        return lines

    def send(
        self,
        who: str,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> Reply:
        """Send a request as one of the recorded callers."""
        sent = {
            "user-agent": self.agent,
            "accept": "*/*",
            "host": "sandbox",
            **(headers or {}),
        }
        if who != "anonymous":
            sent["authorization"] = f"Bearer {who}"
        content = (
            b""
            if body is None
            else (body if isinstance(body, str) else json.dumps(body)).encode()
        )
        return call(self.cluster.app, method, path, query or {}, sent, content)

    def admin(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Any:
        """A request of the recorder that was not written down; it must succeed."""
        query = (
            {"fieldManager": "quartermaster"}
            if content_type.startswith("application/apply")
            else {}
        )
        answer = self.send(
            "admin", method, path, query, {"content-type": content_type}, body
        )
        if answer.status >= 400:
            raise AssertionError(f"{method} {path}: {answer.text}")
        return answer.json()

    def settle(self) -> None:
        """Let the controllers that take their time finish."""
        self.cluster.controllers.terminate()

    def translate(self, recorded: str, own: str) -> None:
        """Let a version or page token of the recording stand for one of this cluster."""
        self._known[recorded] = own

    def _query(self, query: Mapping[str, str]) -> dict[str, str]:
        translated = {
            key: self._known.get(value, value) for key, value in query.items()
        }
        if query.get("watch") == "true":
            translated["timeoutSeconds"] = _SHORT_WATCH
        return translated

    def _learn(self, want: Any, got: Any) -> None:
        for key in ("resourceVersion", "continue"):
            said, found = _metadata(want).get(key), _metadata(got).get(key)
            if said and found:
                self._known[said] = found


def _metadata(body: Any) -> Mapping[str, str]:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _body(text: str, *, watching: bool) -> Any:
    if watching and text.startswith('{"type"'):
        return [json.loads(line) for line in text.splitlines()]
    if watching and not text:
        return []
    try:
        return json.loads(text)
    except ValueError:
        return text


def steps_of(name: str) -> list[Step]:
    """The steps of one recording."""
    steps: list[Step] = json.loads((HERE / f"{name}.json").read_text())
    return steps


Hook = Callable[[Player], None]


def namespace(player: Player, name: str) -> None:
    """A namespace made before the recording began."""
    labels = {"kueue.x-k8s.io/managed": "true"}
    player.admin(
        "POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}
    )
