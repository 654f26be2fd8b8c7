"""Which fields of the portal's objects others may fill in; everything else in them is the portal's as a whole. Pure.

A field that nobody here asked for can open a network or stop a queue as well as a changed one. So every field of an
object but its metadata and status counts, and what the API server, Kueue and Volcano write there by themselves stands
below.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from provisioning.drift.paths import Path

# None: others may add what they like. A mapping: these names, each with what may stand there. Otherwise one value.
Filled = Mapping[str, Any] | None

OF_EVERY_KIND: Mapping[str, Filled] = {"metadata": None, "status": None}
# As Kubernetes 1.36 and Kueue 0.19 (v1beta2) answered to an apply of our manifests: tests/recordings, 02a and 09.
FILLED_IN: Mapping[str, Mapping[str, Any]] = {
    # The finalizer of the API server; no write can change it.
    "Namespace": {"spec": None},
    # The disk that the cluster bound. All but the size is immutable, and a claim is never made anew.
    "PersistentVolumeClaim": {"spec": None},
    # Clusters with a registry of their own (OpenShift, for one) write its pull secrets into every account.
    "ServiceAccount": {"secrets": None, "imagePullSecrets": None},
    "PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "LocalQueue": {"spec": {"stopPolicy": "None"}},
    "ClusterQueue": {
        "spec": {
            "flavorFungibility": {
                "whenCanBorrow": "MayStopSearch",
                "whenCanPreempt": "TryNextFlavor",
            },
            "preemption": {"borrowWithinCohort": {"policy": "Never"}},
            "queueingStrategy": "BestEffortFIFO",
            "stopPolicy": "None",
        }
    },
    # Volcano 1.15: its schema, its webhook (queues/mutate), and its controllers, which write whole objects.
    "Queue": {
        "spec": {"dequeueStrategy": "traverse", "parent": "root", "guarantee": {}}
    },
    # Kueue's schema gives a Cohort and a ResourceFlavor without a spec none, or an empty one.
    "Cohort": {"spec": {}},
    "ResourceFlavor": {"spec": {}},
}


def filled_in(manifest: Any) -> Filled:
    """What others may fill in beside a manifest's own fields; anything, in a document that is no manifest."""
    if not isinstance(manifest, Mapping) or "kind" not in manifest:
        return None
    return {**OF_EVERY_KIND, **FILLED_IN.get(str(manifest["kind"]), {})}


def below(filled: Filled, name: str) -> Filled:
    """What may be filled in below a field that the manifest has."""
    if filled is None:
        return None
    inner = filled.get(name, {})
    return inner if inner is None or isinstance(inner, Mapping) else {}


def in_items(filled: Filled) -> Filled:
    """What may be filled in within the items of a list: nothing, as every list of ours is written out in full."""
    return None if filled is None else {}


def added(
    wanted: Mapping[str, Any], live: Mapping[str, Any], filled: Filled
) -> list[str]:
    """The names that live has beside the wanted ones and that neither the API server nor Kueue filled in."""
    if filled is None:
        return []
    return sorted(
        name
        for name in live.keys() - wanted.keys()
        if name not in filled or not _is_filled_in(live[name], filled[name])
    )


def additions(wanted: Any, live: Any) -> Iterator[Path]:
    """The place of every field that was added to a live object and stands in no list.

    A list is written as a whole, and what was added in it goes by that.
    """
    yield from _additions(wanted, live, filled_in(wanted), ())


def _additions(wanted: Any, live: Any, filled: Filled, at: Path) -> Iterator[Path]:
    if not isinstance(wanted, Mapping) or not isinstance(live, Mapping):
        return
    yield from ((*at, name) for name in added(wanted, live, filled))
    for name in wanted.keys() & live.keys():
        yield from _additions(
            wanted[name], live[name], below(filled, name), (*at, name)
        )


def _is_filled_in(live: Any, filled: Any) -> bool:
    if filled is None:
        return True
    if isinstance(filled, Mapping):
        return isinstance(live, Mapping) and all(
            name in filled and _is_filled_in(value, filled[name])
            for name, value in live.items()
        )
    return bool(live == filled)
