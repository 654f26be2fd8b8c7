"""A time in which nothing new starts on a cluster, so that its nodes and versions can be changed. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from ui.amounts import moment

# For longer, a cluster is taken out of use.
LONGEST = timedelta(days=14)
# Until its queues are open again, by a worker that may have other things to do.
SETTLES = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True, slots=True)
class Maintenance:
    """From `starts` to `ends` queues let nothing new in; with `drains` they stop what runs when it starts, too."""

    starts: datetime
    ends: datetime
    drains: bool

    def is_on(self, now: datetime) -> bool:
        """Whether it has started and not ended."""
        return self.starts <= now < self.ends

    def stop_policy(self, now: datetime) -> str:
        """What queues do now, as Kueue's `stopPolicy` names it."""
        if not self.is_on(now):
            return "None"
        return "HoldAndDrain" if self.drains else "Hold"

    def start_of(self, at: datetime) -> datetime:
        """When something starts that would start at this moment."""
        return self.ends if self.is_on(at) else at

    def stopped_what_ended(self, at: datetime) -> bool:
        """Whether what a queue stopped at this moment was stopped for it, and by nobody else."""
        return self.drains and self.starts <= at < self.ends + SETTLES

    def words(self, now: datetime) -> str:
        """What its teams read of it until it ends."""
        if self.is_on(now):
            until = moment(self.ends, now)
            return f"Maintenance until {until}: nothing new starts before."
        runs = (
            "runs are stopped when it starts and start anew after it, notebooks are stopped. Save what you keep before."
            if self.drains
            else "what runs then goes on, and can be interrupted."
        )
        return f"Maintenance from {self.window(now)}: nothing new starts then; {runs}"

    def window(self, now: datetime) -> str:
        """ "Sat 5 Dec, 08:00 UTC to 12:00 UTC", with the day of its end where it is another one."""
        starts, ends = moment(self.starts, now), moment(self.ends, now)
        day = f"{starts.partition(',')[0]}, "
        return f"{starts} to {ends.removeprefix(day)}"
