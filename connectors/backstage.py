"""Backstage: whom its plugins call for, who its users are in the directory, and what they are notified of.

Tokens are those of its backend's auth service (`@backstage/backend-defaults`, auth/plugin): a token of the plugin that
calls (`typ` vnd.backstage.plugin), which carries in `obo` a limited token of the person (vnd.backstage.limited-user).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import UUID

import jwt

from connectors.errors import PermanentError, TemporaryError
from connectors.graph import BoundedSession
from connectors.patience import seconds
from connectors.signing_keys import SigningKeys

LEEWAY_SECONDS = 30
# The first unless `auth.identityTokenAlgorithm` says otherwise.
SIGNED_WITH = ["ES256", "RS256", "PS256", "EdDSA"]
PLUGIN, PERSON = "vnd.backstage.plugin", "vnd.backstage.limited-user"
OBJECT_ID = "graph.microsoft.com/user-id"
NO_ANSWER = "Backstage's catalog gave an answer that is none."
# No token or not this one, or no plugin for notifications: whoever set it up there must look.
LET_NOBODY_IN = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
UNAVAILABLE = {
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
# https://backstage.io/docs/features/software-catalog/references: in tokens they are in small letters.
USER_REF = re.compile(
    r"user:([a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?)/([a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?)"
)


@dataclass(frozen=True)
class BackstageCall:
    """What a checked token says: the plugin that calls, for whom (empty when for nobody), and until when."""

    plugin: str
    user_ref: str
    expires_at: datetime


@dataclass(frozen=True)
class Notification:
    """What one person sees in Backstage; a later one of the same `scope` takes its place there, unread again."""

    title: str
    description: str
    link: str
    topic: str
    scope: str
    severity: str = "normal"


class Away(TemporaryError):
    """Backstage takes no notification at all now, whoever it is for."""


def is_of_backstage(token: str) -> bool:
    """Whether a token says of itself that a plugin of Backstage made it; nothing is checked."""
    try:
        return jwt.get_unverified_header(token).get("typ") == PLUGIN
    except jwt.PyJWTError:
        return False


class Backstage:
    """One Backstage backend; `callers` are the plugins whose calls count, each with keys of its own.

    Every method raises TemporaryError when the backend cannot be reached, and PermanentError with the code `refused`
    for a token that is not let in, `unknown_person` for a person who cannot be told, or `catalog` when the catalog
    does not let the portal read.
    """

    def __init__(
        self,
        address: str,
        *,
        audience: str,
        callers: Collection[str],
        catalog_token: str,
        notices_token: str = "",
        ca_file: str | None = None,
    ) -> None:
        self._address = address.rstrip("/")
        self._audience = audience
        self._catalog_token = catalog_token
        self._notices_token = notices_token
        self._session = BoundedSession(ca_file)
        # Only these: the name of the caller, which anybody could write into a token, becomes part of an address.
        self._plugins = {
            name: self._keys(f"/api/{name}/.backstage/auth/v1/jwks.json")
            for name in callers
        }
        self._people = self._keys("/api/auth/.well-known/jwks.json")

    def verify(self, token: str) -> BackstageCall:
        """Who calls with a token that was made for the portal."""
        plugin = str(_unchecked(token).get("sub"))
        keys = self._plugins.get(plugin)
        if keys is None:
            raise PermanentError(
                "The portal takes no calls of this plugin of Backstage.", code="refused"
            )
        body = _checked(token, keys, kind=PLUGIN, audience=self._audience)
        ends, user_ref = body["exp"], ""
        if "obo" in body:
            person = _checked(str(body["obo"]), self._people, kind=PERSON)
            ends, user_ref = min(ends, person["exp"]), str(person["sub"])
        return BackstageCall(plugin, user_ref, ends)

    def object_id_of(self, user_ref: str) -> str:
        """The person's object id in Entra ID, as the catalog's organisation provider wrote it to their entity."""
        found = USER_REF.fullmatch(user_ref)
        if found is None:
            raise PermanentError(
                "The token is for nobody of Backstage's catalog.", code="unknown_person"
            )
        entity = self._entity(*found.groups())
        try:
            return str(UUID(str(entity["metadata"]["annotations"][OBJECT_ID])))
        except (ValueError, KeyError, TypeError) as error:
            raise PermanentError(
                f"Backstage's catalog does not say who {user_ref} is in Entra ID: its entity lacks {OBJECT_ID}.",
                code="unknown_person",
            ) from error

    def user_ref_of(self, object_id: str) -> str:
        """The user of the catalog with this object id in Entra ID; empty when there is none.

        Raises PermanentError with the code `unknown_person` where several have it: which of them is theirs?
        """
        wanted = f"kind=user,metadata.annotations.{OBJECT_ID}={object_id.lower()}"
        fields = "metadata.namespace,metadata.name"
        found = self._read(
            "/api/catalog/entities/by-query",
            params={"filter": wanted, "fields": fields, "limit": "2"},
        )
        try:
            refs = [
                f"user:{row['metadata'].get('namespace', 'default')}/{row['metadata']['name']}"
                for row in (found or {})["items"]
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise TemporaryError(NO_ANSWER) from error
        if len(refs) > 1:
            raise PermanentError(
                f"Backstage's catalog has several users with the object id {object_id}.",
                code="unknown_person",
            )
        return refs[0].lower() if refs else ""

    def notify(self, user_ref: str, notification: Notification) -> None:
        """Show it to one user of the catalog, unless they switched such notifications off there.

        Raises Away when nobody can be notified, which is so as well while the token or the plugin is missing there.
        """
        body = {
            "recipients": {"type": "entity", "entityRef": user_ref},
            "payload": asdict(notification),
        }
        headers = {"Authorization": f"Bearer {self._notices_token}"}
        try:
            answer = self._session.post(
                f"{self._address}/api/notifications/notifications",
                json=body,
                headers=headers,
            )
        except OSError as error:  # requests' exceptions are among them
            raise Away(
                f"Backstage cannot be reached: {type(error).__name__}."
            ) from error
        status = answer.status_code
        if status == HTTPStatus.OK:
            return
        if status in LET_NOBODY_IN:
            raise Away(f"Backstage does not let the portal notify anybody ({status}).")
        if status in UNAVAILABLE:
            wait = seconds(answer.headers.get("Retry-After"))
            raise Away(f"Backstage answered {status}.", retry_after=wait)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise TemporaryError(f"Backstage answered {status}.")
        raise PermanentError(
            f"Backstage refuses the notification ({status}).", code="refused"
        )

    def _keys(self, path: str) -> SigningKeys:
        return SigningKeys(f"{self._address}{path}", self._session)

    def _entity(self, namespace: str, name: str) -> Mapping[str, Any]:
        path = f"/api/catalog/entities/by-name/user/{quote(namespace)}/{quote(name)}"
        found = self._read(path)
        if found is None:
            raise PermanentError(
                f"Backstage's catalog has no user:{namespace}/{name}.",
                code="unknown_person",
            )
        return found

    def _read(
        self, path: str, *, params: Mapping[str, str] | None = None
    ) -> Mapping[str, Any] | None:
        """What the catalog answers; None for 404."""
        headers = {"Authorization": f"Bearer {self._catalog_token}"}
        try:
            answer = self._session.get(
                f"{self._address}{path}", headers=headers, params=params
            )
            if answer.status_code == HTTPStatus.NOT_FOUND:
                return None
            if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise PermanentError(
                    "Backstage's catalog does not let the portal read.", code="catalog"
                )
            answer.raise_for_status()
            found = answer.json()
        except (OSError, ValueError) as error:  # requests' exceptions are among them
            raise TemporaryError(
                f"Backstage's catalog cannot be read: {type(error).__name__}."
            ) from error
        if not isinstance(found, dict):
            raise TemporaryError(NO_ANSWER)
        return found


def _unchecked(token: str) -> Mapping[str, Any]:
    try:
        return dict(jwt.decode(token, options={"verify_signature": False}))
    except jwt.PyJWTError as error:
        raise _refusal(error) from error


def _checked(
    token: str, keys: SigningKeys, *, kind: str, audience: str | None = None
) -> Mapping[str, Any]:
    """The claims of a token of this kind, signed with one of these keys and still good; `exp` as a moment."""
    required = ["iat", "exp", "sub", *(["aud"] if audience else [])]
    options: Any = {"require": required, "verify_aud": audience is not None}
    try:
        if jwt.get_unverified_header(token).get("typ") != kind:
            raise jwt.InvalidTokenError
        key = keys.get_signing_key_from_jwt(token)
        body = jwt.decode(
            token,
            key,
            SIGNED_WITH,
            options,
            audience=audience,
            leeway=LEEWAY_SECONDS,
        )
        ends = datetime.fromtimestamp(body["exp"], UTC)
    except (jwt.PyJWKClientConnectionError, jwt.PyJWKSetError) as error:
        raise TemporaryError("Backstage's signing keys cannot be read.") from error
    # A moment that is a text or beyond all time.
    except (jwt.PyJWTError, TypeError, ValueError, OverflowError, OSError) as error:
        raise _refusal(error) from error
    return {**body, "exp": ends}


def _refusal(error: Exception) -> PermanentError:
    if isinstance(error, jwt.ExpiredSignatureError):
        return PermanentError(
            "The sign-in to Backstage that this began with has ended. Start it again.",
            code="refused",
        )
    return PermanentError(
        f"The token of Backstage is refused: {type(error).__name__}.", code="refused"
    )
