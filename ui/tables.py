"""Tables, facts, differences and page links."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from django import template

from ui import formats
from ui.parts import Cell, ChoosableRow, Column, Content, DocumentChange, Fact, Row

register = template.Library()
Context = dict[str, object]


@register.inclusion_tag("parts/table.html")
def data_table(
    caption: str,
    columns: Iterable[str | Column],
    rows: Iterable[Row],
    show_caption: bool = False,
    kind: str = "",
) -> Context:
    """A table; a cell is a value, a badge, or a `Cell`. Its `kind` says how and when its rows become cards, if ever."""
    heads = [
        {"label": column, "kind": "", "hidden": False}
        if isinstance(column, str)
        else {"kind": "", "hidden": False, **column}
        for column in columns
    ]
    lines = [
        {**row, "cells": list(zip(heads, map(whole_cell, row["cells"]), strict=True))}
        for row in rows
    ]
    return {
        "caption": caption,
        "columns": heads,
        "rows": lines,
        "show_caption": show_caption,
        "kind": kind,
    }


# A template that asks for a key that is not there pays for an exception; a table of fifty rows asks thousands of times.
BLANK: Mapping[str, object] = dict.fromkeys(Cell.__annotations__, "")


def whole_cell(cell: Content) -> Mapping[str, object]:
    """A cell with every key that a cell may have."""
    if isinstance(cell, Mapping):
        return {**BLANK, **cell}
    if isinstance(cell, datetime):
        return {**BLANK, "at": cell}
    return {
        **BLANK,
        "text": formats.number(cell)
        if isinstance(cell, int | float | Decimal)
        else cell,
    }


@register.inclusion_tag("parts/choice_table.html")
def choice_table(
    caption: str,
    columns: Iterable[str | Column],
    rows: Iterable[ChoosableRow],
    kind: str = "",
) -> Context:
    """A table in a form, each row with a box that sends its `pk`.

    Of the `kind` "queue" a row is four lines on a phone, and opens wherever it is touched.
    """
    return {**data_table(caption, columns, rows), "kind": kind}


@register.inclusion_tag("parts/key_values.html")
def key_values(rows: Sequence[Fact]) -> Context:
    """Facts of one object."""
    return {"rows": rows}


@register.inclusion_tag("parts/diff.html")
def diff_table(
    rows: Sequence[DocumentChange],
    caption: str = "What changes",
    before: str = "Before",
    after: str = "After",
) -> Context:
    """Exact differences of two documents."""
    return {"rows": rows, "caption": caption, "before": before, "after": after}


@register.inclusion_tag("parts/pager.html")
def pager(
    previous: str | None,
    next: str | None,
    note: str = "",
    to_previous: str = "Newer",
    to_next: str = "Older",
) -> Context:
    """Links to the pages beside this one, oldest to the right; both absent shows the note alone."""
    return {
        "previous": previous,
        "next": next,
        "note": note,
        "to_previous": to_previous,
        "to_next": to_next,
    }
