"""Who calls Graph: an application token, a person's token, or the sandbox's own administrator."""

import hmac
from dataclasses import dataclass
from typing import Any

import jwt
from starlette.requests import Request

from sandbox.entra.refusals import GraphRefusal, forbidden
from sandbox.entra.tokens import GRAPH, Issuer


@dataclass(frozen=True)
class Callers:
    """Checks bearer tokens; the administrator's secret stands for every permission."""

    issuer: Issuer
    admin_secret: str

    def is_admin(self, request: Request) -> bool:
        """Tell whether the request carries the administrator's secret."""
        return hmac.compare_digest(
            _bearer(request).encode(), self.admin_secret.encode()
        )

    def need_admin(self, request: Request) -> None:
        """Let only the administrator pass; raise GraphRefusal 401 or 403."""
        if not self.is_admin(request):
            self.claims(request)
            raise forbidden()

    def need_permission(self, request: Request, *permissions: str) -> None:
        """Let an application with one of the permissions pass; raise GraphRefusal 401 or 403."""
        if self.is_admin(request):
            return
        claims = self.claims(request)
        if claims.get("idtyp") != "app" or not set(permissions) & set(
            claims.get("roles", ())
        ):
            raise forbidden()

    def claims(self, request: Request) -> dict[str, Any]:
        """Return the verified claims; raise GraphRefusal 401."""
        token = _bearer(request)
        if not token:
            raise _unauthorized("Access token is empty.")
        try:
            return dict(
                jwt.decode(
                    token,
                    self.issuer.key.public_pem,
                    algorithms=["RS256"],
                    audience=GRAPH,
                    issuer=self.issuer.v1,
                    options={"require": ["exp", "aud", "iss"]},
                )
            )
        except jwt.ExpiredSignatureError as error:
            raise _unauthorized(
                "Lifetime validation failed, the token is expired."
            ) from error
        except jwt.InvalidAudienceError as error:
            raise _unauthorized(
                "Access token validation failure. Invalid audience."
            ) from error
        except jwt.InvalidTokenError as error:
            raise _unauthorized(
                "IDX14100: JWT is not well formed or its signature is not valid."
            ) from error


def _bearer(request: Request) -> str:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _unauthorized(message: str) -> GraphRefusal:
    return GraphRefusal(401, "InvalidAuthenticationToken", message)
