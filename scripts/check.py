"""Every check that needs no running server: one line each, and the output of those that fail."""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from scripts.packages import CLIENT, PRODUCT, ROOT
from tests.services.environment import harmless

BIN = Path(sys.executable).parent
SHOWN_LINES = 80
MANAGE = [sys.executable, "manage.py"]


@dataclass(frozen=True)
class Check:
    """One check: what it shows, and the command that shows it."""

    name: str
    argv: list[str]


def checks(scratch: Path) -> list[Check]:
    """All of them, the slowest first; `scratch` is a folder for what they write."""
    described = str(scratch / "openapi.yaml")
    return [
        Check("types", [str(BIN / "mypy")]),
        Check("style", [str(BIN / "ruff"), "check", "--quiet", "."]),
        Check("format", [str(BIN / "ruff"), "format", "--check", "--quiet", "."]),
        Check("architecture", [str(BIN / "lint-imports"), "--no-logo"]),
        Check(
            "templates: lint", [str(BIN / "djlint"), "--lint", "--quiet", "templates"]
        ),
        Check("templates: lines", [sys.executable, "-m", "scripts.template_lines"]),
        Check("migrations", [*MANAGE, "makemigrations", "--check", "--dry-run"]),
        Check("deployment", [*MANAGE, "check", "--deploy", "--fail-level", "WARNING"]),
        Check(
            "API description",
            [sys.executable, "-m", "scripts.api_description", "--check", described],
        ),
        Check("security", [str(BIN / "bandit"), "-q", "-ll", "-r", *PRODUCT, CLIENT]),
    ]


def environment(scratch: Path) -> dict[str, str]:
    """A production-like environment that names no server: settings are read, nothing is reached."""
    return harmless() | {
        "QM_DEMO": "false",
        "QM_PUBLIC_URL": "https://gpus.example.com",
        "QM_ALLOWED_HOSTS": '["gpus.example.com"]',
        "QM_SECRET_KEY": os.urandom(48).hex(),
        "QM_DATA_DIR": str(scratch),
        "QM_DATABASE_URL": f"sqlite:///{scratch}/portal.sqlite3",
        "QM_BROKER_URL": f"filesystem:///{scratch}/broker",
        "QM_CACHE_URL": f"file:///{scratch}/cache",
    }


def run(check: Check, env: dict[str, str]) -> bool:
    """Run one check and print its line; True when it passes."""
    began = time.monotonic()
    done = subprocess.run(
        check.argv,
        check=False,
        env=env,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    passed = done.returncode == 0
    line = f"{'ok  ' if passed else 'FAIL'}  {check.name:<20}{time.monotonic() - began:6.1f} s"
    output = "" if passed else shortened(f"{done.stdout}{done.stderr}")
    print(f"{line}\n{output}".rstrip(), flush=True)
    return passed


def shortened(output: str) -> str:
    """The first lines of a long output, and how many there are more."""
    lines = output.splitlines()
    more = (
        [f"... and {len(lines) - SHOWN_LINES} lines more"]
        if len(lines) > SHOWN_LINES
        else []
    )
    return "\n".join(lines[:SHOWN_LINES] + more)


def main() -> int:
    """Run all of them; 1 when any fails."""
    with (
        tempfile.TemporaryDirectory(prefix="quartermaster-check-") as folder,
        ThreadPoolExecutor(2) as pool,
    ):
        scratch = Path(folder)
        env = dict(os.environ) | environment(scratch) | {"PYTHONPATH": str(ROOT)}
        results = list(pool.map(lambda check: run(check, env), checks(scratch)))
    print(f"check: {sum(results)} of {len(results)} passed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
