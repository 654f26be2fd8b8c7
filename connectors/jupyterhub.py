"""JupyterHub's REST API, versions 5 and 6, as a service of the hub: people's servers are started, watched and stopped.

https://jupyterhub.readthedocs.io/en/stable/reference/rest-api.html
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import urllib3

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.patience import seconds
from connectors.pinned import pool, within

DEADLINE_SECONDS = 30.0
LARGEST_ANSWER = 8 * 1024 * 1024
# The hub gives no more to a page, unless its settings say so.
PAGE = 200
MAX_PAGES = 100
KNOWN = ("5", "6")
PAGES = "application/jupyterhub-pagination+json"
VERSION = re.compile(r"(\d{1,4})\.\d{1,4}[\w.+-]{0,40}", re.ASCII)
TOKEN = re.compile(r"[\x21-\x7e]+")
LONGEST_REASON = 300
NOTHING: Mapping[str, str] = {}
# These pass by themselves: somebody waited too long, asks too often, or the hub is busy, restarts or is overloaded.
PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


@dataclass(frozen=True)
class HubServer:
    """A server of somebody as the hub tells it; `pending` is spawn, stop or empty, `path` lies below the hub's address.

    `pod` is empty where the hub does not tell (it asks for the scope `admin:server_state`).
    """

    username: str
    name: str
    title: str
    pending: str
    is_ready: bool
    is_stopped: bool
    path: str
    started_at: datetime | None
    active_at: datetime | None
    options: Mapping[str, Any]
    pod: str

    @classmethod
    def of(cls, username: str, told: Mapping[str, Any]) -> "HubServer":
        """What the API says of one."""
        state = told.get("state") or {}
        return cls(
            username=username,
            name=str(told["name"]),
            title=str(told.get("display_name") or ""),
            pending=str(told.get("pending") or ""),
            is_ready=bool(told["ready"]),
            is_stopped=bool(told.get("stopped", False)),
            path=urlsplit(str(told["url"])).path,
            started_at=_moment(told.get("started")),
            active_at=_moment(told.get("last_activity")),
            options=dict(told.get("user_options") or {}),
            pod=str(state.get("pod_name") or ""),
        )


@dataclass(frozen=True)
class JupyterHub:
    """One hub, called with the token of its service; `allowed` names inner hosts that may be called.

    Every method raises TemporaryError, and PermanentError with the code token_refused, not_a_hub, no_such_user, invalid
    or other_version, or bad_address for an address that is never called.
    """

    address: str
    token: str = field(repr=False)
    allowed: Collection[str] = ()
    ca_file: str | None = None

    def version(self) -> str:
        """The hub's version, which proves the token too."""
        return self._checked(self._json("GET", "/info"))

    def ensure_user(self, username: str) -> None:
        """Make a person known to the hub; nothing happens to one who is."""
        self._call("POST", f"/users/{_part(username)}", also=(HTTPStatus.CONFLICT,))

    def start(
        self, username: str, name: str, *, title: str, options: Mapping[str, Any]
    ) -> bool:
        """Start a server; True when it is ready, False while it starts.

        One that starts or runs already goes on with the options that it has.
        """
        # Version 5 takes the whole body for options, and knows no titles.
        is_titled = not self._checked(self._json("GET", "/")).startswith("5.")
        body = (
            {"display_name": title, "user_options": dict(options)}
            if is_titled
            else dict(options)
        )
        try:
            status, _ = self._call("POST", _server(username, name), body)
        except PermanentError as error:
            if (
                error.code != "invalid"
                or (there := self.server(username, name)) is None
            ):
                raise
            if there.pending == "stop":
                raise TemporaryError(
                    "The server of this name is still stopping."
                ) from error
            if not there.is_ready:
                raise
            return True
        if status == HTTPStatus.ACCEPTED:
            return False
        # A hub (6.1.1) answers as if all were there when the start before this one had failed.
        there = self.server(username, name)
        return there is not None and there.is_ready

    def stop(self, username: str, name: str) -> bool:
        """Stop a server, also one that starts, and forget its name; True when it is gone, False while it stops."""
        body = {"remove": True} if name else {}
        gone = (HTTPStatus.NOT_FOUND,)
        status, _ = self._call("DELETE", _server(username, name), body, also=gone)
        return status != HTTPStatus.ACCEPTED

    def server(self, username: str, name: str) -> HubServer | None:
        """A server whatever its state, None when the hub knows none of this name."""
        try:
            told = self._json(
                "GET", f"/users/{_part(username)}?include_stopped_servers=1"
            )
        except PermanentError as error:
            if error.code == "no_such_user":
                return None
            raise
        return next((one for one in self._servers_of(told) if one.name == name), None)

    def servers(self) -> list[HubServer]:
        """The servers of everybody that run, start or stop.

        Somebody's may be missing when another person's ended between two pages: ask `server` before acting on that.
        """
        found: dict[tuple[str, str], HubServer] = {}
        offset = 0
        for _ in range(MAX_PAGES):
            query = urlencode({"state": "active", "limit": PAGE, "offset": offset})
            told = self._json("GET", f"/users?{query}", accept=PAGES)
            try:
                people, following = told["items"], told["_pagination"]["next"]
                offset = int(following["offset"]) if following else 0
            except (TypeError, KeyError, ValueError) as error:
                raise self._no_hub() from error
            found |= {
                (one.username, one.name): one
                for who in people
                for one in self._servers_of(who)
            }
            if not following:
                return list(found.values())
        raise TemporaryError(
            f"{self._host} has more than {MAX_PAGES * PAGE} people with servers."
        )

    def failure(self, username: str, name: str) -> str:
        """Why the last start failed, as the hub puts it; empty when it did not, or when nobody remembers."""
        there = self.server(username, name)
        if there is None or there.is_ready or there.pending:
            return ""
        # The stream of a server that is not starting ends at once; a hub that forgot the start refuses.
        unknown = (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST)
        status, text = self._call(
            "GET", f"{_server(username, name)}/progress", also=unknown
        )
        return _failed(text) if status == HTTPStatus.OK else ""

    def _servers_of(self, told: Any) -> list[HubServer]:
        try:
            return [
                HubServer.of(str(told["name"]), one)
                for one in told.get("servers", {}).values()
            ]
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise self._no_hub() from error

    def _checked(self, told: Any) -> str:
        version = told.get("version") if isinstance(told, dict) else None
        if not isinstance(version, str) or not (found := VERSION.fullmatch(version)):
            raise self._no_hub()
        if found[1] not in KNOWN:
            raise PermanentError(
                f"{self._host} is JupyterHub {version}; the portal works with {' and '.join(KNOWN)}.",
                code="other_version",
            )
        return version

    @property
    def _base(self) -> str:
        """Its address without a slash at the end; raises PermanentError for what is none."""
        try:
            parts = urlsplit(self.address)
            is_plain = (
                parts.scheme == "https"
                and bool(parts.hostname)
                and not parts.query
                and "@" not in parts.netloc
            )
        except ValueError:
            is_plain = False
        if not is_plain:
            raise PermanentError(
                "A hub's address begins with https:// and a host.", code="bad_address"
            )
        return self.address.rstrip("/")

    @property
    def _host(self) -> str:
        return urlsplit(self.address).hostname or "The hub"

    def _json(self, method: str, path: str, *, accept: str = "application/json") -> Any:
        _, text = self._call(method, path, accept=accept)
        return self._read(text)

    def _read(self, text: bytes) -> Any:
        try:
            return json.loads(text)
        except ValueError as error:
            raise self._no_hub() from error

    def _headers(self, accept: str) -> dict[str, str]:
        if not TOKEN.fullmatch(self.token):
            raise PermanentError(
                "The hub's token is one line of plain characters.", code="token_refused"
            )
        return {
            "Accept": accept,
            "Authorization": f"token {self.token}",
            "Content-Type": "application/json",
            "User-Agent": "Quartermaster",
        }

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        accept: str = "*/*",
        also: Collection[int] = (),
    ) -> tuple[int, bytes]:
        """The status and the text of an answer; `also` are refusals of the hub that are answers as well."""
        headers = self._headers(accept)
        content = None if body is None else json.dumps(body).encode()
        address = f"{self._base}/hub/api{path}"
        try:
            with (
                within(DEADLINE_SECONDS),
                pool(allowed=self.allowed, ca_file=self.ca_file) as web,
            ):
                answer = web.request(
                    method,
                    address,
                    body=content,
                    headers=headers,
                    preload_content=False,
                    redirect=False,
                )
                text = answer.read(LARGEST_ANSWER + 1)
                if len(text) > LARGEST_ANSWER:
                    raise TemporaryError(
                        f"{self._host} gave an answer of more than {LARGEST_ANSWER >> 20} MiB."
                    )
                if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
                    return answer.status, text
                failure = self._failure(answer.status, answer.headers, text)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TemporaryError(
                f"{self._host} cannot be reached: {type(error).__name__}."
            ) from error
        is_refusal = isinstance(failure, PermanentError) and failure.code != "not_a_hub"
        if is_refusal and answer.status in also:
            return answer.status, text
        raise failure

    def _failure(
        self, status: int, headers: Mapping[str, str], text: bytes
    ) -> ConnectorError:
        if status in PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            wait = seconds(headers.get("Retry-After"))
            reason = _reason(status, text) or "it restarts or is not there"
            return TemporaryError(
                f"{self._host} answered {status}: {reason}", retry_after=wait
            )
        reason = _reason(status, text)
        if not reason:
            return self._no_hub()
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return PermanentError(
                f"{self._host} refused the portal's token: {reason}",
                code="token_refused",
            )
        code = "no_such_user" if status == HTTPStatus.NOT_FOUND else "invalid"
        return PermanentError(f"{self._host} refused: {reason}", code=code)

    def _no_hub(self) -> PermanentError:
        return PermanentError(
            f"{self._host} does not answer as a JupyterHub does.", code="not_a_hub"
        )


