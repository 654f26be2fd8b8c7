"""What a Job does by itself: it ends when it was active for too long, and waits after a pod of it failed.

Times are those since this process saw the Job start: after a restart of the sandbox they begin anew.
"""

from collections.abc import Callable

from sandbox.kubernetes.store import Key, Obj

BACK_OFF_SECONDS, MOST_SECONDS = 10.0, 600.0


class JobTimes:
    """When Jobs have to be looked at again."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._started: dict[Key, float] = {}
        self._deadlines: dict[Key, float] = {}
        self._retries: dict[Key, float] = {}

    @property
    def next_due(self) -> float | None:
        """The next moment at which a Job has something to do."""
        return min([*self._deadlines.values(), *self._retries.values()], default=None)

    def due(self) -> list[Key]:
        """The Jobs whose moment has come; a retry is given once."""
        now = self._now()
        ready = [key for key, moment in self._retries.items() if moment <= now]
        for key in ready:
            del self._retries[key]
        return [
            *ready,
            *(key for key, moment in self._deadlines.items() if moment <= now),
        ]

    def start(self, key: Key, job: Obj) -> None:
        """The Job is active; another deadline counts from the same moment."""
        started = self._started.setdefault(key, self._now())
        seconds = job["spec"].get("activeDeadlineSeconds")
        if seconds is not None:
            self._deadlines[key] = started + float(seconds)
        else:
            self._deadlines.pop(key, None)

    def stop(self, key: Key) -> None:
        """It is not active any more."""
        self._started.pop(key, None)
        self._deadlines.pop(key, None)
        self._retries.pop(key, None)

    def is_over(self, key: Key) -> bool:
        """Whether a Job was active for too long."""
        return self._deadlines.get(key, float("inf")) <= self._now()

    def failed(self, key: Key, count: int) -> None:
        """A pod failed, the so manyth of its Job: the next one waits."""
        self._retries[key] = self._now() + min(
            MOST_SECONDS, BACK_OFF_SECONDS * 2 ** (count - 1)
        )

    def waits(self, key: Key) -> bool:
        """Whether a Job makes no pods yet because one failed."""
        return self._retries.get(key, 0.0) > self._now()
