"""The parts of a cluster that have to work, each with a sentence: API server, what keeps its queues, nodes. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

API, KUEUE, WEBHOOKS, NODES = "API server", "Kueue", "Webhooks", "Nodes"
SETTINGS = "Kueue's settings"
VOLCANO, VOLCANO_SETTINGS, GUARDS = "Volcano", "Volcano's settings", "Volcano's guards"
OUTSIDE = "Ways out by name"
GOOD, BAD, UNKNOWN = "good", "bad", "waiting"
WEBHOOK_FAILED = "failed calling webhook"

Part = dict[str, str]


def _part(name: str, state: str, words: str) -> Part:
    return {"part": name, "state": state, "words": words}


def dated(found: Iterable[Part], before: Iterable[Part], now: datetime) -> list[Part]:
    """Parts with `since` when each is as it is: since now, or as long as at the look before."""
    known = {(one["part"], one["state"]): one.get("since") for one in before}
    return [
        one | {"since": known.get((one["part"], one["state"])) or now.isoformat()}
        for one in found
    ]


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
    available = _available(deployment)
    if available:
        return [
            _part(
                KUEUE,
                GOOD,
                f"{available} of its controllers answer{'s' if available == 1 else ''}.",
            ),
            _part(WEBHOOKS, GOOD, "Kueue's controller serves them."),
        ]
    return [
        _part(
            KUEUE,
            BAD,
            "None of its controllers is available: nothing that waits in a queue starts.",
        ),
        _part(
            WEBHOOKS,
            BAD,
            "Kueue's controller serves them: new jobs and changes of queues are refused.",
        ),
    ]


def volcano_scheduler(deployment: Mapping[str, Any] | None) -> list[Part]:
    """Of Volcano's scheduler, by its Deployment; None when it may not be seen."""
    if deployment is None:
        return [_part(VOLCANO, UNKNOWN, "The portal may not see its scheduler.")]
    available = _available(deployment)
    if available:
        words = f"{available} of its schedulers answer{'s' if available == 1 else ''}."
        return [_part(VOLCANO, GOOD, words)]
    return [
        _part(
            VOLCANO,
            BAD,
            "None of its schedulers is available: nothing that waits in a queue starts.",
        )
    ]


def volcano_settings(lacking: list[str]) -> Part:
    """Of the configuration of Volcano's scheduler, by what it lacks for teams' work."""
    if not lacking:
        return _part(VOLCANO_SETTINGS, GOOD, "They say what teams' work needs.")
    return _part(
        VOLCANO_SETTINGS,
        BAD,
        f"An administrator of the cluster changes them: {'; '.join(lacking)}.",
    )


def volcano_guards(missing: list[str] | None) -> Part:
    """Of what keeps teams to their own queues, by what of it is not there; None when it may not be seen."""
    if missing is None:
        return _part(
            GUARDS,
            UNKNOWN,
            "The portal may not see whether teams are kept to their own queues.",
        )
    if not missing:
        return _part(GUARDS, GOOD, "Each team can name its own queue alone.")
    words = "Any team can use any queue: an administrator applies deploy/kubernetes/volcano-guards.yaml."
    return _part(GUARDS, BAD, f"{words} Not there: {', '.join(missing)}.")


def _available(deployment: Mapping[str, Any]) -> int:
    """How many of its pods are available; an API server leaves a 0 out."""
    status = deployment.get("status") or {}
    return int(status.get("availableReplicas", status.get("readyReplicas", 0)))


def kueue_settings(lacking: list[str]) -> Part:
    """Of Kueue's own configuration, by what it lacks for teams' work."""
    if not lacking:
        return _part(SETTINGS, GOOD, "They say what teams' work needs.")
    return _part(
        SETTINGS,
        UNKNOWN,
        f"An administrator of the cluster looks at them: {'; '.join(lacking)}.",
    )


def names_outside(*, enforced: bool) -> Part:
    """Of ways out by DNS name, where there are any."""
    if enforced:
        return _part(
            OUTSIDE, GOOD, "CiliumNetworkPolicy is served, and the portal writes it."
        )
    return _part(
        OUTSIDE,
        BAD,
        "CiliumNetworkPolicy is not served, or the portal may not write it: names stay shut.",
    )


def nodes(listed: Iterable[Mapping[str, Any]]) -> Part:
    """Of the nodes, by their condition Ready."""
    conditions = [node.get("status", {}).get("conditions") or [] for node in listed]
    ready = sum(
        any(
            each.get("type") == "Ready" and each.get("status") == "True" for each in one
        )
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
    return [
        *others,
        _part(WEBHOOKS, BAD, "One does not answer: what it looks at is refused."),
    ]
