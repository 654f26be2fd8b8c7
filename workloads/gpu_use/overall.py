"""How well a run used its GPUs in all the time that they were measured, and the words for it. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from notebooks.profiles.idle import MEASURED_FOR
from ui.amounts import span
from workloads.gpu_use.busy import Busy, percent

# What a program does first, such as fetching its data, says little of the rest.
MEASURED_ENOUGH = timedelta(minutes=5)
# Where less of the run was measured than this, it is told how much was.
MOSTLY = 0.75
# NVIDIA counts a GPU's memory in GiB and calls them GB, as the flavors do.
MIB_PER_GB = 1_024


@dataclass(frozen=True, kw_only=True)
class Sums:
    """What looks at a run's GPUs add up to: seconds that they computed, of the seconds that were measured.

    `peak_mib` is the most that one GPU used of its memory; None where nobody measures that.
    """

    busy_seconds: float = 0.0
    measured_seconds: float = 0.0
    peak_mib: int | None = None

    def with_look(self, share: float, memory: int | None, *, seconds: float) -> "Sums":
        """The same with one look more, which counts for so many seconds."""
        known = [one for one in (self.peak_mib, memory) if one is not None]
        return Sums(
            busy_seconds=self.busy_seconds + share * seconds,
            measured_seconds=self.measured_seconds + seconds,
            peak_mib=max(known, default=None),
        )


def seconds_of_look(
    before: datetime | None, *, running_since: datetime | None, now: datetime
) -> float:
    """For how many seconds a look counts: since the look before it, where both are of one attempt without a gap."""
    if before is None or (running_since is not None and before < running_since):
        return 0.0
    length = now - before
    return length.total_seconds() if length <= MEASURED_FOR else 0.0


@dataclass(frozen=True, kw_only=True)
class Overall:
    """How well the GPUs of a run were used on the whole, over all its attempts.

    `share` (0 to 1) is None where too little was measured, and with it all that is claimed. `memory_gb` is what one
    GPU of the run's kind has, 0 where nobody knows.
    """

    share: float | None
    peak_mib: int | None
    measured: timedelta
    ran: timedelta
    gpus: int
    memory_gb: int

    @property
    def peak_gb(self) -> float | None:
        """The most GB that one GPU used of its memory."""
        return None if self.peak_mib is None else self.peak_mib / MIB_PER_GB

    @property
    def is_measured_mostly(self) -> bool:
        """Whether so much of the run was measured that it speaks for all of it."""
        return self.measured >= self.ran * MOSTLY

    @property
    def words(self) -> str:
        """ "38 % busy on average, at most 14 of 80 GB of memory"; empty where nothing is claimed."""
        if self.share is None:
            return ""
        parts = [f"{percent(self.share)} busy on average"]
        if self.peak_gb is not None:
            of = f" of {self.memory_gb}" if self.memory_gb else ""
            each = " on each" if self.gpus > 1 else ""
            parts.append(f"at most {ceil(self.peak_gb)}{of} GB of memory{each}")
        if not self.is_measured_mostly:
            parts.append(f"measured for {span(self.measured)} of {span(self.ran)}")
        return ", ".join(parts)


def overall_of(
    sums: Sums, *, ran: timedelta, gpus: int, memory_gb: int | None
) -> Overall:
    """What is claimed of a run with so many GPUs that ran for so long."""
    measured = timedelta(seconds=sums.measured_seconds)
    is_enough = measured >= MEASURED_ENOUGH
    return Overall(
        share=sums.busy_seconds / sums.measured_seconds if is_enough else None,
        peak_mib=sums.peak_mib if is_enough else None,
        measured=measured,
        ran=ran,
        gpus=gpus,
        memory_gb=memory_gb or 0,
    )


@dataclass(frozen=True, kw_only=True)
class UseTold:
    """How busy a run's GPUs are now and were on the whole, as the API tells it."""

    share: float | None
    idle_since: datetime | None
    words: str
    overall: str
    mean_share: float | None
    measured_seconds: int
    peak_memory_gb: float | None


def use_told(busy: Busy | None, overall: Overall) -> UseTold | None:
    """Both together; None where nothing is held now and nothing is known of before."""
    if busy is None and overall.share is None:
        return None
    peak = overall.peak_gb
    return UseTold(
        share=busy.share if busy else None,
        idle_since=busy.idle_since if busy else None,
        words=busy.words if busy else "",
        overall=f"{overall.words}." if overall.words else "",
        mean_share=overall.share,
        measured_seconds=round(overall.measured.total_seconds()),
        peak_memory_gb=None if peak is None else round(peak, 1),
    )
