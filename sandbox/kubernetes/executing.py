"""The longest time a Workload may run: over all its runs, after that Kueue makes it inactive."""

from collections.abc import Callable

from sandbox.kubernetes.causes import part
from sandbox.kubernetes.conditions import holds
from sandbox.kubernetes.events import tell
from sandbox.kubernetes.evicting import GIVEN_UP, MANAGER, WORKLOAD, WORKLOADS, evict
from sandbox.kubernetes.statuses import write_object
from sandbox.kubernetes.store import Change, Obj, Store

CAUSE = "MaximumExecutionTimeExceeded"
EXCEEDED = "The workload is deactivated due to exceeding the maximum execution time"


class Executions:
    """How long the Workloads of one store have run; `next_due` says when the next one has for too long."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._since: dict[str, float] = {}
        self._past: dict[str, float] = {}
        self._due: dict[str, tuple[float, str, str]] = {}

    @property
    def next_due(self) -> float | None:
        """When the next Workload has run for too long."""
        return min((moment for moment, _, _ in self._due.values()), default=None)

    def react(self, change: Change) -> None:
        """Begin, stop or forget the time of a Workload."""
        if change.resource[1] == "workloads":
            self._follow(change.after.obj, gone=change.removed)

    def resume(self) -> None:
        """Begin anew with those that run in a store that was filled from a snapshot."""
        for workload in self._store.objects(WORKLOAD):
            self._follow(workload, gone=False)

    def run(self) -> bool:
        """Stop those whose time is over; True when there were any."""
        over = [one for one in self._due.values() if one[0] <= self._now()]
        for _, namespace, name in over:
            workload = self._store.get(WORKLOAD, namespace, name)
            if workload is not None:
                self._stop(workload)
        return bool(over)

    def _follow(self, workload: Obj, *, gone: bool) -> None:
        metadata, uid = workload["metadata"], workload["metadata"]["uid"]
        runs = (
            holds(workload, "Admitted") and not holds(workload, "Finished") and not gone
        )
        if not runs:
            self._due.pop(uid, None)
            if uid in self._since:
                self._past[uid] = (
                    self._past.get(uid, 0.0) + self._now() - self._since.pop(uid)
                )
            if gone:
                self._past.pop(uid, None)
            return
        since = self._since.setdefault(uid, self._now())
        most = part(dict(workload), "spec").get("maximumExecutionTimeSeconds")
        if most is not None:
            moment = since + float(most) - self._past.get(uid, 0.0)
            self._due[uid] = moment, metadata["namespace"], metadata["name"]

    def _stop(self, workload: Obj) -> None:
        self._due.pop(workload["metadata"]["uid"], None)
        said = f"The maximum execution time ({workload['spec']['maximumExecutionTimeSeconds']}s) exceeded"
        tell(
            self._store,
            workload,
            CAUSE,
            said,
            by=WORKLOADS,
            manager=MANAGER,
            warning=True,
        )
        inactive = {**workload, "spec": {**workload["spec"], "active": False}}
        write_object(self._store, WORKLOAD, workload, inactive, MANAGER)
        metadata = workload["metadata"]
        now = (
            self._store.get(WORKLOAD, metadata["namespace"], metadata["name"])
            or workload
        )
        evict(self._store, now, f"{GIVEN_UP}{CAUSE}", EXCEEDED, cause=CAUSE)
