"""Having what a worker makes in Azure tried again at once, because a person asks for it."""

from datetime import datetime
from typing import Any, Protocol

from accounts.models import User
from accounts.roles import Permission
from web.refusals import NoRight


class Retriable(Protocol):
    """A row that a worker makes true, with what it says of its last failure."""

    message: str
    parked_at: datetime | None

    def retry(self, *, now: datetime) -> list[str]: ...
    def save(self, *, update_fields: list[str]) -> Any: ...


def require_lead(user: User) -> None:
    """Raises NoRight for who does not manage clusters."""
    if not user.may(Permission.MANAGE_CLUSTERS):
        raise NoRight("Platform leads have it tried again.", code="not_a_platform_lead")


def retry_now(row: Retriable, *, now: datetime) -> bool:
    """Have a locked row tried now, whatever wait its failures had earned it; whether it was parked.

    What a parked row says is taken back with it. It is harmless to repeat.
    """
    was_parked = row.parked_at is not None
    row.message = "" if was_parked else row.message
    row.save(update_fields=["message", *row.retry(now=now)])
    return was_parked
