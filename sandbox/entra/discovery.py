"""What clients read first, metadata and keys, and where they go last, sign-out."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from sandbox.entra import pages
from sandbox.entra.authorize import is_registered
from sandbox.entra.errors import Refusal
from sandbox.entra.tokens import Issuer

Handler = Callable[[Request], Awaitable[Response]]


@dataclass
class Metadata:
    """Serves the public facts of the tenant; browsers sign in and out at `browser_base`."""

    issuer: Issuer
    browser_base: str

    def in_tenant(self, handler: Handler) -> Handler:
        """Refuse other tenants the way Entra does."""

        async def checked(request: Request) -> Response:
            tenant = request.path_params["tenant"]
            if tenant != self.issuer.tenant:
                return Refusal("invalid_tenant", 90002, tenant=tenant).response()
            return await handler(request)

        return checked

    async def configuration(self, request: Request) -> Response:
        """Answer OpenID Connect discovery."""
        tenant = f"{self.issuer.base}/{self.issuer.tenant}"
        browser = f"{self.browser_base}/{self.issuer.tenant}"
        document: dict[str, Any] = {
            "token_endpoint": f"{tenant}/oauth2/v2.0/token",
            "token_endpoint_auth_methods_supported": [
                "client_secret_post",
                "client_secret_basic",
            ],
            "jwks_uri": f"{tenant}/discovery/v2.0/keys",
            "response_modes_supported": ["query"],
            "subject_types_supported": ["pairwise"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "response_types_supported": ["code"],
            "scopes_supported": ["openid", "profile", "email", "offline_access"],
            "issuer": self.issuer.v2,
            "request_uri_parameter_supported": False,
            "authorization_endpoint": f"{browser}/oauth2/v2.0/authorize",
            "end_session_endpoint": f"{browser}/oauth2/v2.0/logout",
            "http_logout_supported": True,
            "frontchannel_logout_supported": True,
            "code_challenge_methods_supported": ["S256"],
            "tenant_region_scope": "NA",
            "msgraph_host": "graph.microsoft.com",
        }
        return JSONResponse(document)

    async def instances(self, request: Request) -> Response:
        """Answer instance discovery: this host is its own cloud."""
        host = self.issuer.base.removeprefix("https://")
        endpoint = f"{self.issuer.base}/{self.issuer.tenant}/v2.0/.well-known/openid-configuration"
        cloud = {"preferred_network": host, "preferred_cache": host, "aliases": [host]}
        return JSONResponse(
            {
                "tenant_discovery_endpoint": endpoint,
                "api-version": "1.1",
                "metadata": [cloud],
            }
        )

    async def keys(self, request: Request) -> Response:
        """Answer with the signing keys."""
        return JSONResponse(
            self.issuer.key.jwks(), headers={"Cache-Control": "max-age=86400, private"}
        )

    async def sign_out(self, request: Request) -> Response:
        """Send the browser on, to registered addresses only."""
        target = request.query_params.get("post_logout_redirect_uri", "")
        if target and is_registered(target):
            state = request.query_params.get("state")
            return RedirectResponse(
                f"{target}?{urlencode({'state': state})}" if state else target, 302
            )
        return pages.signed_out()
