"""The portal's answer: which profiles a person may start servers of, asked over HTTPS with the key of this hub."""

import json
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.web import HTTPError
from traitlets import Float, Unicode, default
from traitlets.config import SingletonConfigurable

from quartermaster_jupyterhub.choosing import (
    Json,
    Refused,
    check,
    without_gpus,
    without_variables,
)

PATH = "/api/v1/hub/profiles/"
KEY = re.compile(r"[\x21-\x7e]+")
MAX_PEOPLE = 5_000
# How the portal calls servers that were launched there, which may have variables of their own.
NAMED_BY_PORTAL = re.compile(r"nb-[0-9a-f]{12}")


@dataclass(frozen=True)
class Answer:
    """What a person may start: with `is_away` what is left of it while the portal does not answer."""

    profiles: list[Json]
    reason: str = ""
    is_away: bool = False
    # For which server it was asked, and which variables of its profiles are that server's alone.
    server: str = ""
    variables: frozenset[str] = frozenset()
    # Of the hub's own clock, which never goes back.
    at: float = field(default_factory=time.monotonic)

    def for_server(self, name: str) -> list[Json]:
        """What of it holds for a server: nothing for one of the portal's own whose variables nobody knows."""
        if name == self.server:
            return self.profiles
        if NAMED_BY_PORTAL.fullmatch(name):
            return []
        return without_variables(self.profiles, self.variables)


class Refusal(HTTPError):
    """An answer below 500, which no hub counts as a failure of its own: five of those would end it."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.status, refused.why)
        self.jupyterhub_message = refused.why


class Portal(SingletonConfigurable):
    """Asks the portal, and remembers what it said of each person."""

    url = Unicode(
        config=True,
        help="Address of the portal; QUARTERMASTER_URL where it is not set.",
    )
    key = Unicode(
        config=True,
        help="Key of this hub; QUARTERMASTER_KEY or QUARTERMASTER_KEY_FILE where not set.",
    )
    ca_file = Unicode(
        config=True,
        help="PEM file of an authority that signed the portal's certificate.",
    )
    timeout = Float(
        2.0, config=True, help="Seconds after which the portal counts as away."
    )
    cache_seconds = Float(
        60.0, config=True, help="For how long an answer is good for a form."
    )

    _known: ClassVar[dict[str, Answer]] = {}

    @default("url")
    def _url_default(self) -> str:
        return os.environ.get("QUARTERMASTER_URL", "")

    @default("ca_file")
    def _ca_file_default(self) -> str:
        return os.environ.get("QUARTERMASTER_CA_FILE", "")

    def current_key(self) -> str:
        """The key of this hub; a file is read each time, so that a new key needs no restart. Raises OSError."""
        if self.key:
            return self.key
        if path := os.environ.get("QUARTERMASTER_KEY_FILE"):
            return Path(path).read_text(encoding="utf-8").strip()
        return os.environ.get("QUARTERMASTER_KEY", "")

    async def ask(
        self,
        username: str,
        *,
        object_id: str = "",
        server: str = "",
        afresh: bool = False,
    ) -> Answer:
        """What a person may start; with `afresh` never from memory. Raises nothing: the portal may be away."""
        known = self._known.get(username)
        if known and not afresh and time.monotonic() - known.at < self.cache_seconds:
            return known
        try:
            answer = await self._ask(username, object_id, server)
        except (
            HTTPClientError,
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
        ) as error:
            self.log.warning(
                "Quartermaster does not answer for %s: %s", username, error
            )
            left = known.for_server(server) if known else []
            return Answer(without_gpus(left), is_away=True)
        if len(self._known) >= MAX_PEOPLE:
            self._known.pop(next(iter(self._known)))
        self._known[username] = answer
        return answer

    async def _ask(self, username: str, object_id: str, server: str) -> Answer:
        key = self.current_key()
        if not self.url or not KEY.fullmatch(key):
            raise ValueError("set Portal.url and the key of this hub")
        asked = {"username": username, "object_id": object_id, "server": server}
        query = urlencode({name: value for name, value in asked.items() if value})
        request = HTTPRequest(
            f"{self.url.rstrip('/')}{PATH}?{query}",
            headers={"Authorization": f"Bearer {key}", "Accept": "application/json"},
            connect_timeout=self.timeout,
            request_timeout=self.timeout,
            follow_redirects=False,
            ca_certs=self.ca_file or None,
        )
        told: Any = json.loads((await AsyncHTTPClient().fetch(request)).body)
        profiles = told["profiles"]
        if told["username"] != username or not isinstance(profiles, list):
            raise ValueError("the answer is for somebody else")
        if any(
            not isinstance(one.get("slug"), str) or not one.get("display_name")
            for one in profiles
        ):
            raise ValueError("a profile of the answer has no name")
        return Answer(
            profiles,
            reason=str(told.get("reason") or ""),
            server=server,
            variables=frozenset(map(str, told.get("variables") or ())),
        )


async def profiles(spawner: Any) -> list[Json]:
    """What `c.KubeSpawner.profile_list` may be set to; while a server starts, the portal is asked afresh.

    Raises Refusal for a start without any profile, which a KubeSpawner by itself would carry out.
    """
    is_start = spawner.pending == "spawn"
    answer = await answer_for(spawner, afresh=is_start)
    if is_start and not answer.profiles:
        try:
            check({}, [], is_away=answer.is_away, reason=answer.reason)
        except Refused as refused:
            raise Refusal(refused) from refused
    return answer.profiles


async def answer_for(spawner: Any, *, afresh: bool) -> Answer:
    """The portal's answer for the person whose server this is."""
    portal = Portal.instance(config=spawner.config)
    object_id = await _object_id(spawner)
    return await portal.ask(
        spawner.user.name, object_id=object_id, server=spawner.name, afresh=afresh
    )


async def _object_id(spawner: Any) -> str:
    """The object id that the authenticator learned, empty where it keeps no state or knows none."""
    state = await spawner.user.get_auth_state()
    if not isinstance(state, dict):
        return ""
    for name in ("oauth_user", "user", "id_token_claims"):
        claims = state.get(name)
        if isinstance(claims, dict) and isinstance(claims.get("oid"), str):
            return str(claims["oid"])
    return ""
