"""An event's details as people read them: what changed from what to what, and everything else by its name."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from policy.document import seat_words
from ui.amounts import capitalized, cents, dated_moment, listed, rate
from ui.parts import Fact

# Under which names a form and a call keep what is wrong with all of it.
WHOLE = frozenset({"__all__", ""})
AMOUNT = re.compile(r"-?\d+\.\d{5,}")
MONEY = re.compile(r"-?\d{1,18}(\.\d+)?", re.ASCII)
HELD_UNDER = re.compile(r"request-(\d+)", re.ASCII)
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
# What was asked for or granted, which most sentences name, and what they thereby say, too.
GIVEN = "what"
SAID_WITH_IT = frozenset({GIVEN, "gpus", "flavor"})
# What stands once where both are the same: as it was asked, and as it was granted.
AS_ASKED = {"asked": "count", "asked_until": "until"}
# What people call it, where its name in the log is none of theirs.
NAMES = {
    "usd": "cost",
    "usd_per_hour": "cost an hour",
    "reference": "hold of",
    "followed_by": "then also",
    "writes": "objects written",
}
ANSWERS = {"people": "people decide", "impossible": "not possible"}
# What a flavor is called by people, by its name.
Kinds = Mapping[str, str]


@dataclass(frozen=True)
class Changed:
    """One thing that was something and became something else; empty text is nothing."""

    label: str
    before: str
    after: str


def label(key: str) -> str:
    """`limit_usd` → "Limit"."""
    return capitalized(_named(key))


def in_one_line(details: Mapping[str, Any], *, title: str, kinds: Kinds) -> str:
    """All of it for a list: `limit $100.00 → $400.00, month November 2026`; not again what the title says."""
    details = _without_repeats(details)
    changed = _changed(details)
    left_out = INTERNAL | {f"{key}_{BEFORE}" for key in changed} | _said(details, title)
    parts = []
    for key, value in details.items():
        if key in left_out:
            continue
        after = in_words(key, value, kinds)
        if key in changed:
            before = in_words(key, details[f"{key}_{BEFORE}"], kinds)
            parts.append(f"{_named(key)} {before or 'none'} → {after or 'none'}")
        elif value:
            parts.append(f"{_named(key)} {after}")
    return ", ".join(parts)


def _said(details: Mapping[str, Any], title: str) -> frozenset[str]:
    """The names of what need not be read again: what the title says, and what was granted as it was asked."""
    given = details.get(GIVEN)
    by_title = SAID_WITH_IT if given and str(given) in title else frozenset()
    as_asked = {
        name for name, of in AS_ASKED.items() if details.get(name) == details.get(of)
    }
    return by_title | as_asked | ({"count"} if "asked" in as_asked else set())


def in_words(key: str, value: Any, kinds: Kinds) -> str:
    """A value as pages say it, where its name tells what it is: "$1,233.12", "2 × A100"; else as it stands."""
    words = {*key.split("_")}
    if isinstance(value, Mapping):
        return ", ".join(_each(key, value, kinds))
    if isinstance(value, list | tuple):
        texts = [in_words(key, each, kinds) for each in value]
        return listed(texts) if words & {"roles", "rules"} else "; ".join(texts)
    if words & {"usd", "price"} and MONEY.fullmatch(str(value)):
        amount = Decimal(value)
        return rate(amount) if words & {"hour", "price"} else cents(amount)
    named = _by_name(key, value, kinds) if isinstance(value, str) else ""
    return named or plain(value)


def _each(key: str, value: Mapping[str, Any], kinds: Kinds) -> Iterator[str]:
    """What is nested, each with its name before it: numbers of GPUs with their kind, a month that follows by itself."""
    for name, inner in value.items():
        if key == "gpus":
            yield f"{inner} × {kinds.get(name, name)}"
        elif (key, name) == ("followed_by", "month"):
            yield in_words(name, inner, kinds)
        elif not _is_empty(inner):
            yield f"{_named(name)} {in_words(name, inner, kinds)}"


def _by_name(key: str, text: str, kinds: Kinds) -> str:
    """What a text stands for by the name that it has; empty for what stands for itself."""
    if key in ("roles", "seat"):
        return seat_words(text)
    if key == "rules_not_met":
        return _named(text)
    if key == "answer":
        return ANSWERS.get(text, text)
    if key == "flavor":
        return kinds.get(text, text)
    if key == "reference" and (found := HELD_UNDER.fullmatch(text)):
        return f"request {found[1]}"
    try:
        return f"{date.fromisoformat(text):%B %Y}" if key == "month" else ""
    except ValueError:
        return ""


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
    if key in NAMES:
        return NAMES[key]
    # An amount has its sign.
    words = [word for word in key.replace("-", "_").split("_") if word]
    named = [word for word in words if word != "usd"] or words
    return " ".join(WORDS.get(word, word) for word in named)


def changes(details: Mapping[str, Any], kinds: Kinds) -> list[Changed]:
    """What changed, in the order in which it was written down."""
    changed = _changed(details)
    found = [
        Changed(
            label(key),
            in_words(key, details[f"{key}_{BEFORE}"], kinds),
            in_words(key, value, kinds),
        )
        for key, value in details.items()
        if key in changed
    ]
    before, after = details.get(BEFORE), details.get(AFTER)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        fields = dict.fromkeys([*before, *after])
        found += [
            Changed(
                label(key),
                in_words(key, before.get(key), kinds),
                in_words(key, after.get(key), kinds),
            )
            for key in fields
        ]
    elif BEFORE in details and AFTER in details:
        found.append(Changed("Value", plain(before), plain(after)))
    return found


def others(details: Mapping[str, Any], kinds: Kinds) -> list[Fact]:
    """Facts of everything that is not a change, for the part `key_values`; moments are moments."""
    details = _without_repeats(details)
    changed = _changed(details)
    said = {*changed, *(f"{key}_{BEFORE}" for key in changed), *INTERNAL}
    if BEFORE in details and AFTER in details:
        said |= {BEFORE, AFTER}
    return [
        _fact(key, value, kinds)
        for key, value in details.items()
        if key not in said and not _is_empty(value)
    ]


def plain(value: Any) -> str:
    """A single value: yes or no, money to the cent, a moment without its seconds, anything else as it stands."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if AMOUNT.fullmatch(str(value)):
        # Money is kept to more digits than anybody pays.
        return f"{Decimal(value):.2f}"
    at = _moment(value)
    if at is not None:
        return dated_moment(at)
    return "" if value is None else str(value)


def _fact(key: str, value: Any, kinds: Kinds) -> Fact:
    at = _moment(value)
    if at:
        return {"label": label(key), "at": at}
    return {"label": label(key), "text": in_words(key, value, kinds)}


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
