"""An event's details as people read them: what changed from what to what, and everything else by its name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ui.parts import Fact

# Under which names a form and a call keep what is wrong with all of it.
WHOLE = frozenset({"__all__", ""})
AMOUNT = re.compile(r"-?\d+\.\d{5,}")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:|Z|\+|$)", re.ASCII)
# Of the call and not of what was asked.
INTERNAL = frozenset({"where", "path", "method", "status", "code", "called_with"})
# What a capital at the beginning alone does not make a word of.
WORDS = {
    "usd": "USD",
    "gpus": "GPUs",
    "gpu": "GPU",
    "oid": "object ID",
    "api": "API",
    "ca": "CA",
}
BEFORE, AFTER = "before", "after"
# What was asked for or granted, which most sentences name.
GIVEN = "what"


@dataclass(frozen=True)
class Changed:
    """One thing that was something and became something else; empty text is nothing."""

    label: str
    before: str
    after: str


def label(key: str) -> str:
    """`limit_usd` → "Limit USD"."""
    text = _named(key)
    return text[:1].upper() + text[1:]


def in_one_line(details: Mapping[str, Any], *, title: str) -> str:
    """All of it for a list: `limit USD 100 → 400, month 2026-11-01`; not again what was given, which the title says."""
    details = _without_repeats(details)
    changed = _changed(details)
    left_out = INTERNAL | {f"{key}_{BEFORE}" for key in changed}
    parts = []
    for key, value in details.items():
        if key in left_out:
            continue
        if key in changed:
            before = plain(details[f"{key}_{BEFORE}"])
            parts.append(f"{_named(key)} {before or 'none'} → {plain(value) or 'none'}")
        elif value and not (key == GIVEN and str(value) in title):
            parts.append(f"{_named(key)} {plain(value)}")
    return ", ".join(parts)


def _changed(details: Mapping[str, Any]) -> frozenset[str]:
    """The names of what was something else before."""
    return frozenset(key for key in details if f"{key}_{BEFORE}" in details)


def _without_repeats(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """The details of a refusal with each sentence once: at its field, and as the reason where it is of no field."""
    fields, reason = details.get("fields"), details.get("reason")
    if not isinstance(fields, Mapping):
        return details
    named = {name: text for name, text in fields.items() if name not in WHOLE}
    reasons = dict.fromkeys(
        text
        for text in (reason, *(fields[name] for name in fields if name in WHOLE))
        if text and text not in named.values()
    )
    return {**details, "reason": " ".join(reasons), "fields": named}


def _named(key: str) -> str:
    return " ".join(
        WORDS.get(word, word) for word in key.replace("-", "_").split("_") if word
    )


def changes(details: Mapping[str, Any]) -> list[Changed]:
    """What changed, in the order in which it was written down."""
    changed = _changed(details)
    found = [
        Changed(label(key), plain(details[f"{key}_{BEFORE}"]), plain(value))
        for key, value in details.items()
        if key in changed
    ]
    before, after = details.get(BEFORE), details.get(AFTER)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        fields = dict.fromkeys([*before, *after])
        found += [
            Changed(label(key), plain(before.get(key)), plain(after.get(key)))
            for key in fields
        ]
    elif BEFORE in details and AFTER in details:
        found.append(Changed("Value", plain(before), plain(after)))
    return found


def others(details: Mapping[str, Any]) -> list[Fact]:
    """Facts of everything that is not a change, for the part `key_values`; moments are moments."""
    details = _without_repeats(details)
    changed = _changed(details)
    said = {*changed, *(f"{key}_{BEFORE}" for key in changed), *INTERNAL}
    if BEFORE in details and AFTER in details:
        said |= {BEFORE, AFTER}
    return [
        _fact(label(key), value)
        for key, value in details.items()
        if key not in said and not _is_empty(value)
    ]


def plain(value: Any) -> str:
    """A value in one line: lists with commas, names of nested values before them, moments without their seconds."""
    if isinstance(value, Mapping):
        return ", ".join(
            f"{_named(key)} {plain(inner)}" for key, inner in value.items()
        )
    if isinstance(value, list | tuple):
        return "; ".join(map(plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if AMOUNT.fullmatch(str(value)):
        # Money is kept to more digits than anybody pays.
        return f"{Decimal(value):.2f}"
    at = _moment(value)
    if at is not None:
        return at.isoformat(" ", "minutes").removesuffix("+00:00")
    return "" if value is None else str(value)


def _fact(name: str, value: Any) -> Fact:
    at = _moment(value)
    return {"label": name, "at": at} if at else {"label": name, "text": plain(value)}


def _moment(value: Any) -> datetime | None:
    """The moment in UTC that a text is; None for other values, also for a text of somebody's that begins like one."""
    if not isinstance(value, str) or not MOMENT.match(value):
        return None
    try:
        at = datetime.fromisoformat(value)
        return at.astimezone(UTC) if at.tzinfo else None
    except (ValueError, OverflowError):
        # An overflow: near the ends of the calendar UTC has no date for what another zone has one for.
        return None


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})
