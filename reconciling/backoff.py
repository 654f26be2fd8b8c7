"""How long to wait before the next try: pure."""

from dataclasses import dataclass
from datetime import timedelta

# Beyond this many doublings every wait is the longest one, and the arithmetic stays small.
MAX_DOUBLINGS = 32
# A server that asks for more than this has made a mistake, and would never be tried again.
LONGEST_ASKED = timedelta(hours=6)


@dataclass(frozen=True)
class Backoff:
    """Waits that grow by a factor with each try that failed, from the first to the longest."""

    first: timedelta
    longest: timedelta
    factor: float = 2.0

    def wait(
        self, attempts: int, *, chance: float = 0.0, retry_after: float | None = None
    ) -> timedelta:
        """How long to wait after so many failed tries.

        `chance` in [0, 1) takes up to half of it away, so that what failed together does not come back together. A
        server that asked for more time (`retry_after` in seconds) gets it, up to six hours.
        """
        growth = self.factor ** min(max(attempts - 1, 0), MAX_DOUBLINGS)
        seconds = min(
            self.first.total_seconds() * growth, self.longest.total_seconds()
        ) * (1 - chance / 2)
        asked = min(retry_after or 0.0, LONGEST_ASKED.total_seconds())
        return timedelta(seconds=max(seconds, asked))
