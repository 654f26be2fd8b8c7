"""The application by which a program calls Azure: it has a secret, or shows a token of its cluster instead."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.azure_world import FEDERATED_SUBJECT, AzureSpec
from sandbox.entra.errors import Refusal
from sandbox.entra.federation import FederatedCredential, is_assertion
from sandbox.entra.tokens import ARM, Issuer


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
        return self._credential.token(**claims)

    @property
    def _credential(self) -> FederatedCredential:
        return FederatedCredential(
            self.issuer.key, self.cluster_issuer, FEDERATED_SUBJECT
        )

    def _authenticate(self, form: Mapping[str, str]) -> None:
        if is_assertion(form):
            self._credential.check(form)
        elif not form.get("client_secret"):
            raise Refusal("invalid_client", 7000218, 401)
        elif not hmac.compare_digest(
            form["client_secret"].encode(), self.secret.encode()
        ):
            raise Refusal("invalid_client", 7000215, 401, client=self.spec.client_id)
