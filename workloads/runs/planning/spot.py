"""What a run costs on spot and on on-demand capacity, and the words for it. Pure."""

from dataclasses import dataclass, replace
from decimal import Decimal

from ui.amounts import usd
from workloads import economics
from workloads.economics import Comparison
from workloads.runs.planning.plan import Plan

HOUR = Decimal(3600)
MINUTES = Decimal(60)


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A run on spot beside the same run on demand, which of both was chosen, and a sentence about it in `words`.

    `found` is None where nobody has said how often nodes are taken back, or where the run has no time limit;
    `is_cheaper` then compares the prices alone.
    """

    is_chosen: bool
    is_cheaper: bool
    words: str
    found: Comparison | None


def spot_of(plan: Plan) -> Spot | None:
    """The comparison for a plan that can be sent; None for a run without GPUs or without the other price."""
    pool = plan.pool
    if pool is None or not plan.gpus or pool.other_usd is None or plan.problems:
        return None
    on_demand, spot = (
        (pool.other_usd, pool.usd_per_hour)
        if pool.is_spot
        else (pool.usd_per_hour, pool.other_usd)
    )
    if not pool.interruption_hours or not plan.seconds:
        return Spot(
            is_chosen=pool.is_spot,
            is_cheaper=spot < on_demand,
            words=_discount(on_demand, spot),
            found=None,
        )
    hours = plan.seconds / HOUR
    # The nodes of a gang go on together or not at all; each pod of a sweep loses its own work alone.
    nodes, alike = (plan.pods, 1) if plan.is_gang else (1, plan.pods)
    found = economics.compare(
        economics.Plan(
            gpus=plan.gpus // alike,
            nodes=nodes,
            hours=hours,
            on_demand=on_demand,
            spot=spot,
            rate=1 / Decimal(pool.interruption_hours),
            interval=plan.checkpoint_minutes or None,
        )
    )
    whole = replace(
        found,
        on_demand=found.on_demand * alike,
        spot=None if found.spot is None else found.spot * alike,
        interruptions=found.interruptions * alike,
    )
    return Spot(
        is_chosen=pool.is_spot,
        is_cheaper=whole.saves > 0,
        words=_words(whole, plan, pool.interruption_hours),
        found=whole,
    )


def _discount(on_demand: Decimal, spot: Decimal) -> str:
    less = 1 - spot / on_demand
    much = f"{less:.0%} less than" if less > 0 else "no less than"
    return (
        f"A GPU-hour on spot costs {usd(spot)}, {much} on demand. Nobody has said how often its nodes are taken "
        "back, or the run has no time limit: what is lost that way cannot be told."
    )


def _words(found: Comparison, plan: Plan, every: int) -> str:
    taken = f"A node is taken back every {every} hours on average"
    if found.spot is None:
        return (
            f"{taken}: without checkpoints in between, a run over {plan.pods} nodes would never finish on spot. "
            "Say how often the program writes one."
        )
    times = (
        f"about {found.interruptions:.1f} times"
        if found.interruptions >= 1
        else "less than once"
    )
    lost = (
        f"half of the {plan.checkpoint_minutes} minutes between checkpoints"
        if plan.checkpoint_minutes
        else "half of the run on average: as long as nobody says how many minutes lie between two checkpoints, the "
        "portal counts on none"
    )
    verdict = (
        f"Spot costs about {usd(found.spot)} instead of {usd(found.on_demand)}"
        if found.saves > 0
        else f"Spot is dearer here: about {usd(found.spot)} against {usd(found.on_demand)}"
    )
    said = [
        f"{verdict}.",
        f"{taken}, {times} in this run; each time loses {usd(found.lost)}, {lost}.",
    ]
    if found.break_even and plan.checkpoint_minutes and found.saves > 0:
        said.append(
            f"It pays while checkpoints are at most {span_words(found.break_even)} apart."
        )
    return " ".join(said)


def span_words(minutes: int) -> str:
    """Minutes, or hours from two of them on."""
    return f"{minutes} minutes" if minutes < 2 * MINUTES else f"{minutes // 60} hours"
