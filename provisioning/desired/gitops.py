"""Who else keeps an object in order: what Flux or Argo CD applies is never written to beside them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from connectors.errors import PermanentError
from provisioning.desired.plan import Key, Step, Verb

# The field managers' names that begin like this, and whose they are.
KEEPERS = {"kustomize-controller": "Flux", "argocd-": "Argo CD"}
WRITES = (Verb.UPDATE, Verb.DELETE)


def keeper(live: Mapping[str, Any]) -> str:
    """Flux or Argo CD, if one of them applies this object; empty otherwise."""
    managers = [
        str(entry.get("manager", ""))
        for entry in live["metadata"].get("managedFields") or ()
    ]
    return next(
        (
            who
            for begin, who in KEEPERS.items()
            if any(m.startswith(begin) for m in managers)
        ),
        "",
    )


def refuse_kept_by_others(
    steps: Sequence[Step], live: Mapping[Key, Mapping[str, Any]]
) -> None:
    """Raise PermanentError before the first write that would fight Flux or Argo CD over an object."""
    for step in steps:
        found = live.get(step.key) if step.verb in WRITES else None
        who = keeper(found) if found is not None else ""
        if who:
            raise PermanentError(
                f"{who} keeps {step.key.kind} {step.key.name} in order, and would undo every change. Deliver to this "
                f"cluster by Git, or take it out of {who}’s repository.",
                code="kept_by_others",
            )
