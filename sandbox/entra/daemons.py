"""The application by which a program calls Azure: it has a secret, or shows a token of its cluster instead."""

import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jwt

from sandbox.azure_world import FEDERATED_SUBJECT, AzureSpec
from sandbox.entra.errors import Refusal
from sandbox.entra.tokens import ARM, Issuer

EXCHANGE = "api://AzureADTokenExchange"
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
# A federated token of the sandbox has no cluster that renews it: it lasts.
FEDERATED_LIFETIME = 365 * 86400


@dataclass(frozen=True)
class Daemon:
    """One application in a tenant; `cluster_issuer` is whose service account tokens it trusts."""

    issuer: Issuer
    spec: AzureSpec
    secret: str = field(repr=False)

    @property
    def cluster_issuer(self) -> str:
        return f"{self.issuer.base}/oidc"

    def tokens(self, form: Mapping[str, str]) -> str:
        """Return an access token for the resource that is asked for; raise Refusal."""
        self._authenticate(form)
        scope = form.get("scope", "")
        if not scope.endswith("/.default"):
            raise Refusal("invalid_scope", 1002012, scope=scope)
        resource = scope.removesuffix("/.default").rstrip("/")
        if resource != ARM:
            raise Refusal(
                "invalid_resource", 500011, resource=resource, tenant=self.issuer.tenant
            )
        return self.issuer.key.sign(
            self.issuer.arm_token(self.spec.client_id, self.spec.principal_id)
        )

    def federated_token(self, **claims: Any) -> str:
        """Return what a cluster puts into a pod of the portal; `claims` bend it."""
        now = int(time.time())
        usual = {"iss": self.cluster_issuer, "sub": FEDERATED_SUBJECT, "aud": EXCHANGE}
        return self.issuer.key.sign(
            {**usual, "iat": now, "nbf": now, "exp": now + FEDERATED_LIFETIME, **claims}
        )

    def _authenticate(self, form: Mapping[str, str]) -> None:
        if form.get("client_assertion_type") == JWT_BEARER:
            self._check(form.get("client_assertion", ""))
        elif not form.get("client_secret"):
            raise Refusal("invalid_client", 7000218, 401)
        elif not hmac.compare_digest(
            form["client_secret"].encode(), self.secret.encode()
        ):
            raise Refusal("invalid_client", 7000215, 401, client=self.spec.client_id)

    def _check(self, assertion: str) -> None:
        try:
            claims = jwt.decode(
                assertion,
                self.issuer.key.public_pem,
                algorithms=["RS256"],
                audience=EXCHANGE,
                issuer=self.cluster_issuer,
                options={"require": ["exp", "aud", "iss", "sub"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise Refusal("invalid_client", 700024, 401) from error
        except (jwt.InvalidAudienceError, jwt.InvalidIssuerError) as error:
            raise Refusal("invalid_client", 700211, 401) from error
        except jwt.InvalidTokenError as error:
            raise Refusal("invalid_client", 50027, 401) from error
        if claims["sub"] != FEDERATED_SUBJECT:
            raise Refusal("invalid_client", 700213, 401, subject=str(claims["sub"]))
