"""The client is a package of its own: it installs, runs on Python 3.9's grammar, and needs what it says and no more."""

import ast
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from qm import words
from scripts.packages import ROOT
from tests.test_architecture import imported_by

FOLDER = ROOT / "qm"
PACKAGES = (FOLDER, FOLDER / "commands")
FILES = sorted(file for folder in PACKAGES for file in folder.glob("*.py"))


def test_it_imports_what_it_declares_and_is_written_for_its_oldest_python() -> None:
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    trees = [ast.parse(file.read_text(), feature_version=(3, 9)) for file in FILES]
    imported = (
        set[str]().union(*map(imported_by, trees))
        - set(sys.stdlib_module_names)
        - {"qm"}
    )

    assert imported == {re.split(r"\W", one)[0] for one in project["dependencies"]}
    assert project["requires-python"] == ">=3.9"


@pytest.mark.slow
def test_it_installs_by_itself_and_runs_without_the_portal(tmp_path: Path) -> None:
    shutil.copytree(
        FOLDER,
        tmp_path / "qm",
        ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"),
    )
    where = tmp_path / "installed"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run(
        [*pip, "--target", str(where), str(tmp_path / "qm")], check=True, cwd=tmp_path
    )

    done = subprocess.run(
        [str(where / "bin" / "qm"), "--version"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(where)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "qm, version 1.0.0\n"
    installed = where / "qm"
    assert all((installed / file.relative_to(FOLDER)).is_file() for file in FILES)


def test_times_are_told_in_local_time_with_their_zone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        assert words.moment("2026-11-23T23:30:00.123456Z") == "2026-11-24 00:30 CET"
        assert words.moment("2026-07-01T10:00:00Z") == "2026-07-01 12:00 CEST"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_tables_are_aligned_and_show_no_sign_that_steers_a_terminal() -> None:
    said = words.table(("name", "state"), [("a\x1b[2Jlong one", None), ("b", 7)])
    assert said == "name          state\na[2Jlong one\nb             7"


def test_attempts_are_told_of_a_run_that_was_interrupted() -> None:
    first = {
        "number": 1,
        "started_at": "2026-11-28T10:00:00Z",
        "ended_at": "2026-11-28T10:10:00Z",
        "why": "The queue stopped it because it lost its quota.",
    }
    second = {**first, "number": 2, "ended_at": None, "why": ""}
    head, one, two = words.attempts({"attempts": [first, second]}).splitlines()
    assert head.split() == ["attempt", "started", "ended", "why"]
    assert one.endswith("The queue stopped it because it lost its quota.")
    assert two.startswith("2 ")
    assert words.attempts({"attempts": [second]}) == ""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (3_600, "1 h"),
        (3_725, "1 h 2 min"),
        (200_000, "2 d 7 h"),
    ],
)
def test_lengths_of_time(seconds: int, said: str) -> None:
    assert words.duration(seconds) == said


def test_colour_is_for_terminals_and_not_where_it_is_unwanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert words.coloured("failed ") == "\x1b[31mfailed \x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert words.coloured("failed ") == "failed "
