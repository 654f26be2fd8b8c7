"""Where a notebook server is, which moves there are, and why it stopped. Pure."""

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """How far a server has come. It keeps its name and choices once it has stopped, and can be started again."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def words(self) -> str:
        """As people read it."""
        return {"failed": "Did not start"}.get(self.value, self.value.capitalize())

    @property
    def tone(self) -> str:
        """The badge's tone."""
        return {
            "starting": "moving",
            "ready": "good",
            "stopping": "ending",
            "stopped": "past",
            "failed": "bad",
        }[self.value]

    @property
    def is_live(self) -> bool:
        """Whether it has a pod, or gets or loses one."""
        return self in LIVE


class StopReason(StrEnum):
    """Why a server stopped, or is about to."""

    PERSON = "person"
    IDLE = "idle"
    LIMIT = "limit"
    END = "end"
    NOT_A_MEMBER = "not_a_member"
    LEAVING = "leaving"
    PREEMPTED = "preempted"
    MAINTENANCE = "maintenance"
    ELSEWHERE = "elsewhere"
    CLUSTER_GONE = "cluster_gone"

    @property
    def words(self) -> str:
        """As a sentence for people."""
        return {
            "person": "Somebody stopped it.",
            "idle": "It was idle, so its GPUs went back.",
            "limit": "It had run for as long as its profile allows.",
            "end": "The team no longer holds the GPUs that carried it.",
            "not_a_member": "Whoever started it is no longer of the team, or has no access any more.",
            "leaving": "The team leaves this cluster.",
            "preempted": "The queue gave its GPUs to work that goes first. Started again, it waits in line.",
            "maintenance": "The maintenance of its cluster stopped it. Until that has ended, a start waits.",
            "elsewhere": "It ended in the hub or on the cluster, and not through the portal.",
            "cluster_gone": "It ended with its cluster, which is gone for good.",
        }[self.value]


# A hub starts and ends servers by itself, too: what it says of one that is not being stopped is taken as it is.
LEGAL: Mapping[State, frozenset[State]] = {
    State.STARTING: frozenset(
        {State.READY, State.STOPPING, State.STOPPED, State.FAILED}
    ),
    State.READY: frozenset({State.STARTING, State.STOPPING, State.STOPPED}),
    State.STOPPING: frozenset({State.STOPPED}),
    State.STOPPED: frozenset({State.STARTING, State.READY}),
    State.FAILED: frozenset({State.STARTING, State.READY, State.STOPPED}),
}
LIVE = frozenset({State.STARTING, State.READY, State.STOPPING})
