"""What somebody came with, and whether it is still good: for answers that go on after the request was let in."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.contrib.sessions.models import Session

from accounts.models import ApiToken, Identity


@dataclass(frozen=True)
class Credential:
    """A personal token by its number, a session by its key, or a token issued elsewhere, good `until` it expires.

    One of an application that acts for a team is good as long as that `identity` is there, too.
    """

    user_id: int
    token: int | None = None
    session: str = ""
    until: datetime | None = None
    identity: int | None = None


def still_good(found: Collection[Credential], *, now: datetime) -> set[Credential]:
    """Those that are neither revoked, suspended, signed out of nor expired; three queries however many there are."""
    tokens = {one.token for one in found if one.token is not None}
    sessions = {one.session for one in found if one.session}
    usable = ApiToken.objects.usable(now).filter(pk__in=tokens)
    open_ones = Session.objects.filter(session_key__in=sessions, expire_date__gt=now)
    good_tokens = set(usable.values_list("pk", flat=True)) if tokens else set()
    good_sessions = (
        set(open_ones.values_list("session_key", flat=True)) if sessions else set()
    )
    identities = {one.identity for one in found if one.identity is not None}
    live = Identity.objects.acting(now).filter(pk__in=identities)
    acting = {None, *(live.values_list("pk", flat=True) if identities else ())}
    return {
        one
        for one in found
        if one.token in good_tokens
        or one.session in good_sessions
        or (one.until is not None and now < one.until and one.identity in acting)
    }
