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

    def stops_at(self, now: datetime) -> datetime | None:
        """When it stops what runs, where that is still to come."""
        return self.starts if self.drains and now < self.starts else None

    def explains_stop(self, at: datetime) -> bool:
        """Whether what a queue stopped at this moment was stopped for it, and by nobody else."""
        return self.drains and self.starts <= at < self.ends + SETTLES

    def start_of(self, at: datetime) -> datetime:
        """When something starts that would start at this moment."""
        return self.ends if self.is_on(at) else at

    def words(self, now: datetime) -> str:
        """What its teams read of it until it ends."""
        if self.is_on(now):
            stopped = (
                " Runs that it stopped start anew then; notebooks are started again by hand."
                if self.drains
                else ""
            )
            return f"Maintenance until {moment(self.ends, now)}: nothing new starts before.{stopped}"
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


def not_before_words(title: str, until: str) -> str:
    """That nothing starts on a cluster of this name before its maintenance ends, at a moment in words."""
    return f"{title} is maintained until {until}, and nothing new starts before."


def save_before_words(title: str, at: str, drains: bool) -> str:
    """What who runs something on a cluster of this name does before its maintenance starts, at a moment in words."""
    happens = (
        f"the maintenance of {title} stops what runs then"
        if drains
        else f"while {title} is maintained, it can be interrupted"
    )
    return f"Save what you keep of it before {at}: {happens}."
