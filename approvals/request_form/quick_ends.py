"""Ends that one click chooses on a form: tonight, or some days from now."""

from datetime import UTC, datetime, time, timedelta

DAYS = {"3": "3 days", "7": "1 week", "14": "2 weeks"}


def quick_ends(now: datetime) -> list[tuple[str, str]]:
    """The choices with their words, the earliest first."""
    return [("day", end_of_day_words(now).capitalize()), *DAYS.items()]


def quick_end(choice: str, now: datetime) -> datetime:
    """The end that a choice stands for: tonight, or whole days from the last full hour; unknown ones are one day."""
    if choice == "day":
        return end_of_day(now)
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    days = int(choice) if choice in DAYS else 1
    return hour + timedelta(days=days)


def end_of_day(now: datetime) -> datetime:
    """The next midnight in UTC that is at least four hours ahead."""
    later = now.astimezone(UTC) + timedelta(hours=4)
    return datetime.combine(later.date() + timedelta(days=1), time(0), UTC)


def end_of_day_words(now: datetime) -> str:
    """ "today", or in the last four hours of a day, which are too few, "until tomorrow night"."""
    tonight = now.astimezone(UTC).date() + timedelta(days=1)
    return "today" if end_of_day(now).date() == tonight else "until tomorrow night"
