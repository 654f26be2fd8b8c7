"""The application as which a pipeline of a team signs in: it shows its workflow's own token, and has no secret."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.entra.errors import Refusal
from sandbox.entra.federation import FederatedCredential, is_assertion
from sandbox.entra.tokens import Application, Issuer

PIPELINE = Application(
    client_id="aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
    principal_id="bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb",
)
SUBJECT = "repo:example/vision:ref:refs/heads/main"


@dataclass(frozen=True)
class Pipeline:
    """One application of the tenant that trusts the workflows of one branch."""

    issuer: Issuer
    application: Application = PIPELINE

    @property
    def credential(self) -> FederatedCredential:
        """Whose tokens it trusts, as GitHub's OIDC provider gives them to a workflow."""
        return FederatedCredential(
            self.issuer.key, f"{self.issuer.base}/workflows", SUBJECT
        )

    def tokens(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Return the claims of an access token for the portal's API; raise Refusal for anything else."""
        if not is_assertion(form):
            raise Refusal("invalid_client", 7000218, 401)
        self.credential.check(form)
        scope = form.get("scope", "")
        resource = scope.removesuffix("/.default")
        if resource == scope:
            raise Refusal("invalid_scope", 1002012, scope=scope)
        if resource not in (f"api://{self.issuer.client}", self.issuer.client):
            raise Refusal(
                "invalid_resource", 500011, resource=resource, tenant=self.issuer.tenant
            )
        return self.issuer.api_token(None, "", application=self.application)
