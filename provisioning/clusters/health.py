"""The parts of a cluster that have to work, each with a sentence: API server, Kueue, its webhooks, nodes. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

API, KUEUE, WEBHOOKS, NODES = "API server", "Kueue", "Webhooks", "Nodes"
SETTINGS = "Kueue's settings"
OUTSIDE = "Ways out by name"
GOOD, BAD, UNKNOWN = "good", "bad", "waiting"
WEBHOOK_FAILED = "failed calling webhook"

Part = dict[str, str]


def _part(name: str, state: str, words: str) -> Part:
    return {"part": name, "state": state, "words": words}


def api_server(version: str) -> Part:
    """Of an API server that answered."""
    return _part(API, GOOD, f"It answers ({version}).")


def silent() -> list[Part]:
    """Of a cluster whose API server did not answer: nothing is known of the rest."""
    return [_part(API, BAD, "It does not answer, or refuses the portal.")]


def kueue_controller(deployment: Mapping[str, Any] | None) -> list[Part]:
    """Of Kueue's controller and the webhooks that it serves, by its Deployment; None when it may not be seen."""
    if deployment is None:
        return [_part(KUEUE, UNKNOWN, "The portal may not see its controller.")]
    status = deployment.get("status") or {}
    # An API server leaves a 0 out.
    available = status.get("availableReplicas", status.get("readyReplicas", 0))
    if available:
        return [
            _part(KUEUE, GOOD, f"{available} of its controllers answer{'s' if available == 1 else ''}."),
            _part(WEBHOOKS, GOOD, "Kueue's controller serves them."),
        ]
    return [
        _part(KUEUE, BAD, "None of its controllers is available: nothing that waits in a queue starts."),
        _part(WEBHOOKS, BAD, "Kueue's controller serves them: new jobs and changes of queues are refused."),
    ]


def kueue_settings(lacking: list[str]) -> Part:
    """Of Kueue's own configuration, by what it lacks for teams' work."""
    if not lacking:
        return _part(SETTINGS, GOOD, "They say what teams' work needs.")
    return _part(SETTINGS, UNKNOWN, f"An administrator of the cluster looks at them: {'; '.join(lacking)}.")


def names_outside(*, enforced: bool) -> Part:
    """Of ways out by DNS name, where there are any."""
    if enforced:
        return _part(OUTSIDE, GOOD, "CiliumNetworkPolicy is served, and the portal writes it.")
    return _part(
        OUTSIDE, BAD, "CiliumNetworkPolicy is not served, or the portal may not write it: names stay shut."
    )


def nodes(listed: Iterable[Mapping[str, Any]]) -> Part:
    """Of the nodes, by their condition Ready."""
    conditions = [node.get("status", {}).get("conditions") or [] for node in listed]
    ready = sum(
        any(each.get("type") == "Ready" and each.get("status") == "True" for each in one)
        for one in conditions
    )
    if not conditions:
        return _part(NODES, BAD, "It lists no nodes.")
    words = f"{ready} of {len(conditions)} are ready."
    return _part(NODES, GOOD if ready else BAD, words)


def after_failure(found: list[Part], message: str) -> list[Part]:
    """The parts that were seen before a look failed, with what the failure says of a webhook."""
    if not found:
        return silent()
    if WEBHOOK_FAILED not in message:
        return found
    others = [part for part in found if part["part"] != WEBHOOKS]
    return [*others, _part(WEBHOOKS, BAD, "One does not answer: what it looks at is refused.")]
