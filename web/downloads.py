"""Answers that a browser keeps as a file."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from web.spreadsheets import BYTE_ORDER_MARK, csv_lines

BATCH = 1000
M = TypeVar("M", bound=Model)
CSV = "text/csv; charset=utf-8"
YAML = "text/yaml; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"


def kept_as(name: str) -> dict[str, str]:
    """The headers with which an answer is kept under this name, in ASCII and without quotes."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def text_file(text: str, *, name: str, content_type: str) -> HttpResponse:
    """A text as a file of this name."""
    return HttpResponse(text, content_type=content_type, headers=kept_as(name))


def csv_file(text: str, *, name: str, for_programs: bool = False) -> HttpResponse:
    """Lines of CSV as a file; a program would read the mark that Excel needs as part of the first column's name."""
    mark = "" if for_programs else BYTE_ORDER_MARK
    return text_file(mark + text, name=name, content_type=CSV)


def rows_as_csv(
    request: HttpRequest,
    rows: QuerySet[M],
    *,
    columns: Iterable[str],
    cells: Callable[[M], Iterable[object]],
    name: str,
) -> StreamingHttpResponse:
    """A line of cells for each row, the newest (by key) first, as a file that is sent in pieces of a thousand lines."""
    pieces = _pieces(rows, columns, cells)
    return StreamingHttpResponse(
        # A server that is asynchronous would gather an ordinary iterator whole before it sends anything.
        _awaited(pieces) if isinstance(request, ASGIRequest) else pieces,
        content_type=CSV,
        headers=kept_as(name),
    )


def _pieces(
    rows: QuerySet[M], columns: Iterable[str], cells: Callable[[M], Iterable[object]]
) -> Iterator[bytes]:
    """The file in pieces; no query stays open between two of them."""
    yield (BYTE_ORDER_MARK + csv_lines([columns])).encode()
    last: object = None
    while True:
        following = rows if last is None else rows.filter(pk__lt=last)
        batch = list(following.order_by("-pk")[:BATCH])
        if not batch:
            return
        yield csv_lines(map(cells, batch)).encode()
        last = batch[-1].pk


async def _awaited(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while piece := await sync_to_async(_following)(pieces):
        yield piece


def _following(pieces: Iterator[bytes]) -> bytes:
    """The next piece, empty at the end: a coroutine cannot raise StopIteration."""
    return next(pieces, b"")
