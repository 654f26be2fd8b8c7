"""Pages of a list by cursor: the row after which to go on is named, so the last page costs what the first does."""

import base64
import json
from collections.abc import Mapping
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import BigIntegerField, Model, Q, QuerySet
from rest_framework.exceptions import ErrorDetail
from rest_framework.exceptions import ValidationError as Invalid
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from web.filtering import BadQuery, query_of
from web.strict import USUAL_PAGE

URL = {"type": ["string", "null"], "format": "uri"}


class CursorPages(BasePagination):
    """Keyset pages over one field and the primary key; the view's `asked["ordering"]` or `ordering` names the field.

    The view must offer `limit` and `cursor` (web.strict.PageQuery). Raises BadQuery for a cursor not from here.
    """

    def paginate_queryset(
        self, queryset: Any, request: Request, view: Any = None
    ) -> list[Any] | None:
        """The rows of one page, and the cursors to both sides kept for the answer; None for a short, whole list."""
        if "cursor" not in query_of(view)._declared_fields:
            return None
        asked: Mapping[str, Any] = view.asked
        self._request, self._field = (
            request,
            str(asked.get("ordering") or view.ordering),
        )
        self._limit = int(asked.get("limit", USUAL_PAGE))
        backward, start = self._start(queryset.model, asked.get("cursor"))
        rows = self._rows(queryset, backward=backward, start=start)
        more, rows = len(rows) > self._limit, rows[: self._limit]
        if backward:
            rows.reverse()
        self._before = (
            rows[0] if rows and (more if backward else start is not None) else None
        )
        self._after = rows[-1] if rows and (more or backward) else None
        return rows

    def get_paginated_response(self, data: Any) -> Response:
        """`next`, `previous` and `results`; the links are null at the ends."""
        following = self._link(self._after, backward=False)
        return Response(
            {
                "next": following,
                "previous": self._link(self._before, backward=True),
                "results": data,
            }
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The same for the description."""
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": URL, "previous": URL, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """None here: they stand in the view's PageQuery."""
        return []

    def _rows(
        self, queryset: QuerySet[Any], *, backward: bool, start: tuple[Any, Any] | None
    ) -> list[Any]:
        name, down = self._field.lstrip("-"), self._field.startswith("-") != backward
        sign, step = ("-", "lt") if down else ("", "gt")
        pk = queryset.model._meta.pk
        assert pk is not None  # noqa: S101 - every model of Django's has one
        if start is not None:
            value, key = start
            tie = Q(**{name: value, f"{pk.name}__{step}": key})
            # The first condition bounds the index scan, the second leaves out the ties already shown.
            queryset = queryset.filter(
                Q(**{f"{name}__{step}e": value}), Q(**{f"{name}__{step}": value}) | tie
            )
        return list(
            queryset.order_by(f"{sign}{name}", f"{sign}{pk.name}")[: self._limit + 1]
        )

    def _start(
        self, model: type[Model], cursor: str | None
    ) -> tuple[bool, tuple[Any, Any] | None]:
        if cursor is None:
            return False, None
        try:
            field, backward, value, key = json.loads(
                base64.urlsafe_b64decode(cursor.encode("ascii"))
            )
            if field != self._field or not isinstance(backward, bool):
                raise ValueError(cursor)
            made, key = _value_of(model, field, value), _key_of(key)
        except (ValueError, TypeError, ValidationError, ArithmeticError) as error:
            detail = ErrorDetail(
                "This cursor is not from this list in this order.", "bad_cursor"
            )
            raise BadQuery(Invalid({"cursor": [detail]}).get_full_details()) from error
        return backward, (made, key)

    def _link(self, row: Any, *, backward: bool) -> str | None:
        if row is None:
            return None
        value = getattr(row, self._field.lstrip("-"))
        text = value.isoformat() if isinstance(value, datetime) else str(value)
        plain = json.dumps([self._field, backward, text, row.pk], separators=(",", ":"))
        cursor = base64.urlsafe_b64encode(plain.encode()).decode()
        query = {**self._request.query_params.dict(), "cursor": cursor}
        return f"{settings.PUBLIC_URL}{self._request.path}?{urlencode(query)}"


def _value_of(model: type[Model], field: str, text: object) -> Any:
    """What a cursor's text stands for in a column; raises ValueError and the like for what no row could have."""
    if not isinstance(text, str) or "\x00" in text:
        raise ValueError(text)
    text.encode()  # half a pair of surrogates is no text of a database's
    column = model._meta.get_field(field.lstrip("-"))
    value = column.to_python(text)  # type: ignore[union-attr]
    column.run_validators(value)  # type: ignore[union-attr]
    if isinstance(value, datetime) and (
        value.tzinfo is None or not _is_far_from_the_ends(value)
    ):
        raise ValueError(text)
    return value


def _is_far_from_the_ends(moment: datetime) -> bool:
    """Whether the moment has a date in every zone; raises OverflowError where UTC has none."""
    return MINYEAR < moment.astimezone(UTC).year < MAXYEAR


def _key_of(key: object) -> int:
    if (
        isinstance(key, bool)
        or not isinstance(key, int)
        or not 0 < key <= BigIntegerField.MAX_BIGINT
    ):
        raise ValueError(key)
    return key
