"""Where a run is, and which moves there are. Pure."""

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """Where a run is between its submission and its end."""

    BLOCKED = "blocked"
    SUBMITTED = "submitted"
    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    REFUSED = "refused"
    GONE = "gone"
    SKIPPED = "skipped"

    @property
    def words(self) -> str:
        """The state as people read it."""
        return WORDS[self]

    @property
    def is_over(self) -> bool:
        """Whether nothing follows."""
        return not LEGAL[self]


WORDS: Mapping[State, str] = {
    State.BLOCKED: "Waits for another run",
    State.SUBMITTED: "Being sent",
    State.WAITING: "Waiting",
    State.STARTING: "Starting",
    State.RUNNING: "Running",
    State.FINISHED: "Finished",
    State.FAILED: "Failed",
    State.STOPPED: "Stopped",
    State.REFUSED: "Refused by the cluster",
    State.GONE: "Deleted on the cluster",
    State.SKIPPED: "Skipped",
}
ENDS: Mapping[State, str] = {
    State.FINISHED: "It ran to its end.",
    State.FAILED: "It ended with an error.",
    State.STOPPED: "It was stopped.",
    State.REFUSED: "The cluster did not take it, and nothing ran.",
    State.GONE: "Somebody deleted it on the cluster.",
    State.SKIPPED: "The run that it waited for did not finish, and nothing ran.",
}
_ENDS = frozenset({State.FINISHED, State.FAILED, State.STOPPED, State.GONE})
_ON_CLUSTER = frozenset({State.WAITING, State.STARTING, State.RUNNING})
# Preemption and lost nodes send a run back to the line, so it moves to and fro until it ends.
LEGAL: Mapping[State, frozenset[State]] = {
    # Its cluster may be written off while it waits for a run of another one.
    State.BLOCKED: frozenset(
        {State.SUBMITTED, State.STOPPED, State.SKIPPED, State.GONE}
    ),
    State.SUBMITTED: _ON_CLUSTER | _ENDS | {State.REFUSED},
    **{state: (_ON_CLUSTER | _ENDS) - {state} for state in sorted(_ON_CLUSTER)},
    **dict.fromkeys([*sorted(_ENDS), State.REFUSED, State.SKIPPED], frozenset()),
}
OVER = frozenset(state for state, following in LEGAL.items() if not following)
