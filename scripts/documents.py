"""The commands of README, tutorial and how-tos, run as they are written against a demo, and what they print.

Every block of commands is run, in order, in one shell. Comments that a reader does not see say the rest:
`<!-- not run: REASON -->` before a block leaves it out; `<!-- prints: TEXT -->` after it names what must be printed.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.expecting import StepFailed
from scripts.packages import ROOT

# The tutorial first: what a person holds already counts when they ask for more.
DOCUMENTS = (ROOT / "docs" / "tutorial.md", ROOT / "README.md")
# What an operator does; the tokens in them are a platform lead's, a second one's and a member's.
FLEET = ("add-a-cluster.md", "add-a-flavor.md")
# What changes the fleet last: a demo has no API server for one cluster more, so that one is an alias of another.
HOW_TOS = tuple(
    sorted((ROOT / "docs" / "how-to").glob("*.md"), key=lambda path: (path.name in FLEET, path.name))
)
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>\n]+) -->\n+)?"
    r"^```(?:console|sh)\n(?P<body>.*?)^```$"
    r"(?P<after>(?:\n+<!-- prints: [^\n]+ -->)*)",
    re.DOTALL | re.MULTILINE,
)
PRINTS = re.compile(r"<!-- prints: (.+?) -->")
END = "\x1e"
DEADLINE_SECONDS = 90
FIRST = 'python3 -c \'import json, sys; print(json.load(sys.stdin)["results"][0]["id"])\''
SHOW_KEY = "docker compose exec web python manage.py verify_audit_log --show-key"
# A call that is refused ends the shell: no document shows one.
BEGIN = 'set -euo pipefail\ncurl() { command curl --fail-with-body "$@"; }\n'
# In a demo the containers' commands are those of this checkout; nothing else of Docker is there.
CONTAINER = """
manage() { (cd "$ROOT" && command "$PYTHON" "$@"); }
docker() {
    if [ "${*:1:4}" = "compose exec web python" ]; then shift 4; manage "$@"
    else echo "not in a demo: docker $*" >&2; return 1; fi
}
python() { manage "$@"; }
qm() { command "$PYTHON" -m qm "$@"; }
"""


@dataclass(frozen=True)
class Block:
    """Commands of a document; `not_run` says why they are left out, empty for those that are run."""

    body: str
    not_run: str
    prints: tuple[str, ...]


def blocks(path: Path) -> list[Block]:
    """Every block of commands of a document, in order."""
    return [
        Block(found["body"], found["reason"] or "", tuple(PRINTS.findall(found["after"])))
        for found in BLOCK.finditer(path.read_text())
    ]


def filled_in(body: str, *, url: str, tokens: Mapping[str, str]) -> str:
    """The commands with what a reader fills in: the address, tokens, and numbers that an answer before gave."""
    listed = {
        "ID": "requests/?team=vision&state=waiting",
        "ALLOCATION": "allocations/?team=vision&held=true&offering=gpus",
        "DRAFT": "policy/drafts/",
    }
    body = body.replace("http://127.0.0.1:8000", url)
    # What an auditor has of their own: the folder of anchors, and the key that was noted once.
    body = body.replace(" /anchors", ' "$QM_ANCHOR_DIR"').replace("PUBLIC-KEY", f'"$({SHOW_KEY})"')
    for name, person in (("TOKEN", "Ada"), ("PRIYA", "Priya"), ("OTHER", "Elena")):
        body = body.replace(f"{name}=qm_…", f"{name}={tokens.get(person, '')}")
    for name, address in listed.items():
        asked = f'curl -s "$URL/{address}" -H "Authorization: Bearer $TOKEN" | {FIRST}'
        body = body.replace(f"{name}=…", f"{name}=$({asked})")
    if "…" in body:
        raise StepFailed(f"Nobody knows what to fill in here:\n{body}")
    return body


def run_how_to(
    path: Path, *, url: str, tokens: Mapping[str, str], folder: Path, env: Mapping[str, str]
) -> str:
    """Run a how-to in a folder of its own, as a platform lead would; `env` is the portal's own. As `run`."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / ".env.example", folder)
    given = {"URL": f"{url}/api/v1", "TOKEN": tokens["Priya"], "MEMBER": tokens["Ada"]}
    given |= {"ROOT": str(ROOT), "PYTHON": sys.executable}
    # The client is a team's own, and its person has signed in with a token.
    given |= {"QM_URL": url, "QM_TOKEN": tokens["Ada"], "XDG_CONFIG_HOME": str(folder)}
    return run(path, url=url, tokens=tokens, before=CONTAINER, folder=folder, env={**env, **given})


def run(
    path: Path,
    *,
    url: str,
    tokens: Mapping[str, str],
    before: str = "",
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run a document; how many blocks ran and how many were left out. Raises StepFailed with what was printed."""
    found = blocks(path)
    wanted = [block for block in found if not block.not_run]
    parts = [filled_in(block.body, url=url, tokens=tokens) + "\nprintf '\\036'\n" for block in wanted]
    done = subprocess.run(
        ["bash", "-c", BEGIN + before + "".join(parts)],
        cwd=folder,
        env=None if env is None else dict(env),
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    printed = done.stdout.split(END)
    if done.returncode:
        failed = wanted[len(printed) - 1]
        raise StepFailed(f"{path.name}: this failed:\n{failed.body}\nIt printed:\n{printed[-1]}")
    for block, text in zip(wanted, printed, strict=False):
        for expected in block.prints:
            if expected not in text:
                raise StepFailed(
                    f"{path.name}: {expected!r} is not in what this printed:\n{block.body}\n{text}"
                )
    return f"{len(wanted)} blocks, {len(found) - len(wanted)} left out"
