"""When a limit is expected to be reached, in words."""

from datetime import datetime, timedelta

from capacity.chain.forecast import MAX_AHEAD, Forecast
from capacity.models import Meter
from ui.amounts import day


def expected_words(ahead: Forecast | None, meter: Meter, now: datetime) -> str:
    """When a limit is expected to be reached, in words with the interval."""
    if meter.used >= meter.limit:
        return "reached"
    if ahead is None:
        return "not known before five weeks of readings"
    weeks = MAX_AHEAD.days // 7
    if ahead.crosses_at is None:
        if ahead.earliest is None:
            return f"not within {weeks} weeks"
        return f"not within {weeks} weeks; it may be from {day(ahead.earliest, now)} on"
    if (
        ahead.latest
        and ahead.earliest
        and ahead.latest - ahead.earliest < timedelta(days=2)
    ):
        return f"reached about {day(ahead.crosses_at, now)}"
    latest = (
        f"and {day(ahead.latest, now)}"
        if ahead.latest is not None
        else f"and more than {weeks} weeks from now"
    )
    earliest = day(ahead.earliest or ahead.crosses_at, now)
    return f"reached about {day(ahead.crosses_at, now)}, four times out of five between {earliest} {latest}"
