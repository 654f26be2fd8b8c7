"""Between which ends a vote may choose: never later than what is asked for now, and never too soon after it begins."""

from datetime import datetime

from approvals.models import Request
from approvals.renewals import renewing
from approvals.renewals.renewing import SHORTEST
from policy.evaluation import DAY, least_days
from ui.amounts import moment
from web.refusals import BadInput


def approved_end(
    request: Request, until: datetime | None, *, now: datetime
) -> datetime:
    """Until when a vote is for: as long as is asked for now, or shorter; raises BadInput."""
    latest = request.until_now
    # What is over is refused as such, by the action.
    if until is None or until == latest or latest <= now:
        return latest
    earliest = earliest_end(
        max(now, request.starts_at or now), _present_end(request, now=now)
    )
    if not earliest <= until <= latest:
        raise BadInput(
            out_of_range(earliest, latest, now=now),
            code="end_out_of_range",
            field="until",
        )
    return until


def earliest_end(begins: datetime, own_until: datetime | None) -> datetime:
    """The earliest end that a vote can choose: a day after it begins, or the least whole days that the policy knows.

    `own_until` is the present end of what a renewal keeps, which it outlasts by as much as any renewal.
    """
    after_begin = begins + least_days(begins, own_until) * DAY
    return after_begin if own_until is None else max(after_begin, own_until + SHORTEST)


def out_of_range(earliest: datetime, latest: datetime, *, now: datetime) -> str:
    """Which ends can be approved, in a sentence."""
    if earliest >= latest:
        return (
            "It cannot be approved for a shorter time: "
            f"it ends on {moment(latest, now)}, and {moment(earliest, now)} would be the earliest end."
        )
    return f"Approve an end between {moment(earliest, now)} and {moment(latest, now)}."


def whole_time(request: Request, until: datetime | None) -> datetime | None:
    """What a form says of the end: None for all of the time, which it writes without its seconds."""
    latest = request.until_now
    return None if until in (latest, latest.replace(second=0, microsecond=0)) else until


def _present_end(request: Request, *, now: datetime) -> datetime | None:
    """The end of what a renewal keeps longer; None for what keeps nothing any more."""
    if request.renews is None:
        return None
    held = renewing.held_under(request.renews, now=now)
    return held.until if held is not None else None
