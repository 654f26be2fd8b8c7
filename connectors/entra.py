"""Entra ID: sign-in, checking tokens, tokens of our own. The only importer of msal."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import UUID

import jwt
import msal
from msal.exceptions import MsalError

from connectors.errors import PermanentError, TemporaryError
from connectors.graph import BoundedSession
from connectors.patience import seconds
from connectors.signing_keys import SigningKeys

LEEWAY = 60
ASYMMETRIC = ["RS256"]
TRANSIENT = frozenset({"temporarily_unavailable", "server_error"})
REQUIRED = ["exp", "iat", "nbf", "iss", "aud", "tid", "oid"]


class SignInRefused(PermanentError):
    """A person or a token is not let in; `code` says why in one word, the message in a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message, code=code)


@dataclass(frozen=True)
class EntraSettings:
    """One application in one tenant; `authority` ends in the tenant id, `ca_file` None means public CAs."""

    authority: str
    tenant_id: str
    client_id: str
    client_secret: str
    ca_file: str | None = None


@dataclass(frozen=True)
class Claims:
    """What a checked token says; people are known by (`tid`, `oid`), everything else is for reading.

    `groups` is empty and `groups_overage` True when the token had no room: ask Graph then. When it expires is told of
    an access token alone, as is `client_id`: the application that asked for it.
    """

    oid: str
    tid: str
    name: str = ""
    username: str = ""
    email: str = ""
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    groups_overage: bool = False
    login_hint: str = ""
    sid: str = ""
    scopes: tuple[str, ...] = ()
    app_only: bool = False
    client_id: str = ""
    expires_at: datetime | None = None


class Entra:
    """Signs people in and checks tokens; nothing is read over the network before the first use.

    Every method raises TemporaryError when Entra cannot be reached or answers 5xx.
    """

    def __init__(self, settings: EntraSettings) -> None:
        self._settings = settings
        self._authority = settings.authority.rstrip("/")
        self._building = threading.Lock()
        self._built: Any = None

    def start_sign_in(self, redirect_uri: str, login_hint: str = "") -> dict[str, Any]:
        """Return a flow to keep in the session; send the browser to its `auth_uri`."""
        with _Reached():
            flow = self._application.initiate_auth_code_flow(
                [],
                redirect_uri=redirect_uri,
                response_mode="form_post",
                login_hint=login_hint or None,
            )
        # form_post would come back as a cross-site POST, without the session that holds the flow; MSAL warns
        # when it is asked for anything else.
        auth_uri = flow["auth_uri"].replace(
            "response_mode=form_post", "response_mode=query"
        )
        return {**flow, "auth_uri": auth_uri}

    def finish_sign_in(
        self, flow: Mapping[str, Any], query: Mapping[str, str]
    ) -> Claims:
        """Redeem the answer of the browser, once, and return who signed in; raise SignInRefused."""
        if not flow.get("state") or query.get("state") != flow["state"]:
            raise SignInRefused(
                "state_mismatch",
                "This sign-in began in another browser, or was used already. Begin it anew.",
            )
        if not query.get("code") and not query.get("error"):
            raise SignInRefused(
                "bad_answer", "The sign-in answer holds neither a code nor an error."
            )
        with _Reached():
            result = _redeem(self._application, dict(flow), dict(query))
        if "error" in result:
            raise _refusal(result)
        raw = result.get("id_token")
        if not isinstance(raw, str):
            raise SignInRefused(
                "token_missing", "Entra ID answered without an ID token."
            )
        return self._signed_in(raw, _nonce_of(flow))

    def verify_bearer(self, token: str) -> Claims:
        """Return whom an access token for our API speaks for; raise SignInRefused.

        Accepts v1 and v2 access tokens of people (`scp`) and of applications (`idtyp` app), never ID tokens.
        """
        issuers = {
            "1.0": f"https://sts.windows.net/{self._settings.tenant_id}/",
            "2.0": self._issuer,
        }
        client = self._settings.client_id
        body = self._decode(token, [client, f"api://{client}"], list(issuers.values()))
        if issuers.get(str(body.get("ver"))) != body["iss"]:
            raise SignInRefused(
                "token_invalid",
                "The token's version and issuer do not belong together.",
            )
        claims = _claims(body)
        if not claims.scopes and not claims.app_only:
            raise SignInRefused(
                "not_an_access_token", "This is not an access token for this API."
            )
        return replace(claims, expires_at=datetime.fromtimestamp(body["exp"], UTC))

    def sign_out_url(self, post_logout_redirect_uri: str, login_hint: str = "") -> str:
        """Return where to send the browser to end the session at Entra ID as well."""
        query = {"post_logout_redirect_uri": post_logout_redirect_uri}
        if login_hint:
            query["logout_hint"] = login_hint
        return f"{self._sign_out_endpoint()}?{urlencode(query)}"

    def app_token(self, scope: str, *, fresh: bool = False) -> str:
        """Return an access token of the application itself, from memory while valid unless `fresh`."""
        with _Reached():
            if fresh:
                self._application.remove_tokens_for_client()
            result = self._application.acquire_token_for_client([scope])
        if "access_token" not in result:
            raise _refusal(result)
        return str(result["access_token"])

    @property
    def _issuer(self) -> str:
        return f"{self._authority}/v2.0"

    def _sign_out_endpoint(self) -> str:
        """Signing out must work while Entra ID cannot be reached: only what is known already counts."""
        endpoint = (
            str(self._built.authority.authorization_endpoint) if self._built else ""
        )
        if endpoint.endswith("/authorize"):
            return f"{endpoint.removesuffix('/authorize')}/logout"
        return f"{self._authority}/oauth2/v2.0/logout"

    @property
    def _application(self) -> Any:
        with self._building:
            if self._built is None:
                self._built = msal.ConfidentialClientApplication(
                    self._settings.client_id,
                    client_credential=self._settings.client_secret,
                    authority=self._authority,
                    http_client=BoundedSession(self._settings.ca_file),
                    instance_discovery=False,
                    exclude_scopes=["offline_access"],
                )
            return self._built

    @cached_property
    def _keys(self) -> jwt.PyJWKClient:
        return SigningKeys(
            f"{self._authority}/discovery/v2.0/keys",
            BoundedSession(self._settings.ca_file),
        )

    def _signed_in(self, raw: str, nonce: str) -> Claims:
        body = self._decode(raw, [self._settings.client_id], [self._issuer])
        if not nonce or body.get("nonce") != nonce:
            raise SignInRefused(
                "nonce_mismatch", "The ID token was not made for this sign-in."
            )
        return _claims(body)

    def _decode(
        self, raw: str, audience: list[str], issuers: list[str]
    ) -> dict[str, Any]:
        options: Any = {"require": REQUIRED}
        try:
            key = self._keys.get_signing_key_from_jwt(raw)
            body = jwt.decode(
                raw,
                key,
                ASYMMETRIC,
                options,
                audience=audience,
                issuer=issuers,
                leeway=LEEWAY,
            )
        except (jwt.PyJWKClientConnectionError, jwt.PyJWKSetError) as error:
            raise TemporaryError("Entra ID's signing keys cannot be read") from error
        except jwt.PyJWTError as error:
            raise SignInRefused(
                "token_invalid", f"The token is refused: {type(error).__name__}."
            ) from error
        if body["tid"] != self._settings.tenant_id:
            raise SignInRefused("token_invalid", "The token is of another tenant.")
        return dict(body)


