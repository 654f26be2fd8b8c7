"""Tables, facts, differences and page links."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import template

from ui import formats

register = template.Library()
Part = Mapping[str, Any]
Context = dict[str, Any]


@register.inclusion_tag("parts/table.html")
def data_table(
    caption: str, columns: Iterable[str | Part], rows: Iterable[Part], show_caption: bool = False
) -> Context:
    """A table; cells are text or {text, sub, href, tone, word, at, money, period, html}."""
    heads = [
        {"label": column, "kind": "", "hidden": False}
        if isinstance(column, str)
        else {"kind": "", "hidden": False, **column}
        for column in columns
    ]
    lines = [{**row, "cells": list(zip(heads, map(whole_cell, row["cells"]), strict=True))} for row in rows]
    return {"caption": caption, "columns": heads, "rows": lines, "show_caption": show_caption}


# A template that asks for a key that is not there pays for an exception; a table of fifty rows asks thousands of times.
BLANK: Part = dict.fromkeys(("text", "sub", "href", "tone", "word", "at", "money", "period", "html"), "")


def whole_cell(cell: object) -> Part:
    """A cell with every key that a cell may have."""
    if isinstance(cell, Mapping):
        return {**BLANK, **cell}
    if isinstance(cell, datetime):
        return {**BLANK, "at": cell}
    return {**BLANK, "text": formats.number(cell) if isinstance(cell, int | float | Decimal) else cell}


@register.inclusion_tag("parts/choice_table.html")
def choice_table(
    caption: str, columns: Iterable[str | Part], rows: Iterable[Part], kind: str = ""
) -> Context:
    """A table in a form, each row {pk, name, cells} with a box that sends its `pk`.

    Of the `kind` "queue" a row is four lines on a phone, and opens wherever it is touched.
    """
    return {**data_table(caption, columns, rows), "kind": kind}


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
def pager(
    previous: str | None, next: str | None, note: str = "", to_previous: str = "Newer", to_next: str = "Older"
) -> Context:
    """Links to the pages beside this one, oldest to the right; both absent shows the note alone."""
    return {
        "previous": previous,
        "next": next,
        "note": note,
        "to_previous": to_previous,
        "to_next": to_next,
    }
