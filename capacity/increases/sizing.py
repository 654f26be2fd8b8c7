"""From vCPUs of a quota to machines and GPUs, and which limit to ask for. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Azure takes no larger limit, and nobody who means it multiplies theirs so often.
MAX_VCPUS, MAX_FACTOR = 100_000, 100


@dataclass(frozen=True, order=True)
class MachineSize:
    """A size of machines that a quota is used for: its vCPUs and GPUs."""

    vcpus: int
    gpus: int
    name: str


def max_limit(limit: int) -> int:
    """The highest limit that may be asked for instead of a present one."""
    return min(MAX_VCPUS, limit * MAX_FACTOR) if limit else MAX_VCPUS


def more_machines(sizes: Sequence[MachineSize], *, before: int, after: int) -> str:
    """What a higher limit gives, such as "8 more Standard_NC24ads_A100_v4 (8 GPUs) or …"; empty for no known size."""
    parts = []
    for size in sorted(sizes):
        machines = after // size.vcpus - before // size.vcpus
        gpus = machines * size.gpus
        counted = f"{gpus:,} GPU{'' if gpus == 1 else 's'}"
        parts.append(
            f"{machines:,} more {size.name} ({counted})"
            if gpus
            else f"{machines:,} more {size.name}"
        )
    return " or ".join(parts)


def suggested(
    sizes: Sequence[MachineSize], *, limit: int, expected: float | None
) -> int:
    """Which limit to ask for: what is expected in twelve weeks, in whole machines; twice the present one else.

    `expected` is the upper edge of the forecast, in vCPUs; it counts where it is above the limit.
    """
    # A sum of fractions is a hair above what it means.
    wanted = (
        math.ceil(round(expected, 3))
        if expected is not None and expected > limit
        else 2 * limit
    )
    each = max((size.vcpus for size in sizes), default=1)
    whole = -(-wanted // each) * each
    return min(max(whole, each), max_limit(limit))
