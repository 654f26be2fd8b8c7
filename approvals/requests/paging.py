"""Pages of a list by the place of its last row, so that rows arriving meanwhile neither repeat nor hide any."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.utils.http import urlencode

from approvals.models import Request, RequestQuerySet

SIZE = 25
CURSOR = re.compile(r"(?P<at>[0-9T:.+-]{10,40})_(?P<pk>\d{1,18})", re.ASCII)


@dataclass(frozen=True)
class Page:
    """Rows, newest first, and the addresses of the pages beside it (empty where there is none)."""

    rows: list[Request]
    newer: str
    older: str


def page_of(rows: RequestQuerySet, query: Mapping[str, str]) -> Page:
    """The page that `before` or `after` in a query string points to; the first for a cursor nobody gave out."""
    place, is_back = _place(query)
    found = (
        rows.order_by("created_at", "id")
        if is_back
        else rows.order_by("-created_at", "-id")
    )
    if place is not None:
        at, pk = place
        beyond = Q(created_at__gt=at) | Q(created_at=at, pk__gt=pk)
        if not is_back:
            beyond = Q(created_at__lt=at) | Q(created_at=at, pk__lt=pk)
        found = found.filter(beyond)
    seen = list(found[: SIZE + 1])
    more, seen = len(seen) > SIZE, seen[:SIZE]
    if is_back:
        seen.reverse()
    kept = {
        key: value
        for key, value in query.items()
        if value and key not in ("before", "after")
    }
    newer = (
        _link(kept, "after", seen[0])
        if seen and place and (more or not is_back)
        else ""
    )
    older = _link(kept, "before", seen[-1]) if seen and (more or is_back) else ""
    return Page(seen, newer, older)


def _place(query: Mapping[str, str]) -> tuple[tuple[datetime, int] | None, bool]:
    for name in ("before", "after"):
        found = CURSOR.fullmatch(query.get(name, ""))
        if found is None:
            continue
        try:
            at = datetime.fromisoformat(found["at"])
        except ValueError:
            continue
        if at.tzinfo is not None:
            return (at, int(found["pk"])), name == "after"
    return None, False


def _link(kept: Mapping[str, str], name: str, row: Request) -> str:
    return "?" + urlencode({**kept, name: f"{row.created_at.isoformat()}_{row.pk}"})
