"""A file is kept under its name; Excel reads its letters, and programs its first column."""

import csv
import io

from web.downloads import csv_file
from web.spreadsheets import csv_lines

ROWS = [["who", "said"], ["Zoë", "=cmd()"]]


def test_a_file_for_people_tells_excel_how_its_letters_are_written() -> None:
    answer = csv_file(csv_lines(ROWS), name="teams.csv")
    assert answer.content.decode().startswith("\ufeffwho,said")
    assert answer["Content-Disposition"] == 'attachment; filename="teams.csv"'


def test_a_file_for_programs_begins_with_the_name_of_its_first_column() -> None:
    answer = csv_file(csv_lines(ROWS), name="costs.csv", for_programs=True)
    assert answer.content.decode().startswith("who,said")


def test_no_cell_of_any_file_is_run_by_a_spreadsheet() -> None:
    read = list(csv.reader(io.StringIO(csv_lines(ROWS))))
    assert read == [["who", "said"], ["Zoë", "'=cmd()"]]
