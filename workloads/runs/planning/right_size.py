"""What the use of a run's GPUs says about the next size: a kind with less memory, or fewer GPUs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from math import ceil

from ui.amounts import rate
from workloads.gpu_use.busy import percent
from workloads.gpu_use.overall import Overall
from workloads.runs.planning.pools import Pool, Recommended, recommended
from workloads.templates.library import Template

# A shorter run is a try, of which the next size does not follow.
WORTH_JUDGING = timedelta(minutes=10)
# Below half, a GPU waits more than it computes.
LOW_SHARE = 0.5
# Peaks shorter than Prometheus' interval are not seen, and a slice has a little less than its name says.
HEADROOM = 1.2


@dataclass(frozen=True, kw_only=True)
class OwnKind:
    """The kind of GPU that a run had: its name, GB of one GPU, its USD of a GPU-hour, and whether it is spot."""

    name: str
    memory: int
    usd_per_hour: Decimal
    is_spot: bool = False


def is_worth_judging(use: Overall) -> bool:
    """Whether so much was measured that the next size follows from it."""
    return (
        use.share is not None
        and use.measured >= WORTH_JUDGING
        and use.is_measured_mostly
    )


def memory_needed(use: Overall) -> int | None:
    """GB that one GPU of the next run has to have; None where nobody measured it."""
    return None if use.peak_gb is None else max(ceil(use.peak_gb * HEADROOM), 1)


def may_be_smaller(use: Overall, had: OwnKind) -> bool:
    """Whether a GPU with less memory than the run had would do, if there is one."""
    needed = memory_needed(use)
    return is_worth_judging(use) and needed is not None and needed < had.memory


def smaller_kind(
    use: Overall,
    had: OwnKind,
    held: Mapping[str, Pool],
    offered: Mapping[str, Pool],
    template: Template,
    *,
    are_together: bool,
) -> Recommended | None:
    """The kind with enough memory and the least beyond it; None where none has less than the run's and costs less.

    It is bought the same way, on demand or on spot, and the cluster has as many of it as the run takes.
    """
    needed = memory_needed(use)
    if needed is None:
        return None

    def fitting(pools: Mapping[str, Pool]) -> dict[str, Pool]:
        return {
            name: pool
            for name, pool in pools.items()
            if pool.is_spot == had.is_spot and not pool.is_beyond_cluster(use.gpus)
        }

    found = recommended(
        had.name,
        fitting(held),
        fitting(offered),
        replace(template, gpu_memory=max(needed, template.gpu_memory)),
        are_together=are_together,
    )
    if found is None or found.pool.memory >= had.memory:
        return None
    return found if found.pool.usd_per_hour < had.usd_per_hour else None


def smaller_words(use: Overall, had: OwnKind, found: Recommended) -> str:
    """That a smaller kind would do, what it costs, and what it may take instead."""
    words = (
        f"Its memory fits {found.pool.words}, for {rate(found.pool.usd_per_hour)} a GPU-hour instead of "
        f"{rate(had.usd_per_hour)}."
    )
    if not found.is_held:
        words += " Your team holds none of them: the form asks for some."
    if has_low_share(use):
        return f"{words} It may run longer there."
    return f"{words} Its GPUs were busy: it runs longer there, and may cost as much."


def has_low_share(use: Overall) -> bool:
    """Whether its GPUs waited more than they computed."""
    return use.share is not None and use.share < LOW_SHARE


def may_be_fewer(use: Overall) -> bool:
    """Whether the next run may do with fewer GPUs."""
    return is_worth_judging(use) and use.gpus > 1 and has_low_share(use)


def fewer_words(use: Overall) -> str:
    """That fewer GPUs may do, and what else leaves them idle."""
    return (
        f"Its {use.gpus} GPUs were busy {percent(use.share or 0.0)} of the time: fewer may do, unless they waited for "
        "data."
    )
