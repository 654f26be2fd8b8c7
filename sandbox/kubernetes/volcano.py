"""Volcano's programs together: its controllers and its scheduler, as one runner of a cluster."""

from collections.abc import Callable

from sandbox.kubernetes.admission import Admission
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.store import Change, Obj, Store
from sandbox.kubernetes.volcano_jobs import VolcanoJobs
from sandbox.kubernetes.volcano_plain_pods import VolcanoPods
from sandbox.kubernetes.volcano_queues import VolcanoQueues
from sandbox.kubernetes.volcano_scheduler import VolcanoScheduler

Remove = Callable[[Kind, Obj], None]


class Volcano:
    """Keeps the queues, groups and jobs of one store going; `next_due` says when to come again."""

    def __init__(
        self,
        store: Store,
        admission: Admission,
        now: Callable[[], float],
        remove: Remove,
        sweep: Remove,
    ) -> None:
        self._jobs = VolcanoJobs(store, admission, now, remove, sweep)
        self._queues = VolcanoQueues(store, remove, self._jobs.ask)
        self._pods = VolcanoPods(store, admission)
        self._scheduler = VolcanoScheduler(store, remove)
        self._parts = (self._queues, self._jobs, self._pods, self._scheduler)

    @property
    def next_due(self) -> float | None:
        """When a job that is over goes next."""
        return self._jobs.next_due

    def react(self, change: Change) -> None:
        """Tell each program of a change."""
        for one in self._parts:
            one.react(change)

    def resume(self) -> None:
        """Look at everything again after the store was filled from a snapshot."""
        for one in (self._queues, self._jobs, self._scheduler):
            one.resume()

    def run(self) -> bool:
        """Let each program do what is due; True when there was anything."""
        done = [one.run() for one in self._parts]
        return any(done)
