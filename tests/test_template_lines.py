"""Templates: a line that is too long is named, one of just the length that is allowed is not; each compiles."""

from pathlib import Path

from django.template.loader import get_template

from scripts.check import checks
from scripts.packages import ROOT
from scripts.template_lines import LONGEST, long_lines, main


def test_a_line_that_is_too_long_is_named_with_its_place(tmp_path: Path) -> None:
    inner = tmp_path / "templates/portal"
    inner.mkdir(parents=True)
    (inner / "page.html").write_text(
        f"<p>short</p>\n{'×' * LONGEST}\n{'×' * (LONGEST + 1)}\n"
    )

    (found,) = long_lines(tmp_path / "templates")

    assert found.startswith(
        "templates/portal/page.html:3: 121 characters, at most 120 are allowed"
    )


def test_no_template_has_such_a_line_and_the_checks_look(tmp_path: Path) -> None:
    assert main() == 0
    assert any("scripts.template_lines" in each.argv for each in checks(tmp_path))


def test_every_template_is_one() -> None:
    folder = ROOT / "templates"
    names = [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.suffix in (".html", ".txt")
    ]
    assert len(names) > 100
    for name in names:
        get_template(name)
