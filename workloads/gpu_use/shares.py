"""How busy the GPUs of pods are and how much of their memory is used, as the DCGM exporter tells it. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from notebooks.profiles.idle import MEASURED_FOR

_BY_POD = "by (namespace, pod, exported_namespace, exported_pod)"
# A kernel that ran for a moment makes GPU_UTIL high, so that the engine's measure comes first. Slices have that alone.
_OF_POD = f"{_BY_POD} (DCGM_FI_PROF_GR_ENGINE_ACTIVE or DCGM_FI_DEV_GPU_UTIL / 100)"
# A peak between two looks counts, too. Of a slice the exporter tells its own memory, of some drivers none.
_MEMORY = f"{_BY_POD} (max_over_time(DCGM_FI_DEV_FB_USED[{MEASURED_FOR.seconds}s]))"
# All in one call; the label says which of them a sample is.
QUERY = (
    f'label_replace(avg {_OF_POD}, "of", "average", "", "") or '
    f'label_replace(max {_OF_POD}, "of", "busiest", "", "") or '
    f'label_replace(max {_MEMORY}, "of", "memory", "", "")'
)
# The largest number that the database has.
MAX_MIB = 2**31 - 1
# Below this share nobody computes: a display or a driver alone takes some of it.
IDLE = 0.02
Pod = tuple[str, str]


@dataclass(frozen=True)
class Share:
    """How busy the GPUs of a pod are, from 0 to 1: on average, and the one that computes most.

    `memory` is the most MiB that one of them used in the last minutes; None where the exporter does not tell it.
    """

    average: float
    busiest: float
    memory: int | None = None

    @property
    def is_busy(self) -> bool:
        """Whether any of its GPUs computes: the average would hide one of eight that does a little."""
        return self.busiest >= IDLE


def shares_of(samples: Iterable[Mapping[str, Any]]) -> dict[Pod, Share]:
    """How busy the GPUs of each pod are.

    Without `honorLabels` the exporter's own pod stands in `pod`, and the one that holds the GPU in `exported_pod`.
    """
    found: dict[Pod, dict[str, float]] = defaultdict(dict)
    for one in samples:
        labels = one.get("metric") or {}
        value: Any = one.get("value") or ()
        pod = (
            str(labels.get("exported_namespace") or labels.get("namespace") or ""),
            str(labels.get("exported_pod") or labels.get("pod") or ""),
        )
        try:
            number = float(value[1])
        except (IndexError, TypeError, ValueError):
            continue
        if all(pod) and isfinite(number):
            found[pod][str(labels.get("of", ""))] = max(number, 0.0)
    return {
        pod: Share(
            min(of["average"], 1.0), min(of["busiest"], 1.0), _mib(of.get("memory"))
        )
        for pod, of in found.items()
        if "average" in of and "busiest" in of
    }


def _mib(used: float | None) -> int | None:
    return None if used is None else min(round(used), MAX_MIB)
