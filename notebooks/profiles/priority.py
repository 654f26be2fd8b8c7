"""With which priority the servers of a profile run, and what that means for whoever works in one. Pure."""

from notebooks.profiles.document import Document
from provisioning.desired.priorities import DEFAULT_PRIORITY, PRIORITIES

# What Kueue reads on a pod before its PriorityClass.
LABEL, CLASS = "kueue.x-k8s.io/priority-class", "priority_class_name"
# Kueue gives pods without a class the lowest priority there is.
LOWEST = 0


def priority_of(document: Document | None) -> int:
    """The priority of a profile's servers: the lowest, unless its overrides name one of the portal's."""
    if document is None:
        return LOWEST
    labels = document.overrides.get("extra_labels") or {}
    name = labels.get(LABEL) or document.overrides.get(CLASS) or ""
    value, _ = PRIORITIES.get(str(name), (LOWEST, ""))
    return value


def goes_first_words(priority: int) -> str:
    """What takes the GPUs of a notebook with this priority; Volcano's clusters, where nothing does, are left out."""
    usual, _ = PRIORITIES[DEFAULT_PRIORITY]
    who = "Runs of your team usually have a higher priority: one that waits"
    if priority >= usual:
        who = "Work of your team with a higher priority that waits"
    return f"{who} takes these GPUs, and the notebook is stopped, with what it has in memory."
