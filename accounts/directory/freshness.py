"""Deciding needs rights that the directory confirmed a moment ago; reading goes on with what was known."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog
from django.utils import timezone

from accounts.directory import reconcile as following
from accounts.directory.client import graph
from accounts.directory.models import Reason
from accounts.models import Contact, User
from connectors.errors import ConnectorError
from web.refusals import Away, NoRight

logger = structlog.get_logger(__name__)
CONFIRMED_FOR = timedelta(minutes=5)
# A person who decides ten requests in a row is asked about once, and a directory that is away is not waited for
# ten times.
JUST_ASKED = timedelta(seconds=15)


def renew(user: User, *, now: datetime) -> None:
    """Ask the directory about this person and make their rights what it says; outside of any transaction.

    Never raises for a directory that is away: the last known rights stay, and `check` tells whether they are enough.
    """
    if user.groups_known_at is not None and user.groups_known_at > now - JUST_ASKED:
        return
    if Contact.objects.failing().filter(failed_at__gt=now - JUST_ASKED).exists():
        return
    try:
        following.follow(user, graph=graph(), now=now)
    except ConnectorError as error:
        logger.warning("the directory does not answer", error=error.message)
        Contact.objects.failed(now, error.message)
    else:
        Contact.objects.answered(now)
    user.read_again()


def hold(users: Iterable[int]) -> None:
    """Keep what these people may do as it is until the transaction ends, or wait for who is changing it."""
    rows = User.objects.filter(pk__in=list(users)).order_by("pk")
    list(rows.select_for_update(no_key=True).values_list("pk", flat=True))


def check(user: User, *, now: datetime) -> None:
    """Refuse to go on for somebody whose rights were not confirmed within five minutes; inside the transaction.

    The person's row is locked, so that a role that is being withdrawn meanwhile is waited for.

    Raises Away `directory_away`, and NoRight `account_disabled` for somebody whom the directory has blocked.
    """
    hold([user.pk])
    known, is_active, role, doubt = (
        User.objects.filter(pk=user.pk)
        .values_list(
            "groups_known_at", "is_active", "roles_held__role", "doubt__reason"
        )
        .first()
    ) or (None, False, None, None)
    if doubt is not None:
        raise Away(
            f"Nothing was changed: Entra ID says of you “{Reason(doubt).label}”, and it is not certain yet whether "
            "that is so. Try again in a few minutes.",
            code="directory_away",
        )
    if known is None or known < now - CONFIRMED_FOR:
        raise Away(
            "Nothing was changed: Entra ID does not answer, so it cannot be confirmed that you may decide. "
            "Try again in a few minutes.",
            code="directory_away",
        )
    if role is None or not is_active:
        raise NoRight(
            "This account is disabled. Ask your administrator.", code="account_disabled"
        )


def notice(now: datetime) -> str:
    """What people who decide are told while the directory does not answer; empty while it does."""
    return notice_since(Contact.objects.silent_since().first(), now)


def notice_since(since: datetime | None, now: datetime) -> str:
    """The same for a moment that was read already; empty for None."""
    if since is None:
        return ""
    said = f"Entra ID has not answered since {_moment(since, now)}."
    return f"{said} Reading goes on with what was known; decisions wait."


def _moment(at: datetime, now: datetime) -> str:
    local, today = timezone.localtime(at), timezone.localtime(now)
    return (
        f"{local:%H:%M}"
        if local.date() == today.date()
        else f"{local:%a} {local.day} {local:%b, %H:%M}"
    )
