"""The token endpoint: a code or a secret for tokens."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sandbox.entra.authorize import Codes, Grant
from sandbox.entra.daemons import Daemon
from sandbox.entra.errors import Refusal
from sandbox.entra.keys import encode, encode_json
from sandbox.entra.pipelines import Pipeline
from sandbox.entra.tokens import GRAPH, LIFETIME, Issuer

API_SCOPES = ("Requests.Read", "Requests.Ask", "Requests.Decide")
NO_STORE = {"Cache-Control": "no-store, no-cache", "Pragma": "no-cache"}


@dataclass
class TokenEndpoint:
    """Knows the grants `authorization_code` and `client_credentials`; the application has one secret.

    `daemon` is a second application, which only ever calls Azure; `pipeline` a third, which calls the API.
    """

    issuer: Issuer
    codes: Codes
    secret: str
    pipeline: Pipeline
    daemon: Daemon | None = None

    async def answer(self, request: Request) -> Response:
        """Answer with tokens or with an error."""
        form = dict(
            parse_qsl(
                (await request.body()).decode("utf-8", "replace"),
                keep_blank_values=True,
            )
        )
        try:
            form |= _basic(request.headers.get("authorization", ""))
            return JSONResponse(self._tokens_for(form), headers=NO_STORE)
        except Refusal as refusal:
            return refusal.response()

    def _tokens_for(self, form: Mapping[str, str]) -> dict[str, Any]:
        grant = form.get("grant_type")
        if not grant:
            raise Refusal("invalid_request", 900144, field="grant_type")
        if grant == "authorization_code":
            self._authenticate(form)
            return self._code(form)
        if grant == "client_credentials":
            return self._program(form)
        raise Refusal("unsupported_grant_type", 70003, grant=grant)

    def _program(self, form: Mapping[str, str]) -> dict[str, Any]:
        client = form.get("client_id")
        if self.daemon is not None and client == self.daemon.spec.client_id:
            return _bearer(self.daemon.tokens(form))
        if client == self.pipeline.application.client_id:
            return _bearer(self.issuer.key.sign(self.pipeline.tokens(form)))
        self._authenticate(form)
        return self._application(form.get("scope", ""))

    def _authenticate(self, form: Mapping[str, str]) -> None:
        client = form.get("client_id", "")
        if client != self.issuer.client:
            raise Refusal(
                "unauthorized_client", 700016, client=client, tenant=self.issuer.tenant
            )
        if not form.get("client_secret"):
            raise Refusal("invalid_client", 7000218, 401)
        if not hmac.compare_digest(
            form["client_secret"].encode(), self.secret.encode()
        ):
            raise Refusal("invalid_client", 7000215, 401, client=client)

    def _code(self, form: Mapping[str, str]) -> dict[str, Any]:
        if not form.get("code"):
            raise Refusal("invalid_request", 900144, field="code")
        grant = self.codes.redeem(form["code"])
        if form.get("redirect_uri") != grant.redirect:
            redirect = form.get("redirect_uri", "")
            raise Refusal(
                "invalid_grant", 500112, redirect=redirect, asked=grant.redirect
            )
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if not hmac.compare_digest(encode(verifier).encode(), grant.challenge.encode()):
            raise Refusal("invalid_grant", 501481)
        if not self.issuer.directory.enabled[grant.person.oid]:
            raise Refusal("invalid_grant", 50057)
        return self._tokens(grant)

    def _tokens(self, grant: Grant) -> dict[str, Any]:
        scopes = grant.scope.split()
        api = self._api_scope(scopes)
        claims = (
            self.issuer.api_token(grant.person, api)
            if api
            else self.issuer.graph_token(grant.person)
        )
        answer = _bearer(self.issuer.key.sign(claims), grant.scope)
        if "openid" in scopes:
            answer["id_token"] = self.issuer.signed_id_token(grant.person, grant.nonce)
        answer["client_info"] = encode_json(
            {"uid": grant.person.oid, "utid": self.issuer.tenant}
        )
        return answer

    def _api_scope(self, scopes: list[str]) -> str:
        prefix = f"api://{self.issuer.client}/"
        asked = [
            scope.removeprefix(prefix) for scope in scopes if scope.startswith(prefix)
        ]
        for scope in asked:
            if scope not in (".default", "access_as_user", *API_SCOPES):
                raise Refusal("invalid_scope", 70011, scope=f"{prefix}{scope}")
        named = [scope for scope in asked if scope != ".default"]
        return " ".join(named) or ("access_as_user" if asked else "")

    def _application(self, scope: str) -> dict[str, Any]:
        if not scope.endswith("/.default"):
            raise Refusal("invalid_scope", 1002012, scope=scope)
        resource = scope.removesuffix("/.default")
        if resource == GRAPH:
            return _bearer(self.issuer.key.sign(self.issuer.graph_token(None)))
        if resource in (f"api://{self.issuer.client}", self.issuer.client):
            return _bearer(self.issuer.key.sign(self.issuer.api_token(None, "")))
        raise Refusal(
            "invalid_resource", 500011, resource=resource, tenant=self.issuer.tenant
        )


def _bearer(token: str, scope: str = "") -> dict[str, Any]:
    answer: dict[str, Any] = {
        "token_type": "Bearer",
        "expires_in": LIFETIME - 1,
        "ext_expires_in": LIFETIME - 1,
    }
    if scope:
        answer["scope"] = scope
    return {**answer, "access_token": token}


def _basic(header: str) -> dict[str, str]:
    kind, _, value = header.partition(" ")
    if kind.lower() != "basic":
        return {}
    try:
        client, _, secret = base64.b64decode(value).decode().partition(":")
    except ValueError as error:
        raise Refusal("invalid_client", 9002313, 401) from error
    return {"client_id": unquote(client), "client_secret": unquote(secret)}
