"""How long containers have run, on the cluster's own clock; after a restart what their pods say counts."""

from collections.abc import Callable
from datetime import datetime

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.store import Obj


class Spans:
    """When the containers of pods began and ended."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._began: dict[str, float] = {}
        self._ended: dict[str, float] = {}

    def begin(self, pod: Obj, moment: float) -> None:
        """The containers of a pod started at this moment."""
        self._began[pod["metadata"]["uid"]] = moment

    def end(self, pod: Obj, moment: float) -> None:
        """They ended at this moment."""
        self._ended[pod["metadata"]["uid"]] = moment

    def forget(self, pod: Obj) -> None:
        """The pod is gone."""
        self._began.pop(pod["metadata"]["uid"], None)
        self._ended.pop(pod["metadata"]["uid"], None)

    def seconds(self, pod: Obj) -> float:
        """How long the containers of a pod have run, or ran."""
        uid = pod["metadata"]["uid"]
        began, ended = started_at(pod), finished_at(pod)
        if uid in self._began:
            last = self._ended.get(
                uid, self._now() if ended is None else self._began[uid]
            )
            return max(0.0, last - self._began[uid])
        if began is None:
            return 0.0
        return max(
            0.0,
            (self._now() if ended is None else ended.timestamp()) - began.timestamp(),
        )


def started_at(pod: Obj) -> datetime | None:
    """When the containers of a pod started, as its status says."""
    state = _state(pod)
    return _time((part(state, "running") or part(state, "terminated")).get("startedAt"))


def finished_at(pod: Obj) -> datetime | None:
    """When they ended; None while they run."""
    return _time(part(_state(pod), "terminated").get("finishedAt"))


def _state(pod: Obj) -> dict[str, object]:
    containers = items(part(dict(pod), "status"), "containerStatuses")
    return part(containers[0], "state") if containers else {}


def _time(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None
