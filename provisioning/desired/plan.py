"""The difference between what should stand on a cluster and what does. Pure; empty means converged."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from provisioning.desired.objects import (
    DEFAULT_ACCOUNT,
    DOMAIN,
    INSTALLATION_LABEL,
    MANAGED_BY,
    TENANCY_LABEL,
    Manifest,
)
from provisioning.drift.defaults import (
    Filled,
    added,
    additions,
    below,
    filled_in,
    in_items,
)

FIELD_MANAGER = "quartermaster"
NEVER_PRUNED = frozenset({"Namespace", "PersistentVolumeClaim"})


class Verb(StrEnum):
    """What a step does; FOREIGN does nothing and says why."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    FOREIGN = "foreign"
    KEEP = "keep"


@dataclass(frozen=True)
class Key:
    """An object's place on a cluster."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def ref(self) -> tuple[str, str]:
        """(apiVersion, kind)."""
        return self.api_version, self.kind

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> "Key":
        """The place of this manifest or live object."""
        metadata = manifest["metadata"]
        return cls(
            manifest["apiVersion"],
            manifest["kind"],
            metadata.get("namespace", ""),
            metadata["name"],
        )


@dataclass(frozen=True)
class Step:
    """One object and what is to be done about it; `why` is in words.

    `removal` is a JSON merge patch that takes away what others added: to apply the manifest leaves it where it is.
    """

    verb: Verb
    key: Key
    manifest: Manifest | None
    why: str = ""
    removal: Manifest | None = None


def plan(desired: Sequence[Manifest], live: Mapping[Key, Manifest]) -> list[Step]:
    """Steps in the order of `desired`, KEEP where nothing differs, then deletions of what is ours and not wanted.

    `live` maps every place in `desired` that is taken, and every object that carries the tenancy's label.
    """
    wanted = {Key.of(manifest) for manifest in desired}
    steps = [_step(manifest, live.get(Key.of(manifest))) for manifest in desired]
    for key, found in live.items():
        if key not in wanted and key.kind not in NEVER_PRUNED and is_ours(found):
            steps.append(Step(Verb.DELETE, key, None, "is no longer wanted"))
    return steps


def is_ours(live: Mapping[str, Any]) -> bool:
    """Whether the object carries the product's mark; what does not is never touched."""
    marks = live.get("metadata", {}).get("labels") or {}
    return all(marks.get(label) == value for label, value in MANAGED_BY.items())


def is_nobodys(live: Mapping[str, Any]) -> bool:
    """Whether it is the one object that Kubernetes makes unasked, and nobody has put a mark on: it may be adopted.

    Its controller makes it anew whenever it is missing, before or after the portal comes by; an apply settles either.
    """
    metadata = live.get("metadata", {})
    if (live.get("kind"), metadata.get("name")) != ("ServiceAccount", DEFAULT_ACCOUNT):
        return False
    marks = metadata.get("labels") or {}
    return not any(
        name in MANAGED_BY or name.startswith(f"{DOMAIN}/") for name in marks
    )


def _step(manifest: Manifest, live: Manifest | None) -> Step:
    key = Key.of(manifest)
    if live is None:
        return Step(Verb.CREATE, key, manifest, "is missing")
    if is_nobodys(live):
        return Step(
            Verb.UPDATE,
            key,
            manifest,
            "was made by Kubernetes and is not marked as ours yet",
        )
    if not is_ours(live) or _is_anothers(live, manifest):
        return Step(
            Verb.FOREIGN,
            key,
            manifest,
            f"{key.kind} {key.name} exists and is not ours; it was not touched.",
        )
    if live["metadata"].get("deletionTimestamp"):
        return Step(Verb.KEEP, key, manifest, being_deleted(live))
    return update(key, manifest, live)


def being_deleted(live: Mapping[str, Any]) -> str:
    """What an object waits for that somebody deletes, and of a queue what that means for its team; in words."""
    holds = ", ".join(live["metadata"].get("finalizers") or ())
    words = f"is being deleted; {holds} holds it" if holds else "is being deleted"
    if live.get("kind") not in ("ClusterQueue", "Queue"):
        return words
    running = (live.get("status") or {}).get("admittedWorkloads") or 0
    some = f"{running} workload{'' if running == 1 else 's'} of it still run{'s' if running == 1 else ''}. "
    return f"{words}. {some if running else ''}Nothing new starts until it is gone and made anew"


def update(key: Key, manifest: Manifest, live: Manifest) -> Step:
    """What makes a live object of ours as wanted; KEEP when it is."""
    why = difference(manifest, live)
    if not why:
        return Step(Verb.KEEP, key, manifest)
    return Step(Verb.UPDATE, key, manifest, why, removal(manifest, live))


def difference(manifest: Manifest, live: Manifest) -> str:
    """The first thing that a live object of ours has otherwise than wanted, in words; empty when there is none."""
    left_over = first_left_over(manifest, live)
    return (
        f"{left_over} is no longer wanted"
        if left_over
        else first_difference(manifest, live)
    )


