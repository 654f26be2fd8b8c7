"""What a run's page says above its manifests: whether they were created on the cluster, and why not."""

from workloads.runs.models import Run
from workloads.runs.states import State

BECAUSE = {
    State.SKIPPED: "because the run that it waited for did not finish",
    State.REFUSED: "because the cluster did not take it",
    State.STOPPED: "because it was stopped before it was sent",
}


def manifests_words(run: Run) -> str:
    """What its manifests are; said so that it holds on a page that stays open while the run is sent."""
    if run.sent_at is not None:
        return "What was created on the cluster"
    if run.is_over:
        return "What would have been created on the cluster"
    return "What is created on the cluster when it is sent"


def not_created_words(run: Run) -> str:
    """That nothing of a run stands on the cluster, and why; empty where something does or did, or will."""
    if not run.was_never_sent:
        return ""
    because = BECAUSE.get(State(run.state), "because it ended before it was sent")
    if run.was_kept_by_git:
        because = "because that follows Git"
    return f"Nothing of it stands on the cluster, {because}."
