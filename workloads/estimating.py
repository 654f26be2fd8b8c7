"""How long a job will go on waiting, from how long jobs like it waited before. Pure.

Kueue tells a place and never a time, so every time here is an estimate of ours and says from how many waits it comes.
It looks only at jobs of the same size class that had waited at least as long as this one has: of those, how much longer
did they wait? Below five of them there is no estimate. Jobs that still wait are not among the samples, so that a queue
that stands still is told by its state and not by an estimate.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

MIN_SAMPLES = 5
LOW, MIDDLE, HIGH = 10, 50, 90
# The largest size of each class but the last: one GPU, a part of a node, a whole node, some nodes, more.
CLASSES = (0, 1, 4, 8, 32)


@dataclass(frozen=True, slots=True)
class Wait:
    """How long one job of so many GPUs waited from its creation until its quota was reserved."""

    gpus: int
    length: timedelta


@dataclass(frozen=True, slots=True)
class Estimate:
    """How much longer: nine in ten of the samples took at least `low`, half `median`, nine in ten at most `high`."""

    low: timedelta
    median: timedelta
    high: timedelta
    samples: int
    source: str


@dataclass(frozen=True, slots=True)
class History:
    """The waits of one queue, sorted by size class; make it with `history_of`. `source` names queue and time."""

    source: str
    lengths: Mapping[int, Sequence[timedelta]] = field(default_factory=dict)

    def estimate(self, gpus: int, *, waited: timedelta) -> Estimate | None:
        """How much longer a job of so many GPUs waits that has waited so long; None below five samples."""
        found = self.lengths.get(size_class(gpus), ())
        first = bisect_right(found, waited)
        samples = len(found) - first
        if samples < MIN_SAMPLES:
            return None
        low, median, high = (
            _quantile(found, first, percent) - waited for percent in (LOW, MIDDLE, HIGH)
        )
        return Estimate(low, median, high, samples, self.source)


def history_of(waits: Iterable[Wait], *, source: str) -> History:
    """The history of a queue from its waits, in any order; a negative wait (clocks differ) counts as none."""
    lengths: dict[int, list[timedelta]] = {}
    for one in waits:
        lengths.setdefault(size_class(one.gpus), []).append(
            max(one.length, timedelta(0))
        )
    return History(
        source, {size: tuple(sorted(found)) for size, found in lengths.items()}
    )


def size_class(gpus: int) -> int:
    """The class of a size; jobs of one class wait alike: none, 1, 2–4, 5–8, 9–32, more than 32."""
    return next(
        (index for index, largest in enumerate(CLASSES) if gpus <= largest),
        len(CLASSES),
    )


def _quantile(ordered: Sequence[timedelta], first: int, percent: int) -> timedelta:
    """The quantile of the samples from `first` on, by linear interpolation between the two nearest."""
    last = len(ordered) - 1
    index, part = divmod((last - first) * percent, 100)
    index += first
    after = ordered[min(index + 1, last)]
    return ordered[index] + (after - ordered[index]) * part / 100
