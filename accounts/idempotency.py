"""Makes a form that arrives twice do its work once."""

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping

from django.db import IntegrityError, transaction

from accounts.models import Idempotency, User
from web.refusals import Conflict

LONGEST_KEY = 255


def new_key() -> str:
    """A key for the hidden field of a form."""
    return secrets.token_urlsafe(16)


def led_to(user: User, *, route: str, key: str, body: Mapping[str, str]) -> str:
    """The address that the same form led to when it came before; empty when it did not, or said something else."""
    rows = Idempotency.objects.filter(
        user=user, route=route, key=key[:LONGEST_KEY], body_hash=_digest(body)
    )
    return rows.values_list("location", flat=True).first() or ""


def once(
    user: User,
    *,
    route: str,
    key: str,
    body: Mapping[str, str],
    action: Callable[[], str],
) -> str:
    """Do an action and remember the address it leads to; a repetition is led there and does nothing.

    An action that raises is not remembered. A repetition that is under way at the same moment waits for the first.
    Raises Conflict when the key came before with another body.
    """
    row, digest = None, _digest(body)
    try:
        # Almost every key is new: the row itself finds out which is not, and waits for one that is being written.
        with transaction.atomic():
            row = Idempotency.objects.create(
                user=user, route=route, key=key[:LONGEST_KEY], body_hash=digest
            )
            row.location = action()
            row.save(update_fields=["location"])
            return row.location
    except IntegrityError:
        if row is not None:
            raise
    earlier = Idempotency.objects.get(user=user, route=route, key=key[:LONGEST_KEY])
    if earlier.body_hash != digest:
        raise Conflict(
            "This form was sent already, with other values. Look at what it says now and send it again.",
            code="sent_already",
        )
    return earlier.location


def _digest(body: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
