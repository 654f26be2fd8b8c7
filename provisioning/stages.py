"""The stages of a tenancy's life, and what each makes of its manifests. Pure."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from provisioning.desired import volcano

Manifest = dict[str, Any]


class Stage(StrEnum):
    """Where in its life a tenancy is; the value is stored."""

    HERE = "here"
    LEAVING = "leaving"
    RETAINED = "retained"
    REMOVING = "removing"
    GONE = "gone"

    @property
    def words(self) -> str:
        """The stage as a badge says it."""
        return WORDS[self][1]

    @property
    def tone(self) -> str:
        """The badge's tone."""
        return WORDS[self][0]


class Stop(StrEnum):
    """What a queue does, as Kueue's `stopPolicy` calls it; with Volcano its queue is one of nothing."""

    NONE = "None"
    HOLD = "Hold"
    DRAIN = "HoldAndDrain"


WORDS: Mapping[Stage, tuple[str, str]] = {
    Stage.HERE: ("good", "Here"),
    Stage.LEAVING: ("ending", "Leaving"),
    Stage.RETAINED: ("ending", "Kept for a return"),
    Stage.REMOVING: ("moving", "Being deleted"),
    Stage.GONE: ("past", "Gone"),
}
# What may follow what; everything else is refused.
NEXT: Mapping[Stage, frozenset[Stage]] = {
    Stage.HERE: frozenset({Stage.LEAVING}),
    Stage.LEAVING: frozenset({Stage.HERE, Stage.RETAINED}),
    Stage.RETAINED: frozenset({Stage.HERE, Stage.REMOVING}),
    Stage.REMOVING: frozenset({Stage.GONE}),
    Stage.GONE: frozenset(),
}
STANDS = frozenset({Stage.HERE, Stage.LEAVING, Stage.RETAINED})


def as_left(
    objects: Sequence[Manifest], *, stop: str, access: bool, keeps_binding: str = ""
) -> list[Manifest]:
    """The objects with the queue stopped and, without access, bindings of nobody and quotas of nothing.

    `keeps_binding` names one that stays as it is: the portal's own, where it has to stop itself what runs.
    Claims that stand are kept, as they are never pruned; a missing one is not wanted, as the quota would refuse it.
    Everything else stays as it is. A binding stays with nobody in it: taken out of a Git repository, it would stay on
    a cluster where nothing is pruned.
    """
    kept = [one for one in objects if access or one["kind"] != "PersistentVolumeClaim"]
    return [
        _changed(
            one, stop=stop, access=access or one["metadata"]["name"] == keeps_binding
        )
        for one in kept
    ]


def _changed(one: Manifest, *, stop: str, access: bool) -> Manifest:
    if (one["apiVersion"], one["kind"]) == volcano.QUEUE:
        return (
            one
            if access and stop == Stop.NONE
            else volcano.stopped(one, runs_on=access)
        )
    if one["kind"] == "ClusterQueue":
        spec = {**one["spec"], "stopPolicy": stop}
        if not access:
            spec["resourceGroups"] = [
                _emptied(group) for group in spec.get("resourceGroups", [])
            ]
        return {**one, "spec": spec}
    if one["kind"] == "RoleBinding" and not access:
        return {**one, "subjects": []}
    if one["kind"] == "ResourceQuota" and not access:
        return {
            **one,
            "spec": {**one["spec"], "hard": dict.fromkeys(one["spec"]["hard"], "0")},
        }
    return one


def _emptied(group: Mapping[str, Any]) -> dict[str, Any]:
    """A resource group of nothing: what is lent to nobody and borrowed from nobody."""
    flavors = [
        {
            **flavor,
            "resources": [_nothing(resource) for resource in flavor["resources"]],
        }
        for flavor in group["flavors"]
    ]
    return {**group, "flavors": flavors}


def _nothing(resource: Mapping[str, Any]) -> dict[str, Any]:
    amounts = {name: "0" for name in resource if name != "name"}
    return {"name": resource["name"], **amounts}
