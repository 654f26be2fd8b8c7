"""A line of a template that is too long is named; one of just the length that is allowed is not."""

from pathlib import Path

from scripts.check import checks
from scripts.template_lines import LONGEST, long_lines, main


def test_a_line_that_is_too_long_is_named_with_its_place(tmp_path: Path) -> None:
    inner = tmp_path / "templates/portal"
    inner.mkdir(parents=True)
    (inner / "page.html").write_text(f"<p>short</p>\n{'×' * LONGEST}\n{'×' * (LONGEST + 1)}\n")

    (found,) = long_lines(tmp_path / "templates")

    assert found.startswith("templates/portal/page.html:3: 121 characters, at most 120 are allowed")


def test_no_template_has_such_a_line_and_the_checks_look(tmp_path: Path) -> None:
    assert main() == 0
    assert any("scripts.template_lines" in each.argv for each in checks(tmp_path))
