"""The part of OData that Graph clients use: $select, $filter, $search and pages."""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sandbox.entra.refusals import GraphRefusal

Row = dict[str, Any]
STARTSWITH = re.compile(r"startswith\((\w+), ?'((?:[^']|'')*)'\)")
EQUALS = re.compile(r"(\w+) eq '((?:[^']|'')*)'")
SEARCH = re.compile(r'"(\w+):((?:[^"\\]|\\.)*)"')
LARGEST_PAGE = 999


def select(row: Row, fields: str | None, default: Iterable[str]) -> Row:
    """Return the chosen properties, always with the id."""
    wanted = (
        ["id", *(name.strip() for name in fields.split(","))]
        if fields
        else list(default)
    )
    return {name: row[name] for name in wanted if name in row}


def narrow(rows: list[Row], query: Mapping[str, str], eventual: bool) -> list[Row]:
    """Apply $filter and $search; $search needs the header `ConsistencyLevel: eventual`, as in Graph."""
    if "$search" in query:
        if not eventual:
            raise GraphRefusal(
                400,
                "Request_UnsupportedQuery",
                "Request with $search query parameter only works through MSGraph with a special request "
                "header: 'ConsistencyLevel: eventual'",
            )
        rows = [row for row in rows if _search(query["$search"])(row)]
    if "$filter" in query:
        rows = [row for row in rows if _filter(query["$filter"])(row)]
    return rows


def page(rows: list[Row], query: Mapping[str, str], url: str, size: int) -> Row:
    """Return one page with `value` and, when there is more, `@odata.nextLink` with an opaque $skiptoken."""
    try:
        size = int(query.get("$top", size))
        start = int(base64.urlsafe_b64decode(query.get("$skiptoken", "MA==")))
    except ValueError as error:
        raise GraphRefusal(400, "BadRequest", "Invalid paging parameter.") from error
    if not 1 <= size <= LARGEST_PAGE:
        raise GraphRefusal(
            400, "Request_UnsupportedQuery", f"Invalid page size specified: '{size}'."
        )
    answer: Row = {"value": rows[start : start + size]}
    if start + size < len(rows):
        token = base64.urlsafe_b64encode(str(start + size).encode()).decode()
        answer = {"@odata.nextLink": _replace(url, "$skiptoken", token), **answer}
    return answer


def _filter(text: str) -> Callable[[Row], bool]:
    if match := STARTSWITH.fullmatch(text.strip()):
        name, value = match[1], match[2].replace("''", "'").lower()
        return lambda row: str(row.get(name, "")).lower().startswith(value)
    if match := EQUALS.fullmatch(text.strip()):
        name, value = match[1], match[2].replace("''", "'").lower()
        return lambda row: str(row.get(name, "")).lower() == value
    raise GraphRefusal(400, "BadRequest", "Invalid filter clause")


def _search(text: str) -> Callable[[Row], bool]:
    match = SEARCH.fullmatch(text.strip())
    if match is None:
        raise GraphRefusal(
            400,
            "BadRequest",
            f"Syntax error: character '{text[:1]}' is not valid in '{text}'.",
        )
    name, words = match[1], _words(re.sub(r"\\(.)", r"\1", match[2]))
    return lambda row: (
        bool(words)
        and all(
            any(known.startswith(word) for known in _words(str(row.get(name, ""))))
            for word in words
        )
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _replace(url: str, name: str, value: str) -> str:
    base, _, query = url.partition("?")
    kept = [
        part
        for part in query.split("&")
        if part and not part.startswith((name, "%24" + name[1:]))
    ]
    return f"{base}?{'&'.join([*kept, f'{name}={value}'])}"
