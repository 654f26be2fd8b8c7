"""What spot capacity saves and what it costs in work that is done twice, beside on-demand capacity. Pure.

An interruption loses what was done since the last checkpoint, half an interval on average, and the time until the run
goes on. Lost work is done again, and can be interrupted again. One node of a gang that is lost interrupts all of them.
"""

from dataclasses import dataclass
from decimal import Decimal

HOUR = Decimal(60)
HALF = Decimal("0.5")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run as it is priced. Prices are USD per GPU-hour; `rate` is interruptions of one node in an hour.

    `interval` is minutes between checkpoints, None without any: then an interruption loses half of the whole run.
    `restart` is minutes from an interruption until the program goes on.
    """

    gpus: int
    nodes: int
    hours: Decimal
    on_demand: Decimal
    spot: Decimal
    rate: Decimal
    interval: int | None
    restart: int = 10


@dataclass(frozen=True)
class Comparison:
    """What a run costs either way, in USD. `hours` is how long it takes on spot, None when it would never finish.

    `lost` is what one interruption costs, `interruptions` how many are expected. `break_even` is the longest interval
    between checkpoints, in minutes, with which spot is not dearer; None when every interval pays, 0 when none does.
    """

    on_demand: Decimal
    spot: Decimal | None
    hours: Decimal | None
    interruptions: Decimal
    lost: Decimal
    break_even: int | None

    @property
    def saves(self) -> Decimal:
        """What spot saves; negative when it is dearer or would never finish."""
        return self.on_demand - self.spot if self.spot is not None else -self.on_demand


def compare(plan: Plan) -> Comparison:
    """The same run on spot and on on-demand capacity."""
    rate = plan.rate * plan.nodes
    loss = _loss(plan)
    # Of each hour on spot this part moves the run forward; the rest is work that an interruption took.
    forward = 1 - rate * loss
    hours = plan.hours / forward if forward > 0 else None
    by_hour = plan.spot * plan.gpus
    return Comparison(
        on_demand=plan.on_demand * plan.gpus * plan.hours,
        spot=None if hours is None else by_hour * hours,
        hours=hours,
        interruptions=rate * (hours if hours is not None else plan.hours),
        lost=by_hour * loss,
        break_even=_break_even(plan, rate),
    )


def _loss(plan: Plan) -> Decimal:
    """Hours that one interruption takes."""
    since = (
        plan.hours if plan.interval is None else min(plan.interval / HOUR, plan.hours)
    )
    return since * HALF + plan.restart / HOUR


def _break_even(plan: Plan, rate: Decimal) -> int | None:
    if not rate or not plan.on_demand:
        return None if plan.spot <= plan.on_demand else 0
    # Spot is as dear as on-demand when the part of each hour that is lost is as large as the discount.
    longest = (1 - plan.spot / plan.on_demand) / rate - plan.restart / HOUR
    return max(0, int(longest / HALF * HOUR))
