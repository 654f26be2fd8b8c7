"""Ends that one click chooses on a form: tonight, or some days from now."""

from datetime import UTC, datetime, time, timedelta

QUICK_ENDS = [("day", "Today"), ("3", "3 days"), ("7", "1 week"), ("14", "2 weeks")]


def quick_end(choice: str, now: datetime) -> datetime:
    """The end that a choice stands for: tonight, or whole days from the last full hour; unknown ones are one day."""
    if choice == "day":
        return end_of_day(now)
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    days = int(choice) if choice in dict(QUICK_ENDS) else 1
    return hour + timedelta(days=days)


def end_of_day(now: datetime) -> datetime:
    """The next midnight in UTC that is at least four hours ahead."""
    later = now.astimezone(UTC) + timedelta(hours=4)
    return datetime.combine(later.date() + timedelta(days=1), time(0), UTC)
