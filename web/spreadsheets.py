"""Lines of CSV files whose cells a spreadsheet shows instead of running them: pure."""

import csv
import io
from collections.abc import Iterable

# At the beginning of a file: Excel takes one without it for one in the alphabet of its own country.
BYTE_ORDER_MARK = "\ufeff"
# A spreadsheet runs what begins like this, also after blanks; some take the wide signs of East Asian fonts, too.
FORMULA = ("=", "+", "-", "@", "|", "%", "＝", "＋", "－", "＠")
CONTROLS = ("\t", "\r", "\n")


def safe_cell(value: object) -> str:
    """The value as text, with an apostrophe before what a spreadsheet would take for a formula."""
    text = str(value)
    risky = text.startswith(CONTROLS) or text.lstrip().startswith(FORMULA)
    return f"'{text}" if risky else text


def csv_lines(rows: Iterable[Iterable[object]]) -> str:
    """The rows as lines of a CSV file (RFC 4180), each cell safe for a spreadsheet."""
    text = io.StringIO()
    csv.writer(text).writerows(map(safe_cell, row) for row in rows)
    return text.getvalue()
