"""How pages and answers say what a run asks for. Pure."""

from workloads.runs.planning.plan import Plan
from workloads.templates.run import Topology

FOLLOWS_GIT = "follows Git, and the portal starts nothing there."


def level_name(level: str) -> str:
    """A level of a topology as people call it, from its node label: `cloud.example.com/rack` is "rack"."""
    return level.rpartition("/")[2]


def level_words(topology: Topology | None) -> str:
    """How close the pods of a run are; empty where it does not say."""
    if topology is None:
        return ""
    name = level_name(topology.level)
    return (
        f"All nodes in one {name}"
        if topology.is_required
        else f"In one {name} where there is room"
    )


def paid_words(plan: Plan) -> str:
    """Who pays for the GPUs of a run that can be sent: money follows what is held, whatever runs on it."""
    if plan.problems or plan.pool is None or not plan.gpus:
        return ""
    lent = (
        " What it borrows, the team that holds it pays for." if plan.pool.borrow else ""
    )
    return (
        "Your team pays for the GPUs that it holds, used or not, and this is the run's part of that: stopping it saves "
        f"nothing, giving GPUs back does.{lent}"
    )


def follows_git_words(cluster: str) -> str:
    """That the portal starts nothing on a cluster of this title, which it changes by commits alone."""
    return f"{cluster} {FOLLOWS_GIT} Use kubectl."
