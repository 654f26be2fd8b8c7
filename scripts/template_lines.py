"""Names every line of a template over 120 characters, and every apostrophe in its words that is straight.

A template is read from top to bottom, and what its page says is set as print is: “the team’s”.
"""

import re
import sys
from pathlib import Path

from scripts.packages import ROOT

LONGEST = 120
COMMENT = re.compile(r"{#.*?#}|{% comment %}.*?{% endcomment %}", re.DOTALL)
STRAIGHT = re.compile(r"\w+'(?:s|t|re|ve|ll|d|m)\b|(?<![\w'-])\w+s'(?= \w)")


def long_lines(folder: Path) -> list[str]:
    """Each line that is too long, as file, line and what to do about it."""
    return [
        f"{path.relative_to(folder.parent)}:{number}: {len(line)} characters, at most {LONGEST} are allowed:"
        " give each attribute or element a line of its own, and long texts to the page's context"
        for path in sorted(folder.rglob("*.html"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > LONGEST
    ]


def straight_apostrophes(folder: Path) -> list[str]:
    """Each word with a straight apostrophe, as file and word; a comment is for us, and 'one word' names something."""
    return [
        f"{path.relative_to(folder.parent)}: write {found[0].replace(chr(39), '’')} for {found[0]}"
        for path in sorted(folder.rglob("*.html"))
        for found in STRAIGHT.finditer(COMMENT.sub("", path.read_text()))
    ]


def main() -> int:
    """Print them; 1 when there are any."""
    found = [*long_lines(ROOT / "templates"), *straight_apostrophes(ROOT / "templates")]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
