"""The part of a Backstage backend that answers other services: keys of plugins and people, users of its catalog, and
notifications.

Held against `@backstage/backend-defaults` 0.19, `plugin-catalog-backend` 4.0 and `plugin-notifications-backend` 0.6.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

CATALOG_TOKEN = "catalog-reader"
NOTICES_TOKEN = "notifier"
OBJECT_ID = "graph.microsoft.com/user-id"
HOUR = 3600
OK, AWAY = 200, 503


class Key:
    """A signing key (ES256) of a plugin, or of the auth service."""

    def __init__(self) -> None:
        self._private = ec.generate_private_key(ec.SECP256R1())
        self.kid = str(uuid4())

    def sign(self, claims: dict[str, Any], *, kind: str) -> str:
        """A token whose header says that it is of this kind."""
        headers = {"typ": kind, "kid": self.kid}
        return jwt.encode(claims, self._private, algorithm="ES256", headers=headers)

    def jwks(self) -> dict[str, Any]:
        """The public half, as the backend publishes it."""
        public = json.loads(ECAlgorithm.to_jwk(self._private.public_key()))
        return {"keys": [{**public, "kid": self.kid, "alg": "ES256"}]}


@dataclass
class SandboxBackstage:
    """A backend with two plugins; `users` are object ids by name in the catalog's default namespace, empty for none."""

    users: dict[str, str] = field(default_factory=dict)
    plugins: dict[str, Key] = field(
        default_factory=lambda: {"scaffolder": Key(), "mcp-actions": Key()}
    )
    people: Key = field(default_factory=Key)
    is_away: bool = False
    # What it answers in the place of keys and of what is known of a user.
    odd_keys: Any = None
    odd_metadata: dict[str, Any] | None = None
    trickles: bool = False
    asked: list[str] = field(default_factory=list)
    # What the plugin for notifications answers; what people see, newest last, with one line for a scope.
    notifying: int = OK
    shown: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def person_token(self, name: str, **changes: Any) -> str:
        """A limited token of a person, as it stands in `obo`; None takes a claim away."""
        now = int(time.time())
        claims = {"sub": f"user:default/{name}", "iat": now, "exp": now + HOUR}
        return self.people.sign(
            _changed(claims, changes), kind="vnd.backstage.limited-user"
        )

    def token(
        self,
        name: str = "",
        *,
        plugin: str = "scaffolder",
        key: Key | None = None,
        kind: str = "vnd.backstage.plugin",
        **changes: Any,
    ) -> str:
        """A plugin's token for the portal, for a person unless the name is empty; None takes a claim away."""
        now = int(time.time())
        claims = {"sub": plugin, "aud": "quartermaster", "iat": now, "exp": now + HOUR}
        if name:
            claims["obo"] = self.person_token(name)
        return (key or self.plugins[plugin]).sign(_changed(claims, changes), kind=kind)

    @property
    def app(self) -> Starlette:
        """The application."""
        return Starlette(
            routes=[
                Route("/api/auth/.well-known/jwks.json", self._keys_of_people),
                Route("/api/{plugin}/.backstage/auth/v1/jwks.json", self._keys_of),
                Route(
                    "/api/catalog/entities/by-name/user/default/{name}", self._entity
                ),
                Route("/api/catalog/entities/by-query", self._entities),
                Route(
                    "/api/notifications/notifications", self._notify, methods=["POST"]
                ),
            ]
        )

    def _noted(self, request: Request) -> Response | None:
        self.asked.append(request.url.path)
        return JSONResponse({}, AWAY) if self.is_away else None

    async def _keys_of_people(self, request: Request) -> Response:
        return self._noted(request) or JSONResponse(self.people.jwks())

    async def _keys_of(self, request: Request) -> Response:
        key = self.plugins.get(request.path_params["plugin"])
        if self.trickles:
            return StreamingResponse(_trickle(), media_type="application/json")
        if self.odd_keys is not None:
            return self._noted(request) or JSONResponse(self.odd_keys)
        return self._noted(request) or (
            JSONResponse(key.jwks()) if key else _failure(404, "NotFoundError")
        )

    async def _entity(self, request: Request) -> Response:
        if away := self._noted(request):
            return away
        if request.headers.get("authorization") != f"Bearer {CATALOG_TOKEN}":
            return _failure(401, "AuthenticationError")
        if self.odd_metadata is not None:
            return JSONResponse(self.odd_metadata)
        name = request.path_params["name"]
        if name not in self.users:
            return _failure(404, "NotFoundError")
        told = self.users[name]
        annotations = {OBJECT_ID: told} if told else {}
        metadata = {"name": name, "namespace": "default", "annotations": annotations}
        return JSONResponse({"kind": "User", "metadata": metadata})

    async def _entities(self, request: Request) -> Response:
        """Users by their object id, the one filter that is known here; only the fields that were asked for."""
        if away := self._noted(request):
            return away
        if request.headers.get("authorization") != f"Bearer {CATALOG_TOKEN}":
            return _failure(401, "AuthenticationError")
        if self.odd_metadata is not None:
            return JSONResponse(self.odd_metadata)
        kind, _, wanted = request.query_params["filter"].partition(",")
        key, _, oid = wanted.partition("=")
        if (kind, key) != ("kind=user", f"metadata.annotations.{OBJECT_ID}"):
            return _failure(400, "InputError")
        found = [
            {"metadata": {"namespace": "default", "name": name}}
            for name, told in self.users.items()
            if told == oid
        ]
        limit = int(request.query_params["limit"])
        return JSONResponse(
            {"items": found[:limit], "totalItems": len(found), "pageInfo": {}}
        )

    async def _notify(self, request: Request) -> Response:
        if away := self._noted(request):
            return away
        if request.headers.get("authorization") != f"Bearer {NOTICES_TOKEN}":
            return _failure(401, "AuthenticationError")
        if self.notifying != OK:
            return _failure(self.notifying, "Error")
        body = await request.json()
        recipients, payload = body["recipients"], body["payload"]
        if recipients["type"] != "entity" or not payload["title"]:
            return _failure(400, "InputError")
        lines = self.shown.setdefault(recipients["entityRef"], {})
        lines.pop(payload["scope"], None)
        lines[payload["scope"]] = payload
        return JSONResponse([{"payload": payload, "origin": "external:quartermaster"}])


async def _trickle() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(0.02)


def _changed(claims: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    found = {**claims, **changes}
    return {name: value for name, value in found.items() if value is not None}


def _failure(status: int, name: str) -> Response:
    """A refusal as the backend's middleware puts it."""
    error = {"name": name, "message": "Refused."}
    return JSONResponse(
        {"error": error, "response": {"statusCode": status}}, status_code=status
    )