def _part(text: str) -> str:
    """A name as one part of an address; raises PermanentError for what would lead to another part."""
    if text in ("", ".", ".."):
        raise PermanentError(
            "The hub knows nobody and nothing by such a name.", code="invalid"
        )
    return quote(text, safe="")


def _server(username: str, name: str) -> str:
    """Where a server is; the one that everybody has without a name stands elsewhere."""
    user = f"/users/{_part(username)}"
    return f"{user}/servers/{_part(name)}" if name else f"{user}/server"


def _moment(text: Any) -> datetime | None:
    if not text:
        return None
    found = datetime.fromisoformat(str(text))
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _reason(status: int, text: bytes) -> str:
    """The sentence of a refusal; empty for one that no hub gave."""
    try:
        told = json.loads(text)
        return (
            " ".join(str(told["message"]).split())[:LONGEST_REASON]
            if told["status"] == status
            else ""
        )
    except (ValueError, TypeError, KeyError):
        return ""


def _failed(stream: bytes) -> str:
    """The message of the last event of a progress stream, when it is that of a failure."""
    lines = [
        line
        for line in stream.decode(errors="replace").splitlines()
        if line.startswith("data:")
    ]
    try:
        last = json.loads(lines[-1].removeprefix("data:")) if lines else {}
        return str(last["message"])[:LONGEST_REASON] if last.get("failed") else ""
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""
