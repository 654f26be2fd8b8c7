"""What became of an ask from one version to another, in words: before and after of what differs. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from catalogue.offering import Offering
from ui.amounts import moment, usd

NOTHING = "–"


@dataclass(frozen=True, kw_only=True)
class Said:
    """What one version of a request says."""

    spec: Mapping[str, Any]
    until: datetime
    reason: str
    usd: Decimal
    starts: datetime | None = None


@dataclass(frozen=True)
class Change:
    """One thing that differs."""

    label: str
    before: str
    after: str

    @property
    def words(self) -> str:
        """ "GPUs: 5 → 3"."""
        return f"{self.label}: {self.before} → {self.after}"


def changes(
    before: Said, after: Said, *, offering: Offering, now: datetime
) -> list[Change]:
    """What differs, in the order of the form; empty where both say the same."""
    found = list(_of_spec(before.spec, after.spec, offering))
    if (then := _begins(before, now)) != (later := _begins(after, now)):
        found.append(Change("From", then, later))
    # To the minute: a form knows no seconds.
    if (then := moment(before.until, now)) != (later := moment(after.until, now)):
        found.append(Change("Until", then, later))
    if before.reason.strip() != after.reason.strip():
        found.append(
            Change(
                "Why", before.reason.strip() or NOTHING, after.reason.strip() or NOTHING
            )
        )
    if found and before.usd != after.usd:
        found.append(Change("Cost", usd(before.usd), usd(after.usd)))
    return found


def in_words(found: list[Change]) -> str:
    """ "GPUs: 5 → 3, Until: Mon 23 Nov, 12:00 UTC → Tue 24 Nov, 12:00 UTC"; the reason is named, not repeated."""
    return "; ".join(
        "the reason" if change.label == "Why" else change.words for change in found
    )


def _begins(said: Said, now: datetime) -> str:
    return "at once" if said.starts is None else moment(said.starts, now)


def _of_spec(
    before: Mapping[str, Any], after: Mapping[str, Any], offering: Offering
) -> Iterator[Change]:
    for name, field in offering.spec.model_fields.items():
        old, new = before.get(name), after.get(name)
        if old != new:
            yield Change(
                field.title or name.replace("_", " ").capitalize(),
                _shown(old),
                _shown(new),
            )


def _shown(value: Any) -> str:
    if value is None or value == "":
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else str(value)
