"""Weeks of use as steps in a frame of 1,000 by 200, and as the small bars of a row; zero is at the bottom. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Decimal

from insights.utilisation.weeks import TENTH, Week, midnight

WIDTH, HEIGHT = 1000, 200
# Half of a line's width, which would be cut off at the edges.
EDGE = 1
# A week that has only begun says nothing yet of how many were held on average.
LEAST_HOURS = 1
# Of the small bars in pixels; a week without work keeps a line of its own, so that it is no gap.
BAR_WIDTH, BAR_STEP, BAR_HEIGHT, LEAST_BAR = 4, 5, 24, Decimal(2)


@dataclass(frozen=True, kw_only=True)
class WeekChart:
    """Points of an SVG's lines, "x,y x,y …": GPUs on average, one line for each run of weeks in which they are known.

    `idle` go round what lies between held and used in the weeks that were measured. A week is as wide as it has lasted,
    so that areas are GPU-hours. `top` is the number of GPUs at the upper edge, `is_under_way` whether the last week is.
    """

    held: list[str]
    used: list[str]
    idle: list[str]
    begins: datetime
    ends: datetime
    is_under_way: bool
    top: int


@dataclass(frozen=True, kw_only=True)
class _Step:
    """A week in the frame, its heights in GPUs on average; None for a gap."""

    left: Decimal
    right: Decimal
    held: Decimal | None
    used: Decimal | None


def week_chart(weeks: Sequence[Week]) -> WeekChart | None:
    """The steps of some weeks in a row; None before anything was held in two of them."""
    drawn = [one for one in weeks if one.hours >= LEAST_HOURS]
    means = [one.held / one.hours for one in drawn if one.held]
    if len(means) < 2:
        return None
    # What is rounded in a week that has only begun makes no GPU more.
    highest = max(Decimal(1), *means).quantize(TENTH)
    top = highest.to_integral_value(ROUND_CEILING)
    steps = _steps(drawn)
    return WeekChart(
        held=[" ".join(line) for line in _lines(steps, _held, top)],
        used=[" ".join(line) for line in _lines(steps, _used, top)],
        idle=_between(steps, top),
        begins=midnight(drawn[0].begins),
        ends=drawn[-1].until,
        is_under_way=not drawn[-1].is_over,
        top=int(top),
    )


def _steps(weeks: Sequence[Week]) -> list[_Step]:
    total, at = sum(one.hours for one in weeks), Decimal(0)
    steps = []
    for one in weeks:
        held = one.held / one.hours if one.held else None
        used = None
        if held is not None and one.used is not None:
            # Of a week that was measured in part, the part stands for all of it.
            used = held * one.used / one.measured
        left, at = at, at + one.hours
        steps.append(
            _Step(
                left=WIDTH * left / total,
                right=WIDTH * at / total,
                held=held,
                used=used,
            )
        )
    return steps


def _held(step: _Step) -> Decimal | None:
    return step.held


def _used(step: _Step) -> Decimal | None:
    return step.used


def _lines(
    steps: Sequence[_Step], height: Callable[[_Step], Decimal | None], top: Decimal
) -> list[list[str]]:
    """The points of a line for each run of weeks that have a height."""
    lines: list[list[str]] = [[]]
    for one in steps:
        value = height(one)
        if value is None:
            lines.append([])
            continue
        y = _y(value, top)
        lines[-1] += [f"{one.left:.1f},{y}", f"{one.right:.1f},{y}"]
    return [line for line in lines if line]


def _between(steps: Sequence[_Step], top: Decimal) -> list[str]:
    """What lies between held and used, one area for each run of weeks that were measured."""
    high = _lines(steps, lambda one: None if one.used is None else one.held, top)
    low = _lines(steps, _used, top)
    return [
        " ".join([*above, *reversed(below)])
        for above, below in zip(high, low, strict=True)
    ]


def _y(value: Decimal, top: Decimal) -> str:
    return f"{EDGE + (HEIGHT - 2 * EDGE) * (1 - min(value, top) / top):.1f}"


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Paths of small bars, one for each week that was measured: `track` is all of what was held, `used` its share."""

    track: str
    used: str
    width: int
    height: int = BAR_HEIGHT


def week_bars(weeks: Sequence[Week]) -> Bars:
    """The share that was used in each week; a week that was not measured leaves its place empty."""
    known = [
        (number * BAR_STEP, one.percent)
        for number, one in enumerate(weeks)
        if one.percent is not None
    ]
    return Bars(
        track=" ".join(_bar(x, Decimal(BAR_HEIGHT)) for x, _ in known),
        used=" ".join(
            _bar(x, max(BAR_HEIGHT * share / 100, LEAST_BAR)) for x, share in known
        ),
        width=len(weeks) * BAR_STEP - (BAR_STEP - BAR_WIDTH),
    )


def _bar(x: int, height: Decimal) -> str:
    return f"M{x} {BAR_HEIGHT}v-{height:.1f}h{BAR_WIDTH}v{height:.1f}z"
