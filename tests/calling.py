"""Calls to the API as a person with a token makes them."""

import json
from itertools import count
from typing import Any

from django.test import Client
from django.utils import timezone

from accounts.models import ApiToken, User
from accounts.tokens.actions import create_token

V1 = "/api/v1/"
_keys = count(1)


def token_of(user: User, scope: str = ApiToken.Scope.WRITE) -> str:
    """A new token's secret."""
    return create_token(
        user=user, name="tests", scope=scope, days=1, now=timezone.now()
    )[1]


class Caller:
    """A person, or nobody, who calls the API; paths begin behind /api/v1/ unless they begin with a slash."""

    def __init__(
        self, user: User | None = None, scope: str = ApiToken.Scope.WRITE
    ) -> None:
        self.user = user
        self.headers = (
            {"Authorization": f"Bearer {token_of(user, scope)}"} if user else {}
        )
        self.client = Client(raise_request_exception=False)

    def get(self, path: str, **headers: str) -> Any:
        """GET."""
        return self.client.get(address(path), headers=self.headers | headers)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = "",
        **headers: str,
    ) -> Any:
        """Any method with a JSON body; a new Idempotency-Key unless one is given, None for none."""
        given = {} if key is None else {"Idempotency-Key": key or f"key-{next(_keys)}"}
        raw = (
            body
            if isinstance(body, str | bytes)
            else json.dumps({} if body is None else body)
        )
        return self.client.generic(
            method,
            address(path),
            raw,
            content_type="application/json",
            headers=self.headers | given | headers,
        )

    def post(
        self, path: str, body: object = None, *, key: str | None = "", **headers: str
    ) -> Any:
        """POST."""
        return self.send("POST", path, body, key=key, **headers)

    def patch(self, path: str, body: object = None) -> Any:
        """PATCH."""
        return self.send("PATCH", path, body, key=None)

    def put(self, path: str, body: object = None) -> Any:
        """PUT."""
        return self.send("PUT", path, body, key=None)

    def delete(self, path: str) -> Any:
        """DELETE."""
        return self.client.delete(address(path), headers=self.headers)


def address(path: str) -> str:
    """The whole path."""
    return path if path.startswith("/") else V1 + path
