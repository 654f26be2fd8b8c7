"""HTTPS requests as they are written, without the connector's manners."""

import copy
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3

APPLY = "application/apply-patch+yaml"


class Raw:
    """One caller of one server."""

    def __init__(self, pool: urllib3.PoolManager, server: str, token: str) -> None:
        self._pool = pool
        self._server = server
        self._token = token
        self._acting: dict[str, str] = {}

    def acting_as(self, user: str, group: str) -> "Raw":
        """The same calls as somebody else, in one group: an administrator may act as anybody."""
        other = copy.copy(self)
        other._acting = {"impersonate-user": user, "impersonate-group": group}
        return other

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Status and body; the body is parsed where it is JSON."""
        headers = {
            "content-type": content_type,
            "user-agent": "contract/1",
            **self._acting,
            **(headers or {}),
        }
        headers |= {"authorization": self._token} if self._token else {}
        url = f"{self._server}{path}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        answer = self._pool.request(
            method, url, body=data, headers=headers, timeout=10.0
        )
        text = answer.data.decode()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def apply(
        self, path: str, body: Any, *, manager: str = "quartermaster", **query: str
    ) -> tuple[int, Any]:
        """A server-side apply with these query options."""
        asked = {**query, **({"fieldManager": manager} if manager else {})}
        return self.send("PATCH", path, body, query=asked, content_type=APPLY)


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for a condition; AssertionError when it does not come true in time."""

    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        pause.wait(0.05)
