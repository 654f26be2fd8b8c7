"""Who calls the API: by a token of the portal, an Entra access token for this API, or one of a plugin of Backstage."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog
from django.conf import settings
from django.db import OperationalError
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.directory import backstage
from accounts.directory.client import entra
from accounts.models import ApiToken, Identity, User
from accounts.tokens.models import SCOPES
from connectors.backstage import is_of_backstage
from connectors.entra import Claims
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from web.throttling import changes_nothing

if TYPE_CHECKING:  # the framework's views import this module through the settings
    from rest_framework.views import APIView

LAST_USE_KNOWN_TO = timedelta(minutes=1)
NOT_SIGNED_IN = "Sign in to the portal once before you use its API."
ACTS_FOR_NO_TEAM = "This application acts for no team. A lead of the team adds its object id under Tokens."
OTHER_IDS = (
    "A team has named this application with another object id or client id than its token has. A lead of the team "
    "removes it and adds it again under Tokens, with the object id of its enterprise application."
)


@dataclass(frozen=True)
class IssuedToken:
    """A token that Entra ID or Backstage issued: what it allows, as a personal token's scope, and until when.

    `identity` is the key of a team's identity, as which an application called.
    """

    scope: str
    expires_at: datetime | None
    identity: int | None = None


class DirectoryAway(APIException):
    """The keys to check an Entra token with cannot be had now."""

    status_code = 503
    default_detail = "Entra ID does not answer, so the token cannot be checked. Try again in a minute."
    default_code = "directory_away"


class BackstageAway(APIException):
    """What is needed to check a token of Backstage cannot be had now."""

    status_code = 503
    default_detail = "Backstage does not answer, so its token cannot be checked. Try again in a minute."
    default_code = "backstage_away"


class BearerAuthentication(BaseAuthentication):
    """`Authorization: Bearer TOKEN`; anything else in the header is refused, never ignored."""

    def authenticate(self, request: Request) -> tuple[User, Any] | None:
        """The person and what they came with; None without the header; raises AuthenticationFailed."""
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != "bearer" or not secret or " " in secret:
            raise AuthenticationFailed("Send “Authorization: Bearer TOKEN”.")
        if secret.startswith("qm_"):
            user, token = _by_token(secret)
            return _noted(user, token, f"token {token.name} ({token})")
        if is_of_backstage(secret):
            return _by_backstage(secret)
        return _by_entra(secret)

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return 'Bearer realm="quartermaster"'


class SignedInWithScope(BasePermission):
    """Signed in; a read token reads and previews, one that runs runs, one that asks decides and sets nothing."""

    message = "This token reads only. Create one that may write."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Whether the call is within the token's scope; an endpoint names changes that are `asking` or `running`."""
        if not request.user.is_authenticated:
            return False
        scope = getattr(request.auth, "scope", "")
        if not scope:
            self.message = "This token has none of the scopes of this API."
            return False
        if changes_nothing(request, view):
            return True
        # No action is a method that nobody may call there, which is answered as such.
        action = getattr(view, "action", None)
        if scope == ApiToken.Scope.RUN:
            self.message = (
                "This token runs training; it asks for nothing and decides nothing."
            )
            return action is None or action in getattr(view, "running", frozenset())
        if scope == ApiToken.Scope.ASK:
            self.message = "This token asks; it decides and sets nothing. Create one that may decide."
            return action is None or action in getattr(view, "asking", frozenset())
        return bool(scope == ApiToken.Scope.WRITE)


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The OpenAPI description of the bearer token."""

    target_class = "accounts.authentication.BearerAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """An HTTP bearer scheme."""
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of a person or a team (qm_…), an Entra token of a person or of an application "
            "that acts for a team, or one that Backstage made for the portal.",
        }


def _noted(user: User, token: Any, called_with: str) -> tuple[User, Any]:
    """The same; what this call is done with stands in the log and in the audit events of what it does."""
    structlog.contextvars.bind_contextvars(called_with=called_with)
    return user, token


def _by_token(secret: str) -> tuple[User, ApiToken]:
    now = timezone.now()
    rows = (
        ApiToken.objects.usable(now)
        .select_related("user")
        .prefetch_related("user__roles_held")
    )
    token = rows.filter(digest=ApiToken.hash_of(secret)).first()
    if token is None or token.user.is_blocked:
        raise AuthenticationFailed("This token is unknown, expired or revoked.")
    _note_use(token, now=now)
    return token.user, token


def _note_use(row: ApiToken | Identity, *, now: datetime) -> None:
    """Write down that it was used, unless that was written within the minute."""
    if row.last_used_at is None or now - row.last_used_at > LAST_USE_KNOWN_TO:
        # A database that is full or holds the row must not keep anybody from reading.
        with suppress(OperationalError):
            type(row)._default_manager.filter(pk=row.pk).update(last_used_at=now)


def _by_entra(secret: str) -> tuple[User, IssuedToken]:
    try:
        claims = entra().verify_bearer(secret)
    except TemporaryError as error:
        raise DirectoryAway from error
    except PermanentError as error:
        raise AuthenticationFailed(
            "This token is not one of ours or has expired."
        ) from error
    if claims.app_only:
        return _by_identity(claims)
    scope = widest(claims.scopes, settings.ENV.entra_scopes)
    token = IssuedToken(scope, claims.expires_at)
    return _noted(_known(claims.oid), token, "a token of Entra ID")


def _by_identity(claims: Claims) -> tuple[User, IssuedToken]:
    """The pipelines of the team for which this application acts; raises AuthenticationFailed where it is none's."""
    now = timezone.now()
    rows = Identity.objects.acting(now).of_application(
        object_id=claims.oid, client_id=claims.client_id
    )
    named = list(rows)
    identity = next((one for one in named if _is_of(one, claims)), None)
    if identity is None:
        raise AuthenticationFailed(OTHER_IDS if named else ACTS_FOR_NO_TEAM)
    account = User.objects.filter(pipelines_of=identity.team_id, is_active=True).first()
    if account is None:
        raise AuthenticationFailed(ACTS_FOR_NO_TEAM)
    _note_use(identity, now=now)
    token = IssuedToken(identity.scope, claims.expires_at, identity=identity.pk)
    return _noted(account, token, f"identity {identity.name} ({identity.object_id})")


