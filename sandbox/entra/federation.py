"""Federated credentials: an application shows a token of somebody else whom it trusts, and has no secret."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from sandbox.entra.errors import Refusal
from sandbox.entra.keys import SigningKey

EXCHANGE = "api://AzureADTokenExchange"
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
# A federated token of the sandbox has nobody who renews it: it lasts.
LIFETIME = 365 * 86400


@dataclass(frozen=True)
class FederatedCredential:
    """Whose tokens an application trusts, and of which subject; the sandbox signs both sides with one key."""

    key: SigningKey
    trusted: str
    subject: str

    def token(self, **claims: Any) -> str:
        """Return a token of the trusted issuer, as a cluster or a workflow is given it; `claims` bend it."""
        now = int(time.time())
        usual = {"iss": self.trusted, "sub": self.subject, "aud": EXCHANGE}
        return self.key.sign(
            {**usual, "iat": now, "nbf": now, "exp": now + LIFETIME, **claims}
        )

    def check(self, form: Mapping[str, str]) -> None:
        """Let the assertion of a form pass, or raise Refusal as Entra ID does."""
        try:
            claims = jwt.decode(
                form.get("client_assertion", ""),
                self.key.public_pem,
                algorithms=["RS256"],
                audience=EXCHANGE,
                issuer=self.trusted,
                options={"require": ["exp", "aud", "iss", "sub"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise Refusal("invalid_client", 700024, 401) from error
        except (jwt.InvalidAudienceError, jwt.InvalidIssuerError) as error:
            raise Refusal("invalid_client", 700211, 401) from error
        except jwt.InvalidTokenError as error:
            raise Refusal("invalid_client", 50027, 401) from error
        if claims["sub"] != self.subject:
            raise Refusal("invalid_client", 700213, 401, subject=str(claims["sub"]))


def is_assertion(form: Mapping[str, str]) -> bool:
    """Tell whether the caller shows a token of somebody else in place of a secret."""
    return form.get("client_assertion_type") == JWT_BEARER
