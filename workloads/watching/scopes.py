"""Whose work an object explains, so that what was explained is made anew where it may differ and nowhere else. Pure.

A scope is a team's namespace, or `EVERYBODY` on the cluster. What the page of a team's work reads (workloads.gathering)
is in the scopes of its namespaces and in that of everybody.
"""

from collections.abc import Collection

from workloads.reading.pods import is_on_a_node
from workloads.reading.values import Object, gpus_of_pod, part, text

EVERYBODY = ""


def changed_scopes(
    before: Object | None, after: Object | None, namespaces: Collection[str]
) -> frozenset[str]:
    """The scopes in which work may be explained otherwise after an object changed, came (`before` None) or went.

    `namespaces` are those of teams. What is in none of their scopes is of no team.
    """
    if before == after:
        return frozenset()
    found = [one for one in (before, after) if one is not None]
    scopes = {scope for one in found for scope in _scopes_of(one, namespaces)}
    if _room_taken(before) != _room_taken(after):
        scopes.add(EVERYBODY)
    return frozenset(scopes)


def _scopes_of(found: Object, namespaces: Collection[str]) -> set[str]:
    kind, meta = text(found, "kind"), part(found, "metadata")
    if kind == "Node":
        return {EVERYBODY}
    if kind == "ClusterQueue":
        # A team's own queue has the name of its namespace (provisioning.desired.queues).
        return {text(meta, "name") if text(meta, "name") in namespaces else EVERYBODY}
    owners = {text(meta, "namespace")}
    if kind == "Workload":
        owners.add(text(part(found, "status", "admission"), "clusterQueue"))
    return owners & {*namespaces}


def _room_taken(found: Object | None) -> tuple[str, int] | None:
    """The node and the GPUs of a pod that takes room on one, which is nobody else's then."""
    if found is None or text(found, "kind") != "Pod" or not is_on_a_node(found):
        return None
    spec = part(found, "spec")
    return text(spec, "nodeName"), gpus_of_pod(spec)
