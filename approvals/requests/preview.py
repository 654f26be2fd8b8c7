"""What would be said to an ask, as the API tells it; nothing is stored."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from accounts.models import User
from allocations.budgets import money
from allocations.budgets.money import Amount, Left
from approvals.judging.inputs import answer_of, remedies_shown
from approvals.renewals import renewing
from approvals.renewals.words import goes_on
from approvals.requests.actions import Judged, check, judge
from approvals.requests.presenting import (
    cost_per_day,
    held_at,
    over_budget,
    usual_wait,
)
from approvals.requests.vacancies import of_plans
from approvals.requests.wanted import Wanted
from catalogue.models import follows
from policy.evaluation import Outcome


def held_and_paid_before(
    judged: Judged, *, per_day: Callable[[], Decimal], now: datetime
) -> tuple[int, Decimal]:
    """GPUs that its namespace holds of its flavor, and USD a day that its team pays, before it is granted.

    Of a booking that is when it begins; `per_day` is asked for what begins at once.
    """
    begins = judged.ask.begins(now)
    if begins > now:
        return held_at(judged.wanted, begins)
    return judged.standing.held_gpus, per_day()


def preview_of(wanted: Wanted, *, by: User, now: datetime) -> dict[str, Any]:
    """The answer that would be stored, the nearest automatic ask, and quota, cost and budget before and after.

    Raises Refused for what no policy could make sense of, like `submit`.
    """
    check(wanted, by=by, now=now)
    renewing.check(wanted, now=now)
    return told(judge(wanted, person=by, now=now), by=by, now=now)


def told(judged: Judged, *, by: User, now: datetime) -> dict[str, Any]:
    """The same of an ask that is judged already, such as the first one of a team that is not there yet."""
    wanted, answer = judged.wanted, answer_of(judged.answer)
    nearest, wait = judged.nearest, usual_wait(answer["route"])
    later = judged.later
    held, per_day = held_and_paid_before(
        judged, per_day=lambda: cost_per_day(wanted.team.pk), now=now
    )
    own = min(judged.standing.own_gpus, wanted.gpus)
    parts = money.by_month(
        gpus=wanted.gpus,
        usd_per_hour=judged.ask.usd_per_hour,
        start=judged.ask.begins(now),
        end=wanted.until,
    )
    vacant = of_plans(judged.answer.route, by)
    left, more = (
        judged.standing.budget,
        judged.answer.usd_per_day - goes_on(wanted, now=now),
    )
    return {
        "policy": judged.version.number,
        "offering": wanted.offering.key,
        "name": wanted.name,
        "formula": wanted.size.told,
        "reversible_minutes": wanted.offering.reversible_minutes,
        "after_approval": list(follows(wanted.offering)),
        "answer": answer,
        "nearest_automatic": {"count": nearest.count, "until": nearest.until}
        if nearest
        else None,
        "automatic_from": later,
        "fits_from": judged.fits_from,
        "remedies": remedies_shown(judged.remedies),
        "quota": {"before": held, "after": held + wanted.gpus - own},
        "usd_per_day": {"before": str(per_day), "after": str(per_day + more)},
        "budget": [_month(month, left[month], part) for month, part in parts.items()],
        "over_budget": over_budget(answer, viewer=by)
        if judged.answer.outcome is Outcome.PEOPLE
        else "",
        "empty_seats": vacant.empty,
        "unread_seats": vacant.unread,
        "usual_seconds": int(wait.total_seconds())
        if wait is not None and answer["route"]
        else None,
    }


def _month(month: date, left: Left, part: Amount) -> dict[str, Any]:
    hours = None if left.gpu_hours is None else left.gpu_hours - part.gpu_hours
    return {
        "month": f"{month:%Y-%m}",
        "limit_usd": str(left.usd_limit),
        "left_before": str(left.usd),
        "left_after": str(left.usd - part.usd),
        "gpu_hours_limit": None
        if left.gpu_hours_limit is None
        else str(left.gpu_hours_limit),
        "gpu_hours_left_before": None
        if left.gpu_hours is None
        else str(left.gpu_hours),
        "gpu_hours_left_after": None if hours is None else str(hours),
    }
