"""Time as reasons ask for it, so that an answer knows how long it holds. Pure."""

from datetime import UTC, datetime

from ui.amounts import moment


class Clock:
    """One moment, and the first later one at which somebody who asked it would have heard something else."""

    def __init__(self, now: datetime) -> None:
        """Nobody has asked yet, so what is answered holds for ever."""
        self.now = now
        self.until: datetime | None = None

    def has_come(self, at: datetime) -> bool:
        """Whether this moment has come."""
        if at <= self.now:
            return True
        self._ends(at)
        return False

    def written(self, at: datetime) -> str:
        """A moment in words, which name the year where it is not the current one."""
        self._ends(datetime(self.now.astimezone(UTC).year + 1, 1, 1, tzinfo=UTC))
        return moment(at, self.now)

    def day(self, at: datetime) -> str:
        """The day of it in words."""
        return self.written(at).partition(",")[0]

    def _ends(self, at: datetime) -> None:
        self.until = at if self.until is None else min(self.until, at)
