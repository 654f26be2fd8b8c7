"""Templates: lines that are too long and straight apostrophes are named, what is allowed is not; each compiles."""

from pathlib import Path

from django.template.loader import get_template

from scripts.check import checks
from scripts.packages import ROOT
from scripts.template_lines import (
    LONGEST,
    long_lines,
    main,
    straight_apostrophes,
)


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


def test_a_straight_apostrophe_is_named_where_people_read_it(tmp_path: Path) -> None:
    inner = tmp_path / "templates/portal"
    inner.mkdir(parents=True)
    (inner / "page.html").write_text(
        "{# The team's page. #}{% comment %}\nWho's here.\n{% endcomment %}"
        "{% url 'teams' as teams %}<p>The team’s</p>\n<p>The team's and the teams' own</p>"
        "{% panel \"What's next\" %}{% firstof 'users' 'teams' %}"
    )

    found = straight_apostrophes(tmp_path / "templates")

    assert [each.split(": ")[1] for each in found] == [
        "write team’s for team's",
        "write teams’ for teams'",
        "write What’s for What's",
    ]


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
