"""The priorities of work: which there are, who may use which, and what the scheduler may do for them. Pure.

A pod of a higher priority would push others' pods from their nodes, whatever their teams were granted. So no pod of
ours ever preempts: which work waits is decided by Kueue, within what each team holds.
"""

PRIORITIES = {
    "production-inference": (1_000_000, "Serving people; never preempted by training."),
    "scheduled-training": (100_000, "Training with a date to meet."),
    "exploratory": (1_000, "Notebooks and experiments; may be preempted."),
    "best-effort": (0, "Runs when nothing else wants the GPU."),
}
# What every cluster has for its own parts: no team's pods ever run as these.
SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")
DEFAULT_PRIORITY = "exploratory"


def highest_by_purpose(*, environment: str, purpose: str) -> str:
    """The highest priority that work of an environment may have on a cluster of this purpose."""
    if environment == "production":
        return "production-inference"
    return "scheduled-training" if purpose == "training" else DEFAULT_PRIORITY


def permitted(highest: str) -> list[str]:
    """The priorities that are open, the highest first."""
    names = list(PRIORITIES)
    return names[names.index(highest) :]


def closed(highest: str) -> list[str]:
    """The PriorityClasses that pods of a tenancy must not have, by name."""
    open_ones = permitted(highest)
    return sorted(
        [*SYSTEM_PRIORITIES, *(name for name in PRIORITIES if name not in open_ones)]
    )


def title(name: str) -> str:
    """What people call a priority: "Scheduled training"."""
    return name.replace("-", " ").capitalize()


def title_of(value: int) -> str:
    """What people call the priority of work by its value; the value itself where it is none of ours."""
    return next(
        (title(name) for name, (each, _) in PRIORITIES.items() if each == value),
        str(value),
    )
