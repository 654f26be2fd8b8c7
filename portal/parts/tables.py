"""Tables, facts, differences and page links."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import template

from portal.parts import formats

register = template.Library()
Part = Mapping[str, Any]
Context = dict[str, Any]


@register.inclusion_tag("parts/table.html")
def data_table(
    caption: str, columns: Iterable[str | Part], rows: Iterable[Part], show_caption: bool = False
) -> Context:
    """A table; cells are text or {text, sub, href, tone, word, at, money, period, html}."""
    heads = [{"label": column} if isinstance(column, str) else dict(column) for column in columns]
    lines = [{**row, "cells": list(zip(heads, map(_cell, row["cells"]), strict=True))} for row in rows]
    return {"caption": caption, "columns": heads, "rows": lines, "show_caption": show_caption}


def _cell(cell: object) -> Part:
    if isinstance(cell, Mapping):
        return cell
    if isinstance(cell, datetime):
        return {"at": cell}
    return {"text": formats.number(cell) if isinstance(cell, int | float | Decimal) else cell}


@register.inclusion_tag("parts/key_values.html")
def key_values(rows: Sequence[Part]) -> Context:
    """Facts of one object: {label, text | at | copyable | person | money+period | html}."""
    return {"rows": rows}


@register.inclusion_tag("parts/diff.html")
def diff_table(
    rows: Sequence[Part], caption: str = "What changes", before: str = "Before", after: str = "After"
) -> Context:
    """Exact differences of two documents: {path, before, after}; None means absent on that side."""
    return {"rows": rows, "caption": caption, "before": before, "after": after}


@register.inclusion_tag("parts/pager.html")
def pager(previous: str | None, next: str | None, note: str = "") -> Context:
    """Links of a cursor page, oldest to the right; both absent shows the note alone."""
    return {"previous": previous, "next": next, "note": note}
