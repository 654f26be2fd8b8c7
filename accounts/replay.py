"""One effect per `Idempotency-Key`: the answer is stored in the transaction of the effect and given again.

Follows draft-ietf-httpapi-idempotency-key-header-07: the same key with another body is 422, a repetition while the
first call is still at work waits for it, or is told 409 when that takes too long.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, OperationalError, transaction
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Idempotency
from web.refusals import BadInput, Conflict

KEY_HELD = (
    "55P03"  # PostgreSQL's lock_not_available; SQLite's errors have no such state
)
KEY_RULE = "1 to 255 visible characters, new for each thing you want done, the same when you repeat a call."
KEY = re.compile(r"[\x21-\x7e]{1,255}")


class KeyMissing(APIException):
    """A call that changes something came without a usable key."""

    status_code = 400
    default_detail = f"Send an Idempotency-Key header: {KEY_RULE}"
    default_code = "idempotency_key_missing"


@dataclass(frozen=True)
class Answer:
    """What a call is answered with; `kept` is stored in the place of a body that holds a secret."""

    body: Any
    status: int = 200
    location: str = ""
    kept: Any = None


def answer_once(request: Request, effect: Callable[[], Answer]) -> Response:
    """Run `effect` and store its answer in one transaction, or give the answer of the first call with this key.

    Raises KeyMissing, BadInput `idempotency_mismatch`, Conflict `in_flight`; a refused effect leaves the key free.
    """
    row = None
    try:
        # Almost every key is new: the claim itself finds out which is not, and waits for one that is being written.
        with transaction.atomic():
            row = Idempotency.objects.create(
                **_place(request), body_hash=_digest(request)
            )
            return _carry_out(row, effect)
    except IntegrityError:
        if row is not None:
            raise
    except OperationalError as error:
        if (
            row is not None
            or getattr(error.__cause__, "sqlstate", KEY_HELD) != KEY_HELD
        ):
            raise  # nobody else is at work: what this call needed was held, or the database went away or is full
        if not Idempotency.objects.filter(**_place(request)).exists():
            raise Conflict(
                "A call with this key is still at work. Repeat it in a moment.",
                code="in_flight",
            ) from error
    earlier = earlier_answer(request)
    if earlier is None:
        raise Conflict(
            "A call with this key is still at work. Repeat it in a moment.",
            code="in_flight",
        )
    return earlier


def earlier_answer(request: Request) -> Response | None:
    """The answer already given to this key, marked `Idempotency-Replayed`; None for a new key."""
    row = Idempotency.objects.filter(**_place(request)).first()
    if row is None:
        return None
    if row.body_hash != _digest(request):
        raise BadInput(
            "This key came with another body before. Use a new key for a new call.",
            code="idempotency_mismatch",
        )
    headers = {"Idempotency-Replayed": "true"} | (
        {"Location": row.location} if row.location else {}
    )
    return Response(row.body, status=row.status, headers=headers)


def _place(request: Request) -> dict[str, Any]:
    key = request.headers.get("Idempotency-Key", "")
    if not KEY.fullmatch(key):
        raise KeyMissing
    match = request.resolver_match
    return {
        "user": request.user,
        "route": match.route[:120] if match else "",
        "key": key,
    }


def _digest(request: Request) -> str:
    """SHA-256 over the address and the body, whatever the order of its fields."""
    text = json.dumps([request.path, request.data], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _carry_out(row: Idempotency, effect: Callable[[], Answer]) -> Response:
    answer = effect()
    kept = answer.body if answer.kept is None else answer.kept
    row.body = json.loads(JSONRenderer().render(kept))
    row.status, row.location = answer.status, answer.location
    row.save(update_fields=["body", "status", "location"])
    headers = {"Location": answer.location} if answer.location else {}
    return Response(answer.body, status=answer.status, headers=headers)
