"""Shared objects of which a field can never be changed: what differs there is deleted and made anew."""

from collections.abc import Mapping
from typing import Any

from connectors.kubernetes import Cluster as Client
from provisioning.desired.plan import Step, Verb

# Pods keep the priority and the policy that they were made with, so nothing that runs is touched.
IMMUTABLE: Mapping[str, tuple[str, ...]] = {
    "PriorityClass": ("value", "preemptionPolicy")
}


def take_away(client: Client, step: Step, live: Mapping[str, Any] | None) -> None:
    """Delete the object that a step would change where the API server refuses the change; it is made anew after."""
    if live is not None and step.verb is Verb.UPDATE and _must_be_replaced(step, live):
        # Of this uid: one that somebody made anew in the meantime is looked at next time.
        client.delete(step.key.ref, step.key.name, uid=live["metadata"]["uid"])


def _must_be_replaced(step: Step, live: Mapping[str, Any]) -> bool:
    wanted = step.manifest or {}
    fields = IMMUTABLE.get(step.key.kind, ())
    return any(wanted.get(name) != live.get(name) for name in fields)
