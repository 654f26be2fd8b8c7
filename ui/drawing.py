"""Where the rectangles of a bar, a meter and a strip go, in percent: pages carry no style attributes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ui.parts import Amounts

TAKEN: Sequence[Literal["used", "reserved", "blocked", "asked"]] = (
    "used",
    "reserved",
    "blocked",
    "asked",
)
# "Used" is what is measured: what somebody was granted is held, whether they use it or not.
WORDS = {"used": "Held", "blocked": "Cordoned or not ready"}


@dataclass(frozen=True)
class Segment:
    """One rectangle of a capacity bar: `x` and `width` are percentages, `amount` is in the bar's unit."""

    kind: str
    word: str
    amount: float
    x: float
    width: float


@dataclass(frozen=True)
class Bar:
    """One bar of a strip: place and size in percent of the frame, with its value and its day."""

    x: float
    y: float
    width: float
    height: float
    value: float
    label: str


def percent(part: float, whole: float) -> float:
    """Share of `whole` in percent with two decimals, 0 when there is nothing to share."""
    return round(100 * part / whole, 2) if whole > 0 else 0.0


def capacity_segments(capacity: Amounts) -> tuple[list[Segment], float]:
    """Segments of a bar from the left, free last, and how much is asked beyond what is free.

    Whatever is counted twice is cut at `total`: the bar is never longer than its frame.
    """
    total = float(capacity["total"])
    left = total
    segments: list[Segment] = []
    taken: dict[str, float] = {}
    for kind in TAKEN:
        wish = float(capacity.get(kind) or 0)
        taken[kind] = min(wish, left)
        left -= taken[kind]
    over = float(capacity.get("asked") or 0) - taken["asked"]
    at = 0.0
    for name, amount in (
        *((k, taken[k]) for k in ("used", "reserved", "asked")),
        ("free", left),
        ("blocked", taken["blocked"]),
    ):
        if amount > 0 or name in ("used", "free"):
            segments.append(
                Segment(
                    name,
                    _word(name, is_asked=taken["asked"] > 0),
                    amount,
                    percent(at, total),
                    percent(amount, total),
                )
            )
        at += amount
    return segments, over


def _word(kind: str, *, is_asked: bool) -> str:
    """What a segment is called: what waits for a decision is free until then."""
    if kind == "asked":
        return "Free, asked for"
    if kind == "free" and is_asked:
        return "Free, not asked for"
    return WORDS.get(kind, kind.capitalize())


def strip_bars(
    values: Sequence[float], most: float, labels: Sequence[str]
) -> list[Bar]:
    """Bars of a small bar strip: percentages of the frame, growing from the bottom, at least 2 % tall."""
    step = 100 / max(len(values), 1)
    bars = []
    for index, value in enumerate(values):
        height = max(min(percent(value, most), 100.0), 2.0)
        label = labels[index] if index < len(labels) else ""
        bars.append(
            Bar(
                x=round(index * step, 2),
                y=round(100 - height, 2),
                width=round(step * 0.78, 2),
                height=height,
                value=value,
                label=label,
            )
        )
    return bars
