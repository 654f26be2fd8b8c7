"""What on a cluster is not as it was made: every field, who changed it, and since when. Pure.

Who and since come from `metadata.managedFields`, which the API server keeps (structured-merge-diff v4); it says
nothing of what was taken away.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from provisioning.desired.objects import Manifest
from provisioning.desired.plan import FIELD_MANAGER, Key, Step, Verb, left_over
from provisioning.drift.defaults import Filled, added, below, filled_in, in_items
from provisioning.drift.paths import Path, put, text_of, value_at

# What names an object is the same on both sides.
NAMING = frozenset(
    {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}
)
MOST_FIELDS = 100
LONGEST = 2000


class What(StrEnum):
    """What is the matter with an object; the value is stored."""

    CHANGED = "changed"
    MISSING = "missing"
    LEFT_OVER = "left over"


@dataclass(frozen=True)
class Field:
    """One field: what it should hold and holds, None where it is absent; `who` owns it, empty if nobody says."""

    at: Path
    wanted: Any
    live: Any
    who: str = ""

    @property
    def path(self) -> str:
        """The place in words a person can read: `spec.limits[0].default.cpu`."""
        return text_of(self.at)

    def to_json(self) -> dict[str, Any]:
        """The field as it is stored: long values are cut."""
        return {
            "path": self.path,
            "wanted": kept(self.wanted),
            "live": kept(self.live),
            "who": self.who,
        }


@dataclass(frozen=True)
class Finding:
    """One object that is not as it was made; `since` is what the cluster says, None when it says nothing."""

    key: Key
    what: What
    fields: tuple[Field, ...]
    who: str
    operation: str
    since: datetime | None


def finding(step: Step, live: Manifest | None) -> Finding:
    """What a step of a plan would put right; `live` is the object as it stands, None when it is gone."""
    if live is None:
        return Finding(
            step.key,
            What.MISSING,
            tuple(differences(step.manifest or {}, {})),
            "",
            "",
            None,
        )
    if step.verb is Verb.DELETE or step.manifest is None:
        who, operation, since = owner(live, ())
        return Finding(step.key, What.LEFT_OVER, (), who, operation, since)
    found, said = [], []
    for field in _fields(step.manifest, live):
        who, operation, since = owner(live, field.at)
        found.append(Field(field.at, field.wanted, field.live, who))
        if since is not None:
            said.append((since, who, operation))
    newest = max(said, default=None)
    if newest is None:
        return Finding(step.key, What.CHANGED, tuple(found), "", "", None)
    return Finding(
        step.key, What.CHANGED, tuple(found), newest[1], newest[2], newest[0]
    )


def _fields(wanted: Manifest, live: Manifest) -> Iterator[Field]:
    found = list(differences(wanted, live))
    yield from found
    known = {field.at for field in found}
    for at in left_over(wanted, live):
        # What we own and want no longer is something too much, like what others added, and is told once.
        if not any(at[:length] in known for length in range(1, len(at) + 1)):
            yield Field(at, None, value_at(live, at))


def differences(wanted: Any, live: Any) -> Iterator[Field]:
    """Every field that live does not hold as wanted, and what others added that nobody fills in by default.

    Lists of another length are one field: which item is which cannot be told.
    """
    yield from _differences(wanted, live, (), filled_in(wanted))


def _differences(wanted: Any, live: Any, at: Path, filled: Filled) -> Iterator[Field]:
    if isinstance(wanted, Mapping) and (live is None or isinstance(live, Mapping)):
        yield from _of_map(wanted, live or {}, at, filled)
    elif (
        isinstance(wanted, list) and isinstance(live, list) and len(live) == len(wanted)
    ):
        for index, (one, other) in enumerate(zip(wanted, live, strict=True)):
            yield from _differences(one, other, (*at, index), in_items(filled))
    elif wanted != live and wanted != {} and not (wanted == [] and live is None):
        yield Field(at, wanted, live)


def _of_map(
    wanted: Mapping[str, Any], live: Mapping[str, Any], at: Path, filled: Filled
) -> Iterator[Field]:
    for name, value in wanted.items():
        here = (*at, name)
        if here in NAMING or (name not in live and value in ({}, [])):
            continue
        found = list(_differences(value, live.get(name), here, below(filled, name)))
        # Of what holds nothing but empty maps, the whole is missing.
        yield from found or ([] if name in live else [Field(here, value, None)])
    yield from (
        Field((*at, name), None, live[name]) for name in added(wanted, live, filled)
    )


def owner(live: Mapping[str, Any], at: Path) -> tuple[str, str, datetime | None]:
    """The manager other than us that last wrote this field, its operation and its time; empty when there is none."""
    found = []
    for entry in live.get("metadata", {}).get("managedFields") or ():
        manager = str(entry.get("manager", ""))
        if manager != FIELD_MANAGER and _owns(entry.get("fieldsV1") or {}, at, live):
            found.append(
                (_moment(entry.get("time")), manager, str(entry.get("operation", "")))
            )
    said = [each for each in found if each[0] is not None]
    if not said:
        return (found[0][1], found[0][2], None) if found else ("", "", None)
    since, manager, operation = max(said, key=lambda each: str(each[0]))
    return manager, operation, since


def _owns(fields: Mapping[str, Any], at: Path, live: Any) -> bool:
    for step in at:
        if not fields:
            return True  # what is owned as a whole is owned in all its parts
        element = next((name for name in fields if _is(name, step, live)), None)
        if element is None:
            return False
        fields, live = fields[element], value_at(live, (step,))
    return True


def _is(element: str, step: str | int, live: Any) -> bool:
    """Whether an element of FieldsV1 names this step: `f:` a field, `k:` keys, `v:` a value, `i:` a place."""
    mark, _, text = element.partition(":")
    if isinstance(step, str):
        return mark == "f" and text == step
    if mark == "i":
        return text == str(step)
    item = value_at(live, (step,))
    if mark == "k" and isinstance(item, Mapping):
        return all(item.get(key) == value for key, value in json.loads(text).items())
    return mark == "v" and json.loads(text) == item


def spared(wanted: Manifest, live: Manifest, at: Sequence[Path]) -> Manifest:
    """The manifest with what stands on the cluster at these places, so that applying it leaves them alone."""
    made = deepcopy(wanted)
    for path in at:
        put(made, path, deepcopy(value_at(live, path)))
        # A map that is empty by now, and not there, would be made by applying it.
        for length in range(len(path) - 1, 0, -1):
            if (
                _is_hollow(value_at(made, path[:length]))
                and value_at(live, path[:length]) is None
            ):
                put(made, path[:length], None)
    return made


def _is_hollow(value: Any) -> bool:
    """Whether nothing is in it but empty maps and lists."""
    return value in ({}, []) or (
        isinstance(value, Mapping) and all(map(_is_hollow, value.values()))
    )


def kept(value: Any) -> Any:
    """A value as it is stored: what is long is cut, and nothing is in it that a database refuses."""
    text = json.dumps(value, sort_keys=True).replace("\\u0000", "\\ufffd")
    return json.loads(text) if len(text) <= LONGEST else text[:LONGEST] + "…"


def digest(desired: Sequence[Manifest]) -> str:
    """What tells one set of manifests from another: when it is the same, nothing of ours has changed what is wanted."""
    return hashlib.sha256(json.dumps(desired, sort_keys=True).encode()).hexdigest()


def _moment(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
