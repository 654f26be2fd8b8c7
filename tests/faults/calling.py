"""A person who calls the API over HTTP with a token of their own, and repeats a call as an honest client does."""

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from random import uniform
from typing import Any, TypeVar

import requests
from django.utils import timezone

from accounts.models import ApiToken, User

T = TypeVar("T")
LONGEST = 60.0


@dataclass(frozen=True)
class Caller:
    """One person's token at one portal."""

    url: str
    secret: str

    def get(self, path: str) -> requests.Response:
        """Read."""
        return requests.get(
            f"{self.url}/api/v1/{path}", headers=self._headers(), timeout=LONGEST
        )

    def patch(self, path: str, body: dict[str, Any], *, seen: str) -> requests.Response:
        """Change something that was seen with this ETag."""
        headers = self._headers() | {"If-Match": seen}
        return requests.patch(
            f"{self.url}/api/v1/{path}", json=body, headers=headers, timeout=LONGEST
        )

    def post(
        self, path: str, body: dict[str, Any], *, key: str = "", seen: str = ""
    ) -> requests.Response:
        """Change something once; `seen` is the ETag it was seen with. A 503 or a key at work is repeated as told."""
        headers = self._headers() | {"Idempotency-Key": key or uuid.uuid4().hex}
        headers |= {"If-Match": seen} if seen else {}
        deadline = time.monotonic() + LONGEST
        while True:
            answer = requests.post(
                f"{self.url}/api/v1/{path}", json=body, headers=headers, timeout=LONGEST
            )
            again = answer.status_code == 503 or (
                answer.status_code == 409 and answer.json()["code"] == "in_flight"
            )
            if not again or time.monotonic() > deadline:
                return answer
            # As it was told: whoever hammers on a busy server keeps it busy.
            time.sleep(float(answer.headers.get("Retry-After", 0.2)) * uniform(0.5, 1))

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}


def caller(user: User, url: str) -> Caller:
    """This person with a new token that may write."""
    prefix, secret = ApiToken.new_secret()
    ApiToken.objects.create(
        user=user,
        name="test",
        prefix=prefix,
        digest=ApiToken.hash_of(secret),
        scope=ApiToken.Scope.WRITE,
        expires_at=timezone.now() + timedelta(days=1),
    )
    return Caller(url, secret)


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run all calls at the same moment, each in a thread of its own; results in the same order."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        barrier.wait(timeout=30)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))
