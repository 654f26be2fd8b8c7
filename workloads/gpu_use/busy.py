"""What is known about how busy a run's GPUs are, and the words for it. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

# GPUs that wait for data between two steps are no waste.
HELD_IDLE = timedelta(minutes=10)


@dataclass(frozen=True)
class Busy:
    """The share of a run's GPUs that computes (0 to 1; None: not known), since when none does, and a sentence."""

    share: float | None
    idle_since: datetime | None
    words: str

    def is_wasted(self, now: datetime) -> bool:
        """Whether GPUs are held and nobody has computed on them for a while."""
        return self.idle_since is not None and now - self.idle_since >= HELD_IDLE


def busy_of(
    *,
    is_running: bool,
    has_prometheus: bool,
    share: float | None,
    idle_since: datetime | None,
    is_fresh: bool,
    measured: int = 1,
    pods: int = 1,
) -> Busy | None:
    """What to say about the GPUs of a run; None for one that holds none now. Of its `pods` so many were `measured`."""
    if not is_running:
        return None
    if not has_prometheus:
        return Busy(
            None,
            None,
            "Not known: the cluster has no Prometheus that the portal reads.",
        )
    if share is None:
        return Busy(None, None, "Not known: Prometheus has not measured its GPUs yet.")
    if not is_fresh:
        return Busy(
            None, None, "Not known now: Prometheus has told nothing for minutes."
        )
    if idle_since is not None:
        return Busy(
            share, idle_since, "Held but not busy: nothing computes on its GPUs."
        )
    where = f" on {measured} of {pods} pods" if measured < pods else ""
    return Busy(share, None, f"{percent(share)} busy when last measured{where}.")


def percent(share: float) -> str:
    """A share from 0 to 1 as people read it: "38 %"."""
    return f"{share * 100:.0f} %"
