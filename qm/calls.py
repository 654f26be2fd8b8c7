"""Calls to the portal: each is repeated with the same key while nobody answers, so that nothing is done twice."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Mapping
from time import sleep
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import requests
from requests.auth import AuthBase

from qm import __version__
from qm.configuration import Access
from qm.endings import Code, Ended
from qm.streams import Event, events_in

CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 60.0
# A few attempts where somebody waits for the answer; some ten minutes where a run is watched, which may take days.
ATTEMPTS, PATIENT_ATTEMPTS = 5, 24
LONGEST_PAUSE, LONGEST_ASKED_PAUSE = 30.0, 120.0
LARGEST_PAGE = 100
AGAIN = frozenset({429, 502, 503, 504})
# A refusal of the portal's own: whoever asks once hears it at once, and whoever follows asks again.
CLUSTER_AWAY = "cluster_away"
CODES: Mapping[int, Code] = {401: Code.NOT_SIGNED_IN, 404: Code.NOT_FOUND}
BROKEN = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)
# By which option a person gives what the API calls so.
OPTIONS: Mapping[str, str] = {
    "title": "--name",
    "minutes": "--time",
    "variables": "--env",
    "secrets": "--secret",
    "claims": "--claim",
    "repository": "--git",
    "tenancy": "--place",
    "program": "the words after --",
    "starts_at": "--from",
    **{
        name: f"--{name}"
        for name in (
            "image",
            "gpus",
            "machines",
            "nodes",
            "flavor",
            "template",
            "script",
            "priority",
            "after",
            "checkpoint",
            "team",
            "namespace",
            "purpose",
            "reason",
            "until",
        )
    },
}


# The same of a new team; a template's parameter may be called so, too, and is given otherwise.
TEAM: Mapping[str, str] = {
    "name": "NAME",
    "entra_group": "--group",
    "cost_centre": "--cost-centre",
    "project": "--project",
    "environment": "--environment",
    "cluster": "--cluster",
}
# How each JWT begins, which Entra ID's tokens are and the portal's own are not.
JWT = "Bearer eyJ"


class Bearer(AuthBase):
    """The token; given as `auth`, because requests would put a password of ~/.netrc in its place otherwise."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class Answered(dict[str, Any]):
    """An object of an answer, which ends the command where it lacks what is read: qm is of another version then."""

    def __missing__(self, name: str) -> Any:
        raise Ended(
            f"The portal answers without {name!r}: it is of another version than this qm, {__version__}. Install the "
            "qm of the portal's version.",
            Code.AWAY,
        )


class Portal:
    """The API of one portal, as one person."""

    def __init__(
        self,
        access: Access,
        *,
        attempts: int = ATTEMPTS,
        seconds: float = ANSWER_SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> None:
        self._access = access
        self.url, self._attempts, self._timeout = (
            access.url,
            attempts,
            (connect_seconds, seconds),
        )
        self._session = requests.Session()
        self._session.auth = Bearer(access.token)
        self._session.headers["User-Agent"] = f"qm/{__version__}"

    def twin(self) -> Portal:
        """The same for another thread: a session is not made for several."""
        connect_seconds, seconds = self._timeout
        return Portal(
            self._access,
            attempts=self._attempts,
            seconds=seconds,
            connect_seconds=connect_seconds,
        )

    def get(self, path: str, *, patient: bool = False, **query: object) -> Any:
        """What is at an address."""
        return self._call(
            "GET",
            path,
            query=query,
            attempts=PATIENT_ATTEMPTS if patient else self._attempts,
        )

    def post(self, path: str, body: object = None, *, key: str = "") -> Any:
        """Do something; what is not harmless to repeat needs a key."""
        return self._call("POST", path, body=body, key=key, attempts=self._attempts)

    def listed(
        self, path: str, *, most: int | None, **query: str | None
    ) -> dict[str, Any]:
        """A list with as many rows as wanted, from as many pages as that takes; all where `most` is None."""
        wanted = LARGEST_PAGE if most is None else min(most, LARGEST_PAGE)
        found: dict[str, Any] = self._call(
            "GET", path, query={**query, "limit": wanted}, attempts=self._attempts
        )
        while found["next"] and (most is None or len(found["results"]) < most):
            # The cursor alone: the token goes to no other host than the one that was signed in to.
            cursor = dict(parse_qsl(urlsplit(found["next"]).query))["cursor"]
            if most is not None:
                wanted = min(most - len(found["results"]), LARGEST_PAGE)
            asked = {**query, "limit": wanted, "cursor": cursor}
            page = self._call("GET", path, query=asked, attempts=self._attempts)
            found = {
                **page,
                "previous": found["previous"],
                "results": found["results"] + page["results"],
            }
        return found

    def follow(self, run: int, pod: str, *, after: str) -> Iterator[Event]:
        """A pod's log from behind a line, as it is written, until the connection ends in an orderly way or breaks."""
        try:
            with self._session.get(
                self._address(f"runs/{run}/logs/"),
                params={"follow": "true", "pod": pod},
                headers={"Last-Event-ID": after} if after else {},
                stream=True,
                allow_redirects=False,
                timeout=self._timeout,
            ) as response:
                if response.status_code != 200:
                    raise refusal(response)
                if not response.headers.get("Content-Type", "").startswith(
                    "text/event-stream"
                ):
                    raise Ended(
                        "This portal streams no logs: leave out --follow.", Code.AWAY
                    )
                # Without chunks nothing tells how much is there, and asking for all of it would wait for the end.
                size = None if getattr(response.raw, "chunked", False) else 1
                yield from events_in(response.iter_content(chunk_size=size))
        except requests.RequestException as error:
            raise lost(self.url, error) from error

    def _address(self, path: str) -> str:
        return f"{self.url}/api/v1/{path}"

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        key: str = "",
        attempts: int,
    ) -> Any:
        pause, ended = 0.0, Ended("", Code.AWAY)
        for attempt in range(attempts):
            if attempt:
                sleep(pause)
            # Not all at the same moment, when a portal comes back that many wait for.
            pause = min(2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1)  # noqa: S311
            try:
                response = self._session.request(
                    method,
                    self._address(path),
                    params={
                        name: str(value)
                        for name, value in (query or {}).items()
                        if value is not None
                    },
                    json=body,
                    headers={"Idempotency-Key": key} if key else {},
                    allow_redirects=False,
                    timeout=self._timeout,
                )
            except requests.RequestException as error:
                ended = lost(self.url, error)
            else:
                if response.ok and not response.is_redirect:
                    return read(response)
                ended = refusal(response)
                pause = max(pause, retry_after(response))
            if not ended.again or ended.problem == CLUSTER_AWAY:
                break
        raise ended


