"""Asking a web server on loopback for a page and taking the time, the same way for portal and peer."""

import http.client
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

SECONDS = 120


class WrongAnswer(Exception):
    """A page was not the one that was to be measured."""


@dataclass(frozen=True)
class Page:
    """A page of a server: where it is, as whom it is asked for, and what it must say to count."""

    port: int
    path: str
    headers: Mapping[str, str]
    is_right: Callable[[str], bool]

    def seconds(self) -> float:
        """How long one answer took, from connecting to its last byte; raises WrongAnswer for another page."""
        began = time.perf_counter()
        status, body = self._ask()
        took = time.perf_counter() - began
        self._check(status, body)
        return took

    def median(self, calls: int) -> float:
        """The middle of that many answers, one after another."""
        return statistics.median(self.seconds() for _ in range(calls))

    def text(self) -> str:
        """What it says."""
        return self._ask()[1]

    def read(self, connection: http.client.HTTPConnection) -> None:
        """One answer on a connection that stays open; raises WrongAnswer for another page."""
        self._check(*self._get(connection))

    def _ask(self) -> tuple[int, str]:
        # A connection for each call: one that stays open would belong to one of the server's processes.
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            return self._get(connection)
        finally:
            connection.close()

    def _get(self, connection: http.client.HTTPConnection) -> tuple[int, str]:
        connection.request("GET", self.path, headers=dict(self.headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def _check(self, status: int, body: str) -> None:
        if status != 200 or not self.is_right(body):
            raise WrongAnswer(
                f"{self.path} answered {status} with another page: {body[:200]!r}"
            )


def path_of(url: str) -> str:
    """The path and query of an address."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
