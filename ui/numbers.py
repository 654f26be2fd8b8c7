"""Figures, capacity bars, meters and strips."""

from collections.abc import Sequence
from decimal import Decimal

from django import template

from ui import drawing, formats
from ui.parts import Capacity

register = template.Library()
Context = dict[str, object]


@register.inclusion_tag("parts/figure.html")
def figure(
    label: str,
    value: object,
    unit: str = "",
    note: object = "",
    tone: str = "",
    href: str = "",
    hero: bool = False,
) -> Context:
    """A large number with label, unit and a small comparison; `hero` makes it 40 px."""
    text = formats.number(value) if isinstance(value, int | float | Decimal) else value
    return {
        "label": label,
        "value": text,
        "unit": unit,
        "note": note,
        "tone": tone,
        "href": href,
        "hero": hero,
    }


@register.inclusion_tag("parts/capacity.html")
def capacity_bar(capacity: Capacity, thin: bool = False) -> Context:
    """One bar; free is what is left."""
    segments, over = drawing.capacity_segments(capacity)
    return {"capacity": capacity, "segments": segments, "over": over, "thin": thin}


@register.inclusion_tag("parts/meter.html")
def budget_meter(
    spent: Decimal | float,
    total: Decimal | float,
    label: str = "Budget",
    note: object = "",
    soft: int = 80,
    unit: str = "",
) -> Context:
    """USD, or another `unit`, spent of a budget; amber from `soft` percent, red from 100 %."""
    share = drawing.percent(float(spent), float(total))
    tone = "bad" if share >= 100 else "waiting" if share >= soft else ""
    return {
        "label": label,
        "spent": formats.number(spent) if unit else formats.dollars(spent),
        "total": f"{formats.number(total)} {unit}" if unit else formats.dollars(total),
        # As everywhere: nothing is called all of it that is not.
        "share": int(share),
        "width": min(share, 100),
        "tone": tone,
        "note": note,
    }


@register.inclusion_tag("parts/strip.html")
def bar_strip(
    values: Sequence[float],
    most: float,
    label: str,
    unit: str = "%",
    labels: Sequence[str] = (),
) -> Context:
    """A small bar chart of one value a day with a table twin for readers; `most` is the full height."""
    return {
        "bars": drawing.strip_bars(values, most, labels),
        "label": label,
        "unit": unit,
    }
