"""Who calls: an application with a token for Azure, or the sandbox's own administrator."""

import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import jwt

from sandbox.azure.errors import ArmError
from sandbox.entra.tokens import ARM, Issuer

AUDIENCES = (
    ARM,
    f"{ARM}/",
    "https://management.core.windows.net",
    "https://management.core.windows.net/",
)


@dataclass(frozen=True)
class Caller:
    """An application by its object id and its client id."""

    oid: str
    client: str
    is_admin: bool = False


@dataclass
class Callers:
    """Checks bearer tokens; `expire` ends those that were used so far, whatever they say of their time."""

    issuer: Issuer
    admin_secret: str = field(repr=False)
    _used: set[str] = field(default_factory=set, repr=False)
    _ended: set[str] = field(default_factory=set, repr=False)

    def expire(self) -> None:
        """End every token that was used so far."""
        self._ended |= self._used

    def find(self, authorization: str) -> Caller:
        """Return who calls; raise ArmError 401."""
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token:
            message = "Authentication failed. The 'Authorization' header is missing."
            raise self._refusal("AuthenticationFailed", message)
        if hmac.compare_digest(token.encode(), self.admin_secret.encode()):
            return Caller("", "", is_admin=True)
        claims = self._claims(token)
        return Caller(str(claims["oid"]), str(claims["appid"]))

    def _claims(self, token: str) -> dict[str, Any]:
        required = ["exp", "iat", "aud", "iss", "tid", "oid", "appid", "uti"]
        options: Any = {"require": required, "verify_aud": False, "verify_exp": False}
        try:
            claims = dict(
                jwt.decode(
                    token,
                    self.issuer.key.public_pem,
                    algorithms=["RS256"],
                    options=options,
                )
            )
        except jwt.InvalidTokenError as error:
            raise self._refusal(
                "InvalidAuthenticationToken", "The access token is invalid."
            ) from error
        if claims["tid"] != self.issuer.tenant or claims["iss"] != self.issuer.v1:
            message = (
                f"The access token is from the wrong issuer '{claims['iss']}'. It must match the tenant "
                f"'{self.issuer.v1}' associated with this subscription."
            )
            raise self._refusal("InvalidAuthenticationTokenTenant", message)
        if claims["aud"] not in AUDIENCES:
            allowed = ",".join(f"'{audience}'" for audience in AUDIENCES)
            message = (
                f"The access token has been obtained for wrong audience or resource '{claims['aud']}'. It should "
                f"exactly match with one of the allowed audiences {allowed}."
            )
            raise self._refusal("InvalidAuthenticationTokenAudience", message)
        self._check_time(claims)
        return claims

    def _check_time(self, claims: dict[str, Any]) -> None:
        now = datetime.now(UTC)
        self._used.add(claims["uti"])
        if claims["exp"] < now.timestamp() or claims["uti"] in self._ended:
            until = datetime.fromtimestamp(claims["exp"], UTC)
            message = (
                f"The access token expiry UTC time '{until:%m/%d/%Y %I:%M:%S %p}' is earlier than current UTC time "
                f"'{now:%m/%d/%Y %I:%M:%S %p}'."
            )
            raise self._refusal("ExpiredAuthenticationToken", message)

    def _refusal(self, code: str, message: str) -> ArmError:
        where = f'Bearer authorization_uri="{self.issuer.base}/{self.issuer.tenant}"'
        challenge = f'{where}, error="invalid_token", error_description="{message}"'
        return ArmError(401, code, message, headers={"WWW-Authenticate": challenge})
