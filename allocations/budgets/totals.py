"""Totals of other rows as part of a query, so that a page asks once for all of them."""

from typing import Any

from django.db.models import Expression, QuerySet, Subquery
from django.db.models.expressions import Combinable
from django.db.models.functions import Round


def total(rows: QuerySet[Any], value: Expression, *, by: str) -> Subquery:
    """One number over rows that belong to the outer row by way of `by`; NULL when there are none."""
    return Subquery(rows.order_by().values(by).annotate(total=value).values("total"))


def in_cents(amount: Combinable) -> Round:
    """USD or GPU-hours as rows keep them: SQLite has no decimals, and what it adds up misses by a trifle."""
    return Round(amount, precision=2)