def removal(manifest: Manifest, live: Manifest) -> Manifest | None:
    """A merge patch without what others added, for this version of the object alone; None when there is nothing."""
    places = list(additions(manifest, live))
    if not places:
        return None
    known = {
        name: live["metadata"][name]
        for name in ("uid", "resourceVersion")
        if name in live["metadata"]
    }
    patch: Manifest = {"metadata": known}
    for at in places:
        inner = patch
        for step in at[:-1]:
            inner = inner.setdefault(str(step), {})
        inner[str(at[-1])] = None
    return patch


def _is_anothers(live: Manifest, manifest: Manifest) -> bool:
    """Whether it says that it belongs to another tenancy, or to another portal; one that says nothing is adopted."""
    theirs, ours = (each["metadata"].get("labels") or {} for each in (live, manifest))
    return any(
        name in theirs and theirs[name] != ours.get(name)
        for name in (TENANCY_LABEL, INSTALLATION_LABEL)
    )


def first_difference(wanted: Any, live: Any) -> str:
    """The first of our fields that live does not hold as wanted, in words; empty when all are there.

    In a manifest, what others added counts, too, unless the API server or Kueue fills it in: see
    provisioning.drift.defaults.
    """
    return _difference(wanted, live, "", filled_in(wanted))


def _difference(wanted: Any, live: Any, path: str, filled: Filled) -> str:
    if wanted == live:
        return ""
    if isinstance(wanted, dict):
        return _map_difference(wanted, live, path, filled)
    if isinstance(wanted, list):
        return _list_difference(wanted, live, path, filled)
    return f"{path} is {live!r}, should be {wanted!r}"


def _list_difference(
    wanted: Sequence[Any], live: Any, path: str, filled: Filled
) -> str:
    if live is None and not wanted:
        return ""
    if not isinstance(live, list) or len(live) != len(wanted):
        return f"{path or '.'} differs"
    found = (
        _difference(a, b, f"{path}[{i}]", in_items(filled))
        for i, (a, b) in enumerate(zip(wanted, live, strict=True))
    )
    return next((each for each in found if each), "")


def _map_difference(
    wanted: Mapping[str, Any], live: Any, path: str, filled: Filled
) -> str:
    if not isinstance(live, dict):
        # The API server drops an empty map; there is nothing of ours in it to miss.
        return f"{path} is missing" if wanted else ""
    for name, value in wanted.items():
        if name not in live and value not in ({}, []):
            return f"{path}.{name} is missing"
        found = _difference(
            value, live.get(name), f"{path}.{name}", below(filled, name)
        )
        if found:
            return found
    more = next(iter(added(wanted, live, filled)), "")
    return f"{path}.{more} was added" if more else ""


def first_left_over(wanted: Manifest, live: Manifest) -> str:
    """The first field that we own on the live object and want no longer; empty when there is none."""
    found = next(left_over(wanted, live), None)
    return (
        ""
        if found is None
        else "".join(f".{at}" if isinstance(at, str) else f"[{at}]" for at in found)
    )


def left_over(wanted: Manifest, live: Manifest) -> Iterator[tuple[str | int, ...]]:
    """The places of all fields that we own on the live object and want no longer."""
    for entry in live["metadata"].get("managedFields") or []:
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply":
            yield from _left_over(entry.get("fieldsV1", {}), wanted, live, ())


def _left_over(
    fields: Mapping[str, Any], wanted: Any, live: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[str | int, ...]]:
    """Places of a FieldsV1 set that `wanted` does not hold (structured-merge-diff v4 path elements)."""
    for element, inner in fields.items():
        if element == ".":
            continue
        mark, _, text = element.partition(":")
        present, value = _at(mark, text, wanted)
        stands = _at(mark, text, live)[1]
        here = (*path, text if mark == "f" else _place(live, stands))
        if not present:
            yield here
        elif inner:
            yield from _left_over(inner, value, stands, here)


def _place(live: Any, item: Any) -> int:
    """Where an item stands in a live list; 0 when it is not there."""
    return live.index(item) if isinstance(live, list) and item in live else 0


def _at(mark: str, text: str, wanted: Any) -> tuple[bool, Any]:
    """Whether `wanted` has the path element, and its value."""
    if mark == "f":
        return (
            (True, wanted[text])
            if isinstance(wanted, Mapping) and text in wanted
            else (False, None)
        )
    if not isinstance(wanted, list):
        return False, None
    if mark == "i":
        return (True, wanted[int(text)]) if int(text) < len(wanted) else (False, None)
    sought = json.loads(text)
    for value in wanted:
        if mark == "v" and value == sought:
            return True, value
        if (
            mark == "k"
            and isinstance(value, Mapping)
            and all(value.get(k) == v for k, v in sought.items())
        ):
            return True, value
    return False, None
