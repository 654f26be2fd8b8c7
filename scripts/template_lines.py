"""Names every line of a template that is longer than 120 characters: a template is read from top to bottom."""

import sys
from pathlib import Path

from scripts.packages import ROOT

LONGEST = 120


def long_lines(folder: Path) -> list[str]:
    """Each line that is too long, as file, line and what to do about it."""
    return [
        f"{path.relative_to(folder.parent)}:{number}: {len(line)} characters, at most {LONGEST} are allowed:"
        " give each attribute or element a line of its own, and long texts to the page's context"
        for path in sorted(folder.rglob("*.html"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > LONGEST
    ]


def main() -> int:
    """Print them; 1 when there are any."""
    found = long_lines(ROOT / "templates")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
