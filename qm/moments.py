"""Times as people type them: how long, and until when."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, timezone

from qm.endings import Code, Ended

LENGTH = re.compile(r"(?:(\d{1,4})w)?(?:(\d{1,4})d)?(?:(\d{1,4})h)?(?:(\d{1,4})m)?")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}[ Tt]\d{2}:\d{2}(?::\d{2})?(?:[Zz]|[+-]\d{2}:\d{2})?"
)


def length(text: str, *, of: str) -> timedelta:
    """A length of time from 8h, 3d, 2w or 1d12h; raises Ended for anything else `of` an option.

    A plain number is refused: it could be hours as well as days.
    """
    found = LENGTH.fullmatch(text)
    weeks, days, hours, minutes = (
        (int(part or 0) for part in found.groups()) if found else (0,) * 4
    )
    total = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes)
    if not total:
        raise Ended(
            f"{of} takes a time such as 8h, 3d, 2w or 1d12h, not {text!r}.", Code.USAGE
        )
    return total


def moment(text: str, *, of: str, is_end: bool) -> datetime:
    """A moment from a day, or a day and a time, in local time unless it names a zone; raises Ended for anything else.

    A day alone is its beginning, and its midnight after it where something ends then.
    """
    try:
        if DAY.fullmatch(text):
            day = datetime.combine(datetime.fromisoformat(text), time(0))
            return (day + timedelta(days=1) if is_end else day).astimezone()
        if MOMENT.fullmatch(text):
            # Python 3.9 reads no Z.
            return datetime.fromisoformat(
                re.sub("[Zz]$", "+00:00", text).upper()
            ).astimezone()
    except (ValueError, OverflowError):
        pass
    raise Ended(
        f"{of} takes a day such as 2026-12-05, or with its time as in 2026-12-05T18:00, not {text!r}.",
        Code.USAGE,
    )


def written(at: datetime) -> str:
    """A moment as the API takes it."""
    return at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def read(text: str) -> datetime:
    """A moment as the API writes it."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
