"""What would be said to an ask, as the API tells it; nothing is stored."""

from datetime import datetime
from typing import Any

from accounts.models import User
from allocations import money
from approvals.actions import Wanted, check, judge
from approvals.presenting import cost_per_day, usual_wait
from approvals.standing import answer_of


def preview_of(wanted: Wanted, *, by: User, now: datetime) -> dict[str, Any]:
    """The answer that would be stored, the nearest automatic ask, and quota, cost and budget before and after.

    Raises Refused for what no policy could make sense of, like `submit`.
    """
    check(wanted, by=by, now=now)
    judged = judge(wanted, now=now)
    answer, held = answer_of(judged.answer), judged.standing.held_gpus
    nearest, wait = judged.nearest, usual_wait(answer["route"])
    per_day = cost_per_day(wanted.tenancy.team_id)
    parts = money.by_month(
        gpus=wanted.gpus, price=judged.standing.price_per_gpu_hour, start=now, end=wanted.until
    )
    left = judged.standing.budget_left
    return {
        "policy": judged.policy.number,
        "answer": answer,
        "nearest_automatic": {"gpus": nearest.gpus, "until": nearest.until} if nearest else None,
        "quota": {"before": held, "after": held + wanted.gpus},
        "usd_per_day": {"before": str(per_day), "after": str(per_day + judged.answer.usd_per_day)},
        "budget": [
            {
                "month": f"{month:%Y-%m}",
                "limit_usd": str(left[month][1]),
                "left_before": str(left[month][0]),
                "left_after": str(left[month][0] - usd),
            }
            for month, usd in parts.items()
        ],
        "usual_seconds": int(wait.total_seconds()) if wait is not None and answer["route"] else None,
    }
