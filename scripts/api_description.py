"""Keeps docs/reference/openapi.yaml equal to what the code describes."""

import difflib
import subprocess
import sys
from pathlib import Path

from scripts.packages import ROOT
from tests.services import environment

COMMITTED = ROOT / "docs/reference/openapi.yaml"


def describe(target: Path) -> None:
    """Write the API's OpenAPI description to a file; raises CalledProcessError when it has errors."""
    command = [
        sys.executable,
        "manage.py",
        "spectacular",
        "--validate",
        "--fail-on-warn",
        "--file",
        str(target),
    ]
    subprocess.run(command, cwd=ROOT, check=True)


def difference(target: Path) -> str:
    """What differs between the committed description and the one in `target`; empty when nothing does."""
    committed = COMMITTED.read_text().splitlines() if COMMITTED.exists() else []
    names = {"fromfile": "committed", "tofile": "as the code describes it"}
    return "\n".join(
        difflib.unified_diff(
            committed, target.read_text().splitlines(), **names, lineterm="", n=2
        )
    )


def main() -> int:
    """`--check FILE` compares by way of FILE; without it the committed file is written."""
    if sys.argv[1:2] != ["--check"]:
        COMMITTED.parent.mkdir(parents=True, exist_ok=True)
        environment.fill()
        describe(COMMITTED)
        # The list of addresses follows from it.
        from scripts import reference

        (reference.FOLDER / "addresses.md").write_text(reference.addresses())
        return 0
    target = Path(sys.argv[2])
    describe(target)
    if found := difference(target):
        print(f"{found[:4000]}\nRun make api-description and commit the file.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
