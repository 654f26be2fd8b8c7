"""Totals of other rows as part of a query, so that a page asks once for all of them."""

from typing import Any

from django.db.models import Aggregate, QuerySet, Subquery


def total(rows: QuerySet[Any], value: Aggregate, *, by: str) -> Subquery:
    """One number over rows that belong to the outer row by way of `by`; NULL when there are none."""
    return Subquery(rows.order_by().values(by).annotate(total=value).values("total"))
