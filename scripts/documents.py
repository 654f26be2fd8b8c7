"""The commands of README, tutorial and how-tos, run as they are written against a demo, and what they print.

Every block of commands is run, in order, in one shell. Comments that a reader does not see say the rest.
Before a block:

* `<!-- not run: REASON -->` leaves it out.
* `<!-- by hand: COMMAND -->` is what the text has a reader do before it by other means than commands.

After it:

* `<!-- prints: TEXT -->` names what must be printed, on whichever lines.
* `<!-- prints within 60 s: TEXT -->` has a block that only looks asked again until it prints that.
* `<!-- refused: TEXT -->` is the same where its last command must fail.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from scripts.expecting import StepFailed
from scripts.packages import ROOT

# The tutorial first: what a person holds already counts when they ask for more.
DOCUMENTS = (ROOT / "docs" / "tutorial.md", ROOT / "README.md")
# What an operator does. Whatever changes prices or the fleet comes last, and a hub after what it needs on its cluster.
LAST = (
    "connect-a-hub.md",
    "add-a-cluster.md",
    "add-a-flavor.md",
    "prices.md",
    "unreachable-cluster.md",
)
HOW_TOS = tuple(
    sorted(
        (ROOT / "docs" / "how-to").glob("*.md"),
        key=lambda path: (
            LAST.index(path.name) if path.name in LAST else -1,
            path.name,
        ),
    )
)
BLOCK = re.compile(
    r"(?P<before>(?:^ *<!-- (?:not run|by hand): [^\n]+ -->\n+)*)"
    r"^(?P<indent> *)```(?:console|sh)\n(?P<body>.*?)^(?P=indent)```$"
    r"(?P<after>(?:\n+ *<!-- (?:prints|refused)[^\n]* -->)*)",
    re.DOTALL | re.MULTILINE,
)
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")
BY_HAND = re.compile(r"<!-- by hand: (.+?) -->")
EXPECTED = re.compile(r"<!-- (prints|refused)(?: within (\d+) s)?: (.+?) -->")
END = "\x1e"
DEADLINE_SECONDS = 180
OLDEST_KUBECTL = (1, 24)
FIRST = (
    'python3 -c \'import json, sys; print(json.load(sys.stdin)["results"][0]["id"])\''
)
SHOW_KEY = "docker compose exec web python manage.py verify_audit_log --show-key"
# A call that is refused ends the shell: no document shows one. The last answer is kept for what a reader copies of it.
BEGIN = """set -euo pipefail
ANSWER=$(mktemp)
trap 'rm -f "$ANSWER"' EXIT
curl() { command curl --fail-with-body "$@" | tee "$ANSWER"; }
"""
KEY = """$(python3 -c 'import json, sys; print(json.load(sys.stdin)["key"])' < "$ANSWER")"""


@dataclass(frozen=True)
class Block:
    """Commands of a document; `not_run` says why they are left out, empty for those that are run."""

    body: str
    not_run: str = ""
    by_hand: tuple[str, ...] = ()
    prints: tuple[str, ...] = ()
    # How long it may take until it prints that, seconds; 0 where it must at once.
    within: int = 0
    is_refused: bool = False

    def script(self, body: str) -> str:
        """Its commands, filled in, as the shell runs them."""
        if self.is_refused:
            # What fails in the middle is an answer, such as a "no"; the end must be one.
            body = f"set +e\n{body}\nrefused=$?\nset -e\n[ $refused -ne 0 ]\n"
        if self.within:
            wanted = " ".join(
                f'&& [[ "$(squeezed)" == *{shlex.quote(text)}* ]]'
                for text in self.prints
            )
            body = (
                f"look() {{\n{body}\n}}\nsqueezed() {{ tr -s '[:space:]' ' ' <<<\"$seen\"; }}\n"
                f"until=$((SECONDS + {self.within}))\n"
                f"until {{ seen=$(look 2>&1) {wanted}; }} || ((SECONDS > until)); do sleep 0.5; done\n"
                'printf "%s\\n" "$seen"\n'
            )
        return "\n".join([*self.by_hand, body, f"printf '{END}'\n"])


@dataclass(frozen=True)
class Given:
    """What a reader has besides the text: a folder, an environment, shell functions, and what they would type.

    `examples` are what the text names in place of their own, each with what stands for it here.
    """

    folder: Path | None = None
    env: Mapping[str, str] | None = None
    before: str = ""
    typed: str = ""
    examples: Mapping[str, str] | None = None


def blocks(path: Path) -> list[Block]:
    """Every block of commands of a document, in order."""
    return [_block(found) for found in BLOCK.finditer(path.read_text())]


def _block(found: re.Match[str]) -> Block:
    expected = EXPECTED.findall(found["after"])
    return Block(
        textwrap.dedent(found["body"]),
        not_run=" ".join(NOT_RUN.findall(found["before"])),
        by_hand=tuple(BY_HAND.findall(found["before"])),
        prints=tuple(text for _, _, text in expected),
        within=max((int(seconds or 0) for _, seconds, _ in expected), default=0),
        is_refused=any(kind == "refused" for kind, _, _ in expected),
    )


@cache
def kubectl() -> str:
    """Why this machine's kubectl cannot be used; empty when it can."""
    if shutil.which("kubectl") is None:
        return "there is no kubectl here"
    asked = ["kubectl", "version", "--client", "-o", "json"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    with suppress(ValueError, KeyError, AttributeError):
        told = json.loads(done.stdout)["clientVersion"]
        version = int(told["major"]), int(re.sub(r"\D", "", told["minor"]))
        if version >= OLDEST_KUBECTL:
            return ""
        return f"kubectl is {version[0]}.{version[1]} here, and 1.24 is needed"
    return "kubectl does not tell its version here"


@cache
def pipx() -> str:
    """Why nothing can be built and installed without an index; empty when it can."""
    return (
        ""
        if find_spec("setuptools")
        else "there is no setuptools here to build the client with"
    )


# What a machine need not have, and where it is there is used: named at the start of a command.
TOOLS: Mapping[str, Callable[[], str]] = {"kubectl": kubectl, "pipx": pipx}


def missing(block: Block, tools: Mapping[str, Callable[[], str]]) -> str:
    """Why this machine cannot run a block; empty when it can."""
    used = (
        name
        for name in tools
        if re.search(rf"(?:^|\(|\| ?) *{name} ", block.body, re.MULTILINE)
    )
    return next((why for name in used if (why := tools[name]())), "")


def filled_in(
    body: str,
    *,
    url: str,
    tokens: Mapping[str, str],
    examples: Mapping[str, str] | None = None,
) -> str:
    """The commands with what a reader fills in: the address, tokens, and numbers that an answer before gave."""
    for example, own in (examples or {}).items():
        body = body.replace(example, own)
    listed = {
        "ID": "requests/?team=vision&state=waiting",
        "ALLOCATION": "allocations/?team=vision&held=true&offering=gpus",
        "DRAFT": "policy/drafts/",
    }
    body = body.replace("http://127.0.0.1:8000", url)
    # What an auditor has of their own: the folder of anchors, and the key that was noted once.
    body = body.replace(" /anchors", ' "$QM_ANCHOR_DIR"').replace(
        "PUBLIC-KEY", f'"$({SHOW_KEY})"'
    )
    for name, person in (("TOKEN", "Ada"), ("PRIYA", "Priya"), ("OTHER", "Elena")):
        body = body.replace(f"{name}=qm_…", f"{name}={tokens.get(person, '')}")
    for name, address in listed.items():
        asked = f'curl -s "$URL/{address}" -H "Authorization: Bearer $TOKEN" | {FIRST}'
        body = body.replace(f"{name}=…", f"{name}=$({asked})")
    body = body.replace("KEY=qmh_…", f"KEY={KEY}")
    if "…" in body:
        raise StepFailed(f"Nobody knows what to fill in here:\n{body}")
    return body


def run(
    path: Path,
    *,
    url: str,
    tokens: Mapping[str, str],
    given: Given | None = None,
    tools: Mapping[str, Callable[[], str]] = TOOLS,
) -> str:
    """Run a document; how many blocks ran and how many were left out, and why where the machine is the reason.

    Raises StepFailed with what was printed.
    """
    given = given or Given()
    found = [block for block in blocks(path) if not block.not_run]
    here = [block for block in found if not missing(block, tools)]
    parts = [
        block.script(
            filled_in(block.body, url=url, tokens=tokens, examples=given.examples)
        )
        for block in here
    ]
    status, said = _shell(BEGIN + given.before + "".join(parts), given)
    printed = said.split(END)
    if status:
        failed = here[min(len(printed), len(here)) - 1]
        raise StepFailed(
            f"{path.name}: this failed:\n{failed.body}\nIt printed:\n{printed[-1]}"
        )
    for block, text in zip(here, printed, strict=False):
        _compare(path, block, text)
    return _told(path, here, [why for block in found if (why := missing(block, tools))])


def _shell(script: str, given: Given) -> tuple[int, str]:
    """The exit status of a script, and all that it printed; what is typed is its input, for it has no terminal."""
    with subprocess.Popen(
        ["bash", "-c", script],
        cwd=given.folder,
        env=None if given.env is None else dict(given.env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            said, _ = shell.communicate(given.typed, timeout=DEADLINE_SECONDS)
        except BaseException as error:
            os.killpg(shell.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            said = f"{shell.communicate()[0]}\nIt has not ended within {DEADLINE_SECONDS} s."
    return shell.returncode, said


def _compare(path: Path, block: Block, text: str) -> None:
    """Raises StepFailed when what a block must print is not there; how it is broken into lines does not matter."""
    for expected in block.prints:
        if " ".join(expected.split()) not in " ".join(text.split()):
            raise StepFailed(
                f"{path.name}: {expected!r} is not in what this printed:\n{block.body}\n{text}"
            )


def _told(path: Path, here: Sequence[Block], missed: Sequence[str]) -> str:
    left_out = len(blocks(path)) - len(here) - len(missed)
    told = f"{len(here)} blocks, {left_out} left out"
    return told + "".join(
        f"; {missed.count(why)} not run, because {why}" for why in dict.fromkeys(missed)
    )