class _Reached:
    """Turns the ways MSAL fails to reach Entra ID into TemporaryError."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, MsalError):
            raise TemporaryError(f"Entra ID failed: {type(error).__name__}") from error
        if isinstance(error, OSError):  # requests' exceptions are among them
            raise TemporaryError(
                f"Entra ID cannot be reached: {type(error).__name__}"
            ) from error
        if isinstance(error, json.JSONDecodeError):
            raise TemporaryError("Entra ID gave an answer that is not JSON") from error
        if isinstance(error, ValueError):
            raise PermanentError(
                "Entra ID has no such tenant, or the authority is wrong",
                code="authority",
            ) from error


def _redeem(
    application: Any, flow: dict[str, Any], query: dict[str, str]
) -> dict[str, Any]:
    try:
        return dict(application.acquire_token_by_auth_code_flow(flow, query))
    except RuntimeError as error:
        raise SignInRefused(
            "nonce_mismatch", "The ID token was not made for this sign-in."
        ) from error
    except json.JSONDecodeError as error:
        raise TemporaryError("Entra ID gave an answer that is not JSON") from error
    except ValueError as error:
        raise SignInRefused(
            "bad_answer", "The sign-in answer cannot be used."
        ) from error


def _refusal(result: Mapping[str, Any]) -> TemporaryError | SignInRefused:
    code = str(result.get("error", "unknown"))
    message = str(result.get("error_description", "")).partition(" Trace ID")[0]
    if code in TRANSIENT:
        return TemporaryError(
            f"Entra ID: {message or code}",
            retry_after=seconds(result.get("retry_after")),
        )
    return SignInRefused(code, message or f"Entra ID answered {code}.")


def _nonce_of(flow: Mapping[str, Any]) -> str:
    """Return the nonce as it was sent: MSAL keeps another form of it in the flow."""
    sent = parse_qs(urlsplit(str(flow.get("auth_uri", ""))).query).get("nonce", [""])
    return sent[0]


def _claims(body: Mapping[str, Any]) -> Claims:
    try:
        oid = str(UUID(str(body["oid"])))
    except ValueError as error:
        raise SignInRefused(
            "token_invalid", "The token's object id is not a GUID."
        ) from error
    names = body.get("_claim_names")
    groups = _texts(body.get("groups"))
    # People get `hasgroups` instead of `_claim_names` from the implicit flow.
    overage = "groups" not in body and (
        (isinstance(names, dict) and "groups" in names) or bool(body.get("hasgroups"))
    )
    username = (
        body.get("preferred_username")
        or body.get("upn")
        or body.get("unique_name")
        or ""
    )
    return Claims(
        oid=oid,
        tid=str(body["tid"]),
        name=str(body.get("name") or body.get("azp") or body.get("appid") or ""),
        username=str(username),
        email=str(body.get("email") or ""),
        roles=_texts(body.get("roles")),
        groups=groups,
        groups_overage=overage,
        login_hint=str(body.get("login_hint") or ""),
        sid=str(body.get("sid") or ""),
        scopes=tuple(str(body.get("scp") or "").split()),
        app_only=body.get("idtyp") == "app",
        # A v1 token names it in `appid`, a v2 token in `azp`; the other one would be somebody's own claim.
        client_id=str(
            body.get("appid" if body.get("ver") == "1.0" else "azp") or ""
        ).lower(),
    )


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(item for item in value if isinstance(item, str))
