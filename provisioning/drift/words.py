"""Drift as people read it: who changed what from what to what. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from provisioning.words import plain
from ui.amounts import listed

FIELDS: Mapping[str, str] = {
    "requests.nvidia.com/gpu": "GPUs allowed",
    "requests.cpu": "CPUs that jobs may ask for",
    "limits.cpu": "CPUs that jobs may use at most",
    "requests.memory": "memory that jobs may ask for",
    "limits.memory": "memory that jobs may use at most",
    "requests.storage": "storage allowed",
    "pods": "pods allowed",
    "persistentvolumeclaims": "disks allowed",
    "services.loadbalancers": "load balancers allowed",
    "services.nodeports": "open node ports allowed",
    "count/jobs.batch": "jobs allowed",
    "count/secrets": "secrets allowed",
}
QUOTA = "spec.hard."
# The ends of paths that mean the same in whatever object they stand.
ENDS: Mapping[str, str] = {
    ".nominalQuota": "what the queue guarantees",
    ".lendingLimit": "what the queue may lend",
    ".borrowingLimit": "what the queue may borrow",
    ".default.cpu": "CPUs of a job that names none",
    ".default.memory": "memory of a job that names none",
    ".defaultRequest.cpu": "CPUs asked for by a job that names none",
    ".defaultRequest.memory": "memory asked for by a job that names none",
    "stopPolicy": "whether the queue takes jobs",
    "borrowWithinCohort": "whom the queue may push out while it borrows",
    "admissionChecksStrategy": "what has to agree before a job starts",
    "flavorFungibility": "in which order the queue tries kinds of GPU",
    "subjects": "which group may work here",
    "roleRef.name": "what the group may do",
    "policyTypes": "which traffic is looked at",
    "scopeSelector": "which priorities are closed",
    "namespaceSelector": "which namespaces",
    "podSelector": "which pods",
    "podSelector.matchLabels": "which pods",
    "ingress": "traffic let in",
    "egress": "traffic let out",
    "egressDeny": "addresses that are never reached",
    "endpointSelector": "which pods",
    "pod-security.kubernetes.io/enforce": "the safety level of pods",
    "clusterQueue": "the queue that jobs go to",
}
MOST = 3


def sentence(
    *, what: str, kind: str, name: str, fields: Sequence[Mapping[str, Any]], who: str
) -> str:
    """Who changed what, in one sentence without its full stop and without the time."""
    thing = f"{kind} {name}" + (f" ({plain(kind, name)})" if plain(kind, name) else "")
    if what == "missing":
        return f"{who or 'Somebody'} deleted {thing}"
    if what == "left over":
        return f"{who or 'Somebody'} put {thing} there, which carries the portal’s marks and is not wanted"
    said = [_change(field) for field in fields[:MOST]]
    if len(fields) > MOST:
        said.append(f"{len(fields) - MOST} more")
    return f"{who or 'Somebody'} changed {listed(said) or thing}"


def label(path: str) -> str:
    """A field in everyday words; its path where there are none."""
    if path.startswith(QUOTA):
        key = path.removeprefix(QUOTA)
        return FIELDS.get(key, f"what is allowed of {key}")
    end = next((words for end, words in ENDS.items() if path.endswith(end)), "")
    return f"{end} ({path})" if end else path


def _change(field: Mapping[str, Any]) -> str:
    wanted, live = field["wanted"], field["live"]
    words = label(str(field["path"]))
    if isinstance(wanted, list | dict) or isinstance(live, list | dict):
        return words
    if live is None:
        return f"{words} from {_short(wanted)} to nothing"
    return f"{words} from {'nothing' if wanted is None else _short(wanted)} to {_short(live)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:59] + "…"


def changes(fields: Sequence[Mapping[str, Any]]) -> list[dict[str, str | None]]:
    """Rows of the difference: path, as wanted, as it stands; None where it is absent."""
    return [
        {
            "path": str(field["path"]),
            "before": _shown(field["wanted"]),
            "after": _shown(field["live"]),
        }
        for field in fields
    ]


def _shown(value: Any) -> str | None:
    return (
        None
        if value is None
        else value
        if isinstance(value, str)
        else json.dumps(value, sort_keys=True)
    )
