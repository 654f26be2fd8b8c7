"""What was measured and what it is held against: pure. Medians, ratios, the table and the file."""

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

HEADINGS = ("", "what", "portal", "peer", "ratio (least – most)", "held against", "")
LEAST_PAIRS = 5


class Better(Enum):
    """How a ratio is made, so that it reads as its target is phrased."""

    PEER_OVER_PORTAL = "times: how often the portal's fits into the peer's"
    PORTAL_OVER_PEER = "share: the portal's as a part of the peer's"


@dataclass(frozen=True)
class Goal:
    """A number and the bound it must keep."""

    words: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the number keeps its bounds; one that is no number never does."""
        if math.isnan(self.value):
            return False
        return (self.least is None or self.value >= self.least) and (
            self.most is None or self.value <= self.most
        )

    @property
    def bound(self) -> str:
        """The bounds as the table says them."""
        parts = [("≥", self.least), ("≤", self.most)]
        return ", ".join(
            f"{sign} {figure(limit)}" for sign, limit in parts if limit is not None
        )


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One benchmark: figures of portal and peer in pairs of which each was taken at one time.

    `goal` bounds the ratio of the medians; `others` are further numbers with bounds of their own.
    """

    what: str
    portal: Sequence[float]
    peer: Sequence[float]
    unit: str
    better: Better
    least: float | None = None
    most: float | None = None
    others: Sequence[Goal] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        """Raises ValueError for figures that are not in pairs, or too few to say anything."""
        if len(self.portal) != len(self.peer):
            raise ValueError(
                f"{len(self.portal)} figures of the portal and {len(self.peer)} of the peer."
            )
        if len(self.portal) < LEAST_PAIRS:
            raise ValueError(
                f"{len(self.portal)} pairs are too few: {LEAST_PAIRS} at least."
            )
        if min(*self.portal, *self.peer) <= 0:
            raise ValueError("Nothing takes no time: a figure is zero or less.")

    @property
    def ratio(self) -> float:
        """Of the two medians."""
        return self._ratio(statistics.median(self.portal), statistics.median(self.peer))

    @property
    def ratios(self) -> list[float]:
        """Of each pair."""
        return [self._ratio(*pair) for pair in zip(self.portal, self.peer, strict=True)]

    @property
    def goals(self) -> list[Goal]:
        """The ratio's first, when it has one."""
        has_bound = self.least is not None or self.most is not None
        ratio = [Goal("ratio", self.ratio, self.least, self.most)] if has_bound else []
        return [*ratio, *self.others]

    @property
    def is_met(self) -> bool:
        """Whether every goal is."""
        return all(goal.is_met for goal in self.goals)

    def as_json(self) -> dict[str, Any]:
        """The entry of results.json; times and rates in `unit`."""
        return {
            "ratio": self.ratio,
            "portal": statistics.median(self.portal),
            "peer": statistics.median(self.peer),
            "unit": self.unit,
            "runs": len(self.portal),
            "min": min(self.ratios),
            "max": max(self.ratios),
            "goals": [
                {
                    "what": goal.words,
                    "value": goal.value,
                    "bound": goal.bound,
                    "met": goal.is_met,
                }
                for goal in self.goals
            ],
        }

    def _ratio(self, portal: float, peer: float) -> float:
        return (
            peer / portal if self.better is Better.PEER_OVER_PORTAL else portal / peer
        )


def table(measured: dict[str, Measured]) -> str:
    """One line for each goal, aligned; the first of a benchmark has its figures."""
    lines = [
        HEADINGS,
        *(line for name, each in measured.items() for line in _lines(name, each)),
    ]
    widths = [
        max(len(line[column]) for line in lines) for column in range(len(HEADINGS))
    ]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def write(path: Path, measured: dict[str, Measured]) -> None:
    """Replace the file by what this run measured."""
    found = {name: each.as_json() for name, each in measured.items()}
    path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def chosen(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """The known ones among `names`, in their order, all when none is named; raises ValueError naming a strange one."""
    wanted = {name.strip().upper() for name in names} - {""}
    if strange := sorted(wanted - set(known)):
        raise ValueError(
            f"There is no benchmark {strange[0]}; there are {', '.join(known)}."
        )
    return [name for name in known if name in wanted or not wanted]


def figure(value: float) -> str:
    """Three digits that count, or all of a whole number's."""
    if math.isnan(value):
        return "not measured"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def _lines(name: str, each: Measured) -> list[tuple[str, ...]]:
    shown = each.as_json()
    first = (
        name,
        each.what,
        f"{figure(shown['portal'])} {each.unit}",
        f"{figure(shown['peer'])} {each.unit}",
        f"{figure(each.ratio)} ({figure(shown['min'])} – {figure(shown['max'])})",
    )
    goals = [
        (_held(goal), "ok" if goal.is_met else "MISSED") for goal in each.goals
    ] or [("", "")]
    rest = [("", "", "", "", "", *goal) for goal in goals[1:]]
    return [(*first, *goals[0]), *rest]


def _held(goal: Goal) -> str:
    return (
        goal.bound
        if goal.words == "ratio"
        else f"{goal.words}: {figure(goal.value)} ({goal.bound})"
    )