def _is_of(identity: Identity, claims: Claims) -> bool:
    """Whether both ids of the application are the token's: a team may have named one of them wrongly."""
    ids = (str(identity.object_id), str(identity.client_id))
    return ids == (claims.oid, claims.client_id)


def _by_backstage(secret: str) -> tuple[User, IssuedToken]:
    if not settings.ENV.backstage_url:
        raise AuthenticationFailed("The portal is connected with no Backstage.")
    try:
        oid, call = backstage.called_for(secret)
        user = _known(oid)
    except (ConnectorError, AuthenticationFailed) as error:
        backstage.note_refusal(str(error))
        if isinstance(error, TemporaryError):
            raise BackstageAway from error
        if isinstance(error, PermanentError) and error.code != "catalog":
            raise AuthenticationFailed(error.message) from error
        raise
    backstage.note_call(call)
    token = IssuedToken(settings.ENV.backstage_scope, call.expires_at)
    return _noted(user, token, f"Backstage's {call.plugin}")


def _known(oid: str) -> User:
    """The person of this object id who has been here; raises AuthenticationFailed for everybody else."""
    user = (
        User.objects.prefetch_related("roles_held")
        .filter(oid=oid, is_active=True)
        .first()
    )
    # Without a role, the directory has blocked the account since the token was made.
    if user is None or user.signed_in_at is None or not user.roles:
        raise AuthenticationFailed(NOT_SIGNED_IN)
    return user


def widest(granted: Iterable[str], known: Mapping[str, str]) -> str:
    """The most that any of the scopes allows, as personal tokens name it; empty when none is of this API."""
    found = [SCOPES.index(known[name]) for name in granted if name in known]
    return SCOPES[max(found)] if found else ""
