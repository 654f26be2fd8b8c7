"""Pull requests over GitHub's REST API: opened, found, looked at and withdrawn; merging is for people."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import urllib3

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.git_address import Remote
from connectors.patience import seconds, seconds_until
from connectors.pinned import pool, within

DEADLINE_SECONDS = 30.0
LARGEST_ANSWER = 1024 * 1024
VERSION = "2022-11-28"
WITHDRAWN = "No longer wanted: "
# Each of a list carries two whole repositories and whatever people wrote.
LARGEST_LIST = 8 * 1024 * 1024
PAGE_SIZE, MAX_PAGES = 50, 4
LONGEST_TITLE = 256
# https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
PAUSE_SECONDS = 60.0
TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class Pull:
    """A pull request: `state` is open, merged or closed; `head` is the commit that `branch` would bring in."""

    number: int
    state: str
    head: str
    branch: str
    title: str

    @property
    def is_withdrawn(self) -> bool:
        """Whether it was closed by `GitHub.withdraw`, and not by people who decided against it."""
        return self.state == "closed" and self.title.startswith(WITHDRAWN)

    @classmethod
    def of(cls, told: dict[str, Any]) -> "Pull":
        """What the API says of one."""
        state = (
            "merged"
            if told.get("merged_at") or told.get("merged")
            else str(told["state"])
        )
        head = told["head"]
        return cls(
            int(told["number"]),
            state,
            str(head["sha"]),
            str(head["ref"]),
            str(told["title"]),
        )


@dataclass(frozen=True)
class GitHub:
    """The pull requests of one repository; its https address says where the API is."""

    remote: Remote

    def newest(self, *, head: str, base: str) -> Pull | None:
        """The newest pull request from one branch to another, open or not. Raises TemporaryError or PermanentError."""
        found = self._list(
            head, base=base, state="all", sort="created", direction="desc"
        )
        return found[0] if found else None

    def waiting(self, *, head: str) -> list[Pull]:
        """The open pull requests of a branch, to whichever other. Raises TemporaryError or PermanentError."""
        return [pull for pull in self._list(head, state="open") if pull.state == "open"]

    def open_to(self, *, base: str) -> list[Pull]:
        """The newest open pull requests from this repository's own branches to one branch, at most 200.

        Raises TemporaryError or PermanentError.
        """
        found: list[dict[str, Any]] = []
        for page in range(1, MAX_PAGES + 1):
            asked = {"base": base, "state": "open", "per_page": f"{PAGE_SIZE}"}
            listed = self._pulls(asked | {"page": f"{page}"}, largest=LARGEST_LIST)
            found += listed
            if len(listed) < PAGE_SIZE:
                break
        # A fork may have a branch of the same name.
        owner = self._owner().lower()
        return [
            Pull.of(told)
            for told in found
            if str(told["head"]["label"]).lower().startswith(f"{owner}:")
        ]

    def open(self, *, head: str, base: str, title: str, body: str) -> Pull:
        """Open a pull request, or return the one that is open already. Raises TemporaryError or PermanentError."""
        asked = {"head": head, "base": base, "title": title, "body": body}
        try:
            return Pull.of(self._call("POST", f"/repos/{self._name()}/pulls", asked))
        except PermanentError as error:
            found = (
                self.newest(head=head, base=base) if error.code == "http_422" else None
            )
            if found is None or found.state != "open":
                raise
            return found

    def withdraw(self, pull: Pull, *, why: str) -> None:
        """Close an open pull request, and say why below it. Raises TemporaryError or PermanentError."""
        title = (WITHDRAWN + pull.title.removeprefix(WITHDRAWN))[:LONGEST_TITLE]
        self._call(
            "PATCH",
            f"/repos/{self._name()}/pulls/{pull.number}",
            {"state": "closed", "title": title},
        )
        self._call(
            "POST",
            f"/repos/{self._name()}/issues/{pull.number}/comments",
            {"body": why},
        )

    def _list(self, head: str, **asked: str) -> list[Pull]:
        """Those of one branch, and of no other whatever the server understood."""
        found = self._pulls({"head": f"{self._owner()}:{head}", **asked})
        return [pull for pull in map(Pull.of, found) if pull.branch == head]

    def _pulls(
        self, asked: Mapping[str, str], *, largest: int = LARGEST_ANSWER
    ) -> list[dict[str, Any]]:
        path = f"/repos/{self._name()}/pulls?{urlencode(asked)}"
        found = self._call("GET", path, None, largest=largest)
        if not isinstance(found, list):
            raise TemporaryError(
                f"{self.remote.place().host} gave an answer that is no list."
            )
        return found

    def _owner(self) -> str:
        return self._name().partition("/")[0]

    def _name(self) -> str:
        parts = self.remote.place().path.strip("/").removesuffix(".git").split("/")
        if len(parts) != 2:
            raise PermanentError(
                "Pull requests need an address like https://host/owner/name.",
                code="bad_address",
            )
        return "/".join(parts)

    def _token(self) -> str:
        """What opens the API; what could not stand in a header is refused here, where nobody puts it into words."""
        token = self.remote.secret.rpartition(":")[2]
        if not TOKEN.fullmatch(token):
            raise PermanentError(
                "The credentials hold no token, which is one line of plain characters.",
                code="no_token",
            )
        return token

    def _call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        *,
        largest: int = LARGEST_ANSWER,
    ) -> Any:
        place = self.remote.place()
        base = (
            "https://api.github.com"
            if place.host == "github.com"
            else f"{place.base}/api/v3"
        )
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": VERSION,
            "User-Agent": "Quartermaster",
            "Authorization": f"Bearer {self._token()}",
            "Content-Type": "application/json",
        }
        content = None if body is None else json.dumps(body).encode()
        try:
            with (
                within(DEADLINE_SECONDS),
                pool(allowed=self.remote.allowed, ca_file=self.remote.ca_file) as web,
            ):
                answer = web.request(
                    method,
                    base + path,
                    body=content,
                    headers=headers,
                    preload_content=False,
                )
                return _judge(place.host, answer, answer.read(largest))
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TemporaryError(
                f"{place.host} cannot be reached: {type(error).__name__}."
            ) from error


def _judge(host: str, answer: urllib3.BaseHTTPResponse, text: bytes) -> Any:
    if 200 <= answer.status < 300:
        try:
            return json.loads(text)
        except ValueError as error:
            raise TemporaryError(f"{host} gave an answer that is no JSON.") from error
    raise _failure(host, answer, text)


def _failure(
    host: str, answer: urllib3.BaseHTTPResponse, text: bytes
) -> ConnectorError:
    wait = seconds(answer.headers.get("Retry-After"))
    if answer.status == 429 or (answer.status == 403 and _is_limited(answer, text)):
        pause = _pause(answer) if wait is None else wait
        return TemporaryError(f"{host} answered {answer.status}.", retry_after=pause)
    if answer.status >= 500:
        return TemporaryError(f"{host} answered {answer.status}.", retry_after=wait)
    return PermanentError(
        f"{host} answered {answer.status} to a pull request: the credentials may not do this, or it is not possible.",
        code=f"http_{answer.status}",
    )


def _is_limited(answer: urllib3.BaseHTTPResponse, text: bytes) -> bool:
    """Whether 403 means that too much was called: some secondary limits say so in their words alone."""
    return (
        "Retry-After" in answer.headers
        or answer.headers.get("X-RateLimit-Remaining") == "0"
        or b"secondary rate limit" in text
    )


def _pause(answer: urllib3.BaseHTTPResponse) -> float:
    """How long GitHub's own rules for clients let a limit be waited for that names no Retry-After."""
    if answer.headers.get("X-RateLimit-Remaining") == "0":
        reset = seconds_until(answer.headers.get("X-RateLimit-Reset"))
        if reset is not None:
            return reset
    return PAUSE_SECONDS