def key_of(given: str) -> str:
    """The key under which something is done once, however often it is sent: the given one, or a new one."""
    if not given.isascii() or not given.isprintable() or " " in given:
        raise Ended("A key is made of visible ASCII characters.", Code.USAGE)
    return given or secrets.token_urlsafe(16)


def lost(url: str, error: Exception) -> Ended:
    """What a broken connection comes to; one with a certificate that nobody trusts is not tried again."""
    if isinstance(error, requests.exceptions.SSLError) or not isinstance(error, BROKEN):
        return Ended(f"The portal at {url} cannot be asked: {error}", Code.AWAY)
    return Ended(f"The portal at {url} does not answer.", Code.AWAY, again=True)


def read(response: requests.Response) -> Any:
    """The JSON of an answer; raises Ended for what no portal answers."""
    try:
        return response.json(object_hook=Answered)
    except ValueError:
        raise Ended(
            f"What answers at {response.url} is no portal.", Code.AWAY
        ) from None


def refusal(response: requests.Response) -> Ended:
    """A refusal in the portal's own sentences, one for each value at fault."""
    status = response.status_code
    if response.is_redirect:
        return _sent_on(response)
    try:
        found = response.json()
        code, detail, errors = (
            str(found["code"]),
            str(found["detail"]),
            list(found["errors"]),
        )
    except (ValueError, KeyError, TypeError):
        return Ended(
            f"The portal answered {status}.", code_of(status), again=status in AGAIN
        )
    sentences = [f"{option_of(one['pointer'])}{one['detail']}" for one in errors] or [
        detail
    ]
    if status == 401:
        sentences.append(_advice(response))
    if code == "body_too_large":
        sentences.append(
            "A --script has at most 256 KiB: fetch a larger one with --git."
        )
    if status >= 500 and found.get("request_id"):
        sentences.append(f"The number of the call is {found['request_id']}.")
    again = status in AGAIN or (status, code) == (409, "in_flight")
    return Ended("\n".join(sentences), code_of(status), again=again, problem=code)


def _advice(response: requests.Response) -> str:
    """What to do about a token that is not taken: one of Entra ID lives for an hour, and qm gets none by itself."""
    sent = str(response.request.headers.get("Authorization", ""))
    if sent.startswith(JWT):
        return (
            "A token of Entra ID lives about an hour. Get a new one as you got this one, such as by az account "
            "get-access-token, and give it as QM_TOKEN."
        )
    return "Make a token in the portal under Tokens, and run: qm login"


def _sent_on(response: requests.Response) -> Ended:
    """What a redirection comes to, which the portal's API never answers with: the token does not follow it."""
    target = urljoin(response.url, response.headers["Location"])
    asked, host = urlsplit(response.url), urlsplit(target)
    if (host.scheme, host.netloc) == (asked.scheme, asked.netloc):
        return Ended(
            f"What answers at {response.url} leads to {target}, which no portal's API does. QM_URL and qm login --url "
            "take the portal's address, without a path.",
            Code.AWAY,
        )
    return Ended(f"The portal has moved to {target}: qm login --url …", Code.AWAY)


def code_of(status: int) -> Code:
    """The exit code for a refused call."""
    return CODES.get(
        status, Code.AWAY if status >= 500 or status == 429 else Code.REFUSED
    )


def option_of(pointer: str) -> str:
    """The option that a JSON pointer is about, to stand before its sentence."""
    parts = [part for part in pointer.split("/") if part]
    if not parts:
        return ""
    if parts[0] == "values" and len(parts) > 1:
        return f"{option_named(parts[1])}: "
    field = parts[1] if parts[0] == "start" and len(parts) > 1 else parts[0]
    return f"{OPTIONS.get(field) or TEAM.get(field) or option_named(field)}: "


def option_named(field: str) -> str:
    """The option that gives a field or parameter."""
    return OPTIONS.get(field, f"--set {field}")


def retry_after(response: requests.Response) -> float:
    """How many seconds the portal asks to wait; 0 where it does not say."""
    said = response.headers.get("Retry-After", "")
    return min(float(said), LONGEST_ASKED_PAUSE) if said.isdigit() else 0.0
