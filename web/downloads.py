"""Answers that a browser keeps as a file."""

from django.http import HttpResponse

from web.spreadsheets import BYTE_ORDER_MARK

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
