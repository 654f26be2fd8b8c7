"""How pages and answers say what a run asks for. Pure."""

from workloads.templates.run import Topology


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
